/**
 * Announces a change of the page to screen readers.
 *
 * @param {string} text
 */
export function announce(text) {
  const status = document.getElementById('announcements')
  if (status) status.textContent = text
}

/**
 * Creates an element.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Partial<HTMLElementTagNameMap[Tag]>} properties
 * @param {(string | Node)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}

/**
 * Calls a function with each clicked element of a kind, also with those that are added later.
 *
 * @param {string} selector
 * @param {(element: HTMLElement) => void} act
 */
export function onClick(selector, act) {
  document.addEventListener('click', ({ target }) => {
    const element = target instanceof Element ? target.closest(selector) : null
    if (element instanceof HTMLElement) act(element)
  })
}

/**
 * Reads a value that {@link store} kept; null if there is none or storage is forbidden.
 *
 * @param {string} key
 * @param {'localStorage' | 'sessionStorage'} [place]
 * @returns {any}
 */
export function stored(key, place = 'localStorage') {
  try {
    return JSON.parse(globalThis[place].getItem(key) ?? 'null')
  } catch {
    return null
  }
}

/**
 * Keeps a value in this browser, or in this tab. If storage is full or forbidden, it lasts as long as the page.
 *
 * @param {string} key
 * @param {unknown} value null removes it
 * @param {'localStorage' | 'sessionStorage'} [place]
 */
export function store(key, value, place = 'localStorage') {
  try {
    if (value === null) globalThis[place].removeItem(key)
    else globalThis[place].setItem(key, JSON.stringify(value))
  } catch {
    // The page goes on without it.
  }
}
