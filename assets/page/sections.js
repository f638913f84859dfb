import { announce, make } from './dom.js'

/**
 * Makes links and forms with `data-section` update the page in place. The URL is requested, and every section that has
 * such links is replaced from the response, since the links of each section hold the state of the others. The named
 * section gets the focus. A form with `data-instant` is sent at every change. If the server is unreachable or limits pages, the page stays and shows a notice; to a page
 * without these sections the browser navigates.
 */
export function setUpSections() {
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[data-section]') : null
    if (!(link instanceof HTMLAnchorElement) || isBrowserClick(event)) return
    event.preventDefault()
    void visit(link.href, link.dataset['section'] ?? '')
  })
  document.addEventListener('submit', (event) => {
    const form = event.target
    if (!(form instanceof HTMLFormElement) || form.dataset['section'] === undefined) return
    event.preventDefault()
    const address = new URL(form.action)
    address.search = String(new URLSearchParams(textsOf(new FormData(form))))
    void visit(address.href, form.dataset['section'])
  })
  document.addEventListener('change', ({ target }) => {
    const form = target instanceof Element ? target.closest('form[data-instant]') : null
    if (form instanceof HTMLFormElement) form.requestSubmit()
  })
  window.addEventListener('popstate', () => {
    // Navigation within the same page fires this event too.
    if (pathOf(location.href) !== shownPath) void restore()
  })
}

/** @param {MouseEvent} event */
function isBrowserClick(event) {
  const { button, metaKey, ctrlKey, shiftKey, altKey, defaultPrevented } = event
  return button !== 0 || metaKey || ctrlKey || shiftKey || altKey || defaultPrevented
}

/**
 * Non-empty fields as query parameters.
 *
 * @param {FormData} data
 * @returns {[string, string][]}
 */
function textsOf(data) {
  return [...data].flatMap(([name, value]) =>
    typeof value === 'string' && value !== '' ? [[name, value]] : [],
  )
}

/** Ids of the sections that are replaced in place; the tabs of the header count as part of the feed. */
function changeableSections() {
  const sectionIds = [...document.querySelectorAll('section.section')]
  return sectionIds
    .map(({ id }) => id)
    .filter((id) => document.querySelector(`[data-section="${id}"]`) !== null)
}

/**
 * @param {string} href
 * @param {string} sectionId
 */
async function visit(href, sectionId) {
  const focusedId = document.activeElement?.id ?? ''
  const page = await show(href, changeableSections(), sectionId)
  if (page === null) return
  history.pushState(null, '', page.address)
  // Set the title after the new entry, or the previous entry would get it.
  document.title = page.title
  const keptControl = document.activeElement !== document.body || moveFocus(sectionId, focusedId)
  const section = document.getElementById(sectionId)
  if (section && !keptControl && section.getBoundingClientRect().top < 0) section.scrollIntoView()
  announce(announcementOf(sectionId))
}

/**
 * Shows the current URL after the browser went back or forward. If the focused element is gone, its section gets the
 * focus.
 */
async function restore() {
  const sectionIds = changeableSections()
  const textOf = (/** @type {string} */ sectionId) => document.getElementById(sectionId)?.textContent
  const texts = new Map(sectionIds.map((sectionId) => [sectionId, textOf(sectionId)]))
  const focused = document.activeElement
  const sectionId = focused?.closest('section.section')?.id
  const page = await show(location.href, sectionIds, sectionId ?? sectionIds[0] ?? '')
  if (page === null) return
  document.title = page.title
  if (document.activeElement === document.body) {
    // Browsers drop the focus when they go back to an address with a fragment.
    if (focused instanceof HTMLElement && focused.isConnected) focused.focus({ preventScroll: true })
    else if (sectionId !== undefined) moveFocus(sectionId, focused?.id ?? '')
  }
  announce(announcementOf(sectionIds.find((each) => textOf(each) !== texts.get(each)) ?? sectionIds[0] ?? ''))
}

/**
 * Moves the focus to a section: to the same control as before, else to its current link, else to its heading.
 *
 * @param {string} sectionId
 * @param {string} focusedId id of the previously focused element; empty for none
 * @returns {boolean} whether that control still exists
 */
function moveFocus(sectionId, focusedId) {
  const section = document.getElementById(sectionId)
  const previous = focusedId === '' ? null : section?.querySelector(`#${CSS.escape(focusedId)}`)
  const current = section?.querySelector('[aria-current]')
  const heading = document.getElementById(`${sectionId}-title`)
  const target = [previous, current, heading].find((element) => element instanceof HTMLElement)
  if (target instanceof HTMLElement) target.focus({ preventScroll: true })
  return previous instanceof HTMLElement
}

