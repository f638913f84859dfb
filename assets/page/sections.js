import { announce } from './announce.js'

/**
 * Links and forms with `data-section` change the page in place: the same address is asked for, and every room that has such
 * is taken from the answer, since each keeps in its links what the others show. The named room gets the focus. While the
 * server cannot be reached, or makes no more pages for now, the page stays as it is, which it says; to what is no such page
 * the browser goes itself.
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
  window.addEventListener('popstate', () => {
    // Going to another place of the same page is told here too.
    if (pathOf(location.href) !== shownPath) void restore()
  })
}

/** @param {MouseEvent} event */
function isBrowserClick(event) {
  const { button, metaKey, ctrlKey, shiftKey, altKey, defaultPrevented } = event
  return button !== 0 || metaKey || ctrlKey || shiftKey || altKey || defaultPrevented
}

/**
 * Fields that hold something, as the address has them.
 *
 * @param {FormData} data
 * @returns {[string, string][]}
 */
function textsOf(data) {
  return [...data].flatMap(([name, value]) =>
    typeof value === 'string' && value !== '' ? [[name, value]] : [],
  )
}

/** Rooms that are changed in place. */
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
  // After the new entry, or the one before would be named so.
  document.title = page.title
  const keptControl = moveFocus(sectionId, focusedId)
  const section = document.getElementById(sectionId)
  if (section && !keptControl && section.getBoundingClientRect().top < 0) section.scrollIntoView()
  announce(announcementOf(sectionId))
}

/** Shows what the address is now: the browser went back or forward. Where it took away what had the focus, its room gets it. */
async function restore() {
  const sectionIds = changeableSections()
  const textOf = (/** @type {string} */ sectionId) => document.getElementById(sectionId)?.textContent
  const texts = new Map(sectionIds.map((sectionId) => [sectionId, textOf(sectionId)]))
  const focused = document.activeElement
  const sectionId = focused?.closest('section.section')?.id
  const page = await show(location.href, sectionIds, sectionId ?? sectionIds[0] ?? '')
  if (page === null) return
  document.title = page.title
  if (sectionId !== undefined && document.activeElement === document.body)
    moveFocus(sectionId, focused?.id ?? '')
  announce(announcementOf(sectionIds.find((each) => textOf(each) !== texts.get(each)) ?? sectionIds[0] ?? ''))
}

/**
 * Gives a room the focus: the control that had it, so that whoever steps on with the same keeps it, else what is current
 * there, else its heading.
 *
 * @param {string} sectionId
 * @param {string} focusedId id of what had the focus; empty for none
 * @returns {boolean} whether that control is still there
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
 * What is shown in a room, for those who do not see it.
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

/** What the page shows now: its address without the place in it. */
let shownPath = pathOf(location.href)

/** @param {string} href */
function pathOf(href) {
  const { pathname, search } = new URL(href)
  return pathname + search
}

/** The last question asked; a newer one ends it. */
let currentRequest = new AbortController()

/**
 * Takes rooms from the page at an address.
 *
 * @param {string} href
 * @param {string[]} sectionIds
 * @param {string} noticeSection the room in which it is said when the server cannot be reached
 * @returns {Promise<{ address: string, title: string } | null>} the address that answered, and its title; null when a newer
 *   question has taken its place, the server cannot be reached, or the browser goes there itself
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
      // A failure that is not the server's own page is told by what stands before it.
      if (response === null || response.status >= 500) showUnchanged(noticeSection, href, UNREACHABLE)
      else if (response.status === 429) showUnchanged(noticeSection, href, LIMITED)
      else location.assign(href)
      return null
    }
    for (const [index, section] of sections.entries())
      section.replaceChildren(...(replacements[index]?.childNodes ?? []))
    shownPath = pathOf(response.address)
    return { address: response.address, title: page.title }
  } finally {
    if (!signal.aborted) for (const section of sections) section.removeAttribute('aria-busy')
  }
}

/**
 * @param {string} href
 * @param {AbortSignal} signal
 * @returns {Promise<{ address: string, status: number, text: string } | null>} null when nothing answers, or not to the end
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
const LIMITED = 'The server makes no more new pages for now'

/**
 * Says at the top of a room that it is still what it was: another page would take the conversation along.
 *
 * @param {string} sectionId
 * @param {string} href
 * @param {string} reason
 */
function showUnchanged(sectionId, href, reason) {
  document.getElementById('unreachable')?.remove()
  const notice = document.createElement('p')
  notice.id = 'unreachable'
  notice.className = 'notice'
  notice.setAttribute('role', 'alert')
  const retryLink = document.createElement('a')
  retryLink.href = href
  retryLink.dataset['section'] = sectionId
  retryLink.textContent = 'Try again'
  notice.append(`${reason}; what is shown here is what was shown before. `, retryLink)
  document.getElementById(`${sectionId}-title`)?.after(notice)
  notice.scrollIntoView({ block: 'nearest' })
}
