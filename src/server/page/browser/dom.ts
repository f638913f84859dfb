/** Announces a change of the page to screen readers. */
export function announce(text: string) {
  const status = document.getElementById('announcements')
  if (status) status.textContent = text
}

export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Partial<HTMLElementTagNameMap[Tag]>,
  ...children: (string | Node)[]
): HTMLElementTagNameMap[Tag] {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}

/** Calls a function with each clicked element of a kind, also with those that are added later. */
export function onClick(selector: string, act: (element: HTMLElement) => void) {
  document.addEventListener('click', ({ target }) => {
    const element = target instanceof Element ? target.closest(selector) : null
    if (element instanceof HTMLElement) act(element)
  })
}

/** Code of the keys that an input method handles. */
const INPUT_METHOD = 229

/** True for a key of an input method. Safari reports the one that ends a composition after it, with the code alone. */
export function isComposing(event: KeyboardEvent) {
  return event.isComposing || event.keyCode === INPUT_METHOD
}

/** Calls a function when a browser that goes back shows the page as it was left; others may have stored values since. */
export function onReturn(act: () => void) {
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) act()
  })
}

/** Reads a value that {@link store} kept; null if there is none or storage is forbidden. */
export function stored(key: string, place: 'localStorage' | 'sessionStorage' = 'localStorage'): unknown {
  try {
    return JSON.parse(globalThis[place].getItem(key) ?? 'null')
  } catch {
    return null
  }
}

/**
 * Keeps a value in this browser, or in this tab. If storage is full or forbidden, it lasts as long as the page.
 *
 * @param value null removes it
 */
export function store(
  key: string,
  value: unknown,
  place: 'localStorage' | 'sessionStorage' = 'localStorage',
) {
  try {
    if (value === null) globalThis[place].removeItem(key)
    else globalThis[place].setItem(key, JSON.stringify(value))
  } catch {
    // The page goes on without it.
  }
}

/** Makes buttons with `data-copy` copy the text of the element with that id. */
export function setUpCopyButtons() {
  onClick('button[data-copy]', (button) => {
    const text = document.getElementById(button.dataset['copy'] ?? '')?.textContent ?? ''
    void copy(text.trim()).then(announce)
  })
}

/** Copies a text. @returns the result as a message */
export async function copy(text: string): Promise<string> {
  try {
    await navigator.clipboard.writeText(text)
    return 'Copied.'
  } catch {
    return 'The browser blocked copying; select the text instead.'
  }
}

/** Reads a page of this server; null if the server cannot be reached or refuses. */
export async function fetchPage(href: string): Promise<Document | null> {
  try {
    const response = await fetch(href)
    return response.ok ? new DOMParser().parseFromString(await response.text(), 'text/html') : null
  } catch {
    return null
  }
}