/**
 * The announcement of a section's content for screen readers.
 *
 * @param {string} sectionId
 */
function announcementOf(sectionId) {
  const section = document.getElementById(sectionId)
  const announced = section?.querySelector('[data-announce]')?.getAttribute('data-announce')
  const heading = document.getElementById(`${sectionId}-title`)?.textContent ?? ''
  const current = section?.querySelector('[aria-current]')?.textContent ?? ''
  return announced ?? `${heading} ${current}`.trim() + ' is shown.'
}

/** Path and query of the shown page, without the fragment. */
let shownPath = pathOf(location.href)

/** @param {string} href */
function pathOf(href) {
  const { pathname, search } = new URL(href)
  return pathname + search
}

/** The last request; a newer one aborts it. */
let currentRequest = new AbortController()

/**
 * Replaces sections by those of the page at a URL.
 *
 * @param {string} href
 * @param {string[]} sectionIds
 * @param {string} noticeSection the section that shows a notice if the server cannot be reached
 * @returns {Promise<{ address: string, title: string } | null>} the final URL and its title; null if a newer request
 * replaced this one, the server cannot be reached, or the browser navigates itself
 */
async function show(href, sectionIds, noticeSection) {
  currentRequest.abort()
  currentRequest = new AbortController()
  const { signal } = currentRequest
  const sections = sectionIds.flatMap((sectionId) => document.getElementById(sectionId) ?? [])
  for (const section of sections) section.setAttribute('aria-busy', 'true')
  try {
    const response = await fetchPage(href, signal)
    if (signal.aborted) return null
    const page = new DOMParser().parseFromString(response?.text ?? '', 'text/html')
    const replacements = sections.map((section) => page.getElementById(section.id))
    if (response === null || replacements.length === 0 || replacements.includes(null)) {
      // A 5xx or 429 without these sections comes from a proxy.
      if (response === null || response.status >= 500) showUnchanged(noticeSection, href, UNREACHABLE)
      else if (response.status === 429) showUnchanged(noticeSection, href, LIMITED)
      else location.assign(href)
      return null
    }
    for (const [index, section] of sections.entries())
      section.replaceChildren(...(replacements[index]?.childNodes ?? []))
    for (const link of feedLinksOf(document)) link.remove()
    document.head.append(...feedLinksOf(page))
    updateTabs(page)
    shownPath = pathOf(response.address)
    return { address: response.address, title: page.title }
  } finally {
    if (!signal.aborted) for (const section of sections) section.removeAttribute('aria-busy')
  }
}

/**
 * Links by which feed readers find the feeds of the shown view.
 *
 * @param {Document} page
 */
function feedLinksOf(page) {
  return page.head.querySelectorAll('link[rel="alternate"]')
}

/**
 * Updates the tabs of the header, which stay in place and keep the focus.
 *
 * @param {Document} page
 */
function updateTabs(page) {
  const newTabs = [...page.querySelectorAll('#periods a')]
  for (const [index, tab] of document.querySelectorAll('#periods a').entries()) {
    for (const name of ['href', 'aria-current']) {
      const value = newTabs[index]?.getAttribute(name) ?? null
      if (value === null) tab.removeAttribute(name)
      else tab.setAttribute(name, value)
    }
  }
}

/**
 * @param {string} href
 * @param {AbortSignal} signal
 * @returns {Promise<{ address: string, status: number, text: string } | null>} null without a complete response
 */
async function fetchPage(href, signal) {
  try {
    const response = await fetch(href, { signal })
    const address = response.redirected ? response.url : href
    return { address, status: response.status, text: await response.text() }
  } catch {
    return null
  }
}

const UNREACHABLE = 'The server could not be reached'
const LIMITED = 'The server limits new pages for now'

/**
 * Shows a notice at the top of a section that it is unchanged; leaving the page would lose the conversation.
 *
 * @param {string} sectionId
 * @param {string} href
 * @param {string} reason
 */
function showUnchanged(sectionId, href, reason) {
  document.getElementById('unreachable')?.remove()
  const retryLink = make('a', { href }, 'Try again')
  retryLink.dataset['section'] = sectionId
  const text = `${reason}; this section shows its earlier content. `
  const notice = make('p', { id: 'unreachable', className: 'notice' }, text, retryLink)
  notice.setAttribute('role', 'alert')
  document.getElementById(`${sectionId}-title`)?.after(notice)
  notice.scrollIntoView({ block: 'nearest' })
}
