import { announce } from './announce.js'

/**
 * Links and forms with `data-room` change the page in place: the same address is asked for, and every room that has such
 * is taken from the answer, since each keeps in its links what the others show. The named room gets the focus. While the
 * server cannot be reached, or makes no more pages for now, the page stays as it is, which it says; to what is no such page
 * the browser goes itself.
 */
export function followRooms() {
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[data-room]') : null
    if (!(link instanceof HTMLAnchorElement) || isForBrowser(event)) return
    event.preventDefault()
    void visit(link.href, link.dataset['room'] ?? '')
  })
  document.addEventListener('submit', (event) => {
    const form = event.target
    if (!(form instanceof HTMLFormElement) || form.dataset['room'] === undefined) return
    event.preventDefault()
    const address = new URL(form.action)
    address.search = String(new URLSearchParams(textsOf(new FormData(form))))
    void visit(address.href, form.dataset['room'])
  })
  window.addEventListener('popstate', () => {
    // Going to another place of the same page is told here too.
    if (questionOf(location.href) !== shown) void comeBack()
  })
}

/** @param {MouseEvent} event */
function isForBrowser(event) {
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
function changeableRooms() {
  const rooms = [...document.querySelectorAll('section.room')]
  return rooms.map(({ id }) => id).filter((id) => document.querySelector(`[data-room="${id}"]`) !== null)
}

/**
 * @param {string} href
 * @param {string} room
 */
async function visit(href, room) {
  const held = document.activeElement?.id ?? ''
  const page = await show(href, changeableRooms(), room)
  if (page === null) return
  history.pushState(null, '', page.address)
  // After the new entry, or the one before would be named so.
  document.title = page.title
  const isKept = giveFocus(room, held)
  const section = document.getElementById(room)
  if (section && !isKept && section.getBoundingClientRect().top < 0) section.scrollIntoView()
  announce(saidOf(room))
}

/** Shows what the address is now: the browser went back or forward. Where it took away what had the focus, its room gets it. */
async function comeBack() {
  const rooms = changeableRooms()
  const textOf = (/** @type {string} */ room) => document.getElementById(room)?.textContent
  const texts = new Map(rooms.map((room) => [room, textOf(room)]))
  const focused = document.activeElement
  const room = focused?.closest('section.room')?.id
  const page = await show(location.href, rooms, room ?? rooms[0] ?? '')
  if (page === null) return
  document.title = page.title
  if (room !== undefined && document.activeElement === document.body) giveFocus(room, focused?.id ?? '')
  announce(saidOf(rooms.find((each) => textOf(each) !== texts.get(each)) ?? rooms[0] ?? ''))
}

/**
 * Gives a room the focus: the control that had it, so that whoever steps on with the same keeps it, else what is current
 * there, else its heading.
 *
 * @param {string} room
 * @param {string} held id of what had the focus; empty for none
 * @returns {boolean} whether that control is still there
 */
function giveFocus(room, held) {
  const section = document.getElementById(room)
  const again = held === '' ? null : section?.querySelector(`#${CSS.escape(held)}`)
  const current = section?.querySelector('[aria-current]')
  const heading = document.getElementById(`${room}-title`)
  const target = [again, current, heading].find((element) => element instanceof HTMLElement)
  if (target instanceof HTMLElement) target.focus({ preventScroll: true })
  return again instanceof HTMLElement
}

/**
 * What is shown in a room, for those who do not see it.
 *
 * @param {string} room
 */
function saidOf(room) {
  const section = document.getElementById(room)
  const said = section?.querySelector('[data-announce]')?.getAttribute('data-announce')
  const heading = document.getElementById(`${room}-title`)?.textContent ?? ''
  const current = section?.querySelector('[aria-current]')?.textContent ?? ''
  return said ?? `${heading} ${current}`.trim() + ' is shown.'
}

/** What the page shows now: its address without the place in it. */
let shown = questionOf(location.href)

/** @param {string} href */
function questionOf(href) {
  const { pathname, search } = new URL(href)
  return pathname + search
}

/** The last question asked; a newer one ends it. */
let asking = new AbortController()

/**
 * Takes rooms from the page at an address.
 *
 * @param {string} href
 * @param {string[]} rooms
 * @param {string} asked the room in which it is said when the server cannot be reached
 * @returns {Promise<{ address: string, title: string } | null>} the address that answered, and its title; null when a newer
 *   question has taken its place, the server cannot be reached, or the browser goes there itself
 */
async function show(href, rooms, asked) {
  asking.abort()
  asking = new AbortController()
  const { signal } = asking
  const sections = rooms.flatMap((room) => document.getElementById(room) ?? [])
  for (const section of sections) section.setAttribute('aria-busy', 'true')
  try {
    const answer = await pageAt(href, signal)
    if (signal.aborted) return null
    const page = new DOMParser().parseFromString(answer?.text ?? '', 'text/html')
    const fresh = sections.map((section) => page.getElementById(section.id))
    if (answer === null || fresh.length === 0 || fresh.includes(null)) {
      // A failure that is not the server's own page is told by what stands before it.
      if (answer === null || answer.status >= 500) tellUnchanged(asked, href, UNREACHABLE)
      else if (answer.status === 429) tellUnchanged(asked, href, LIMITED)
      else location.assign(href)
      return null
    }
    for (const [index, section] of sections.entries())
      section.replaceChildren(...(fresh[index]?.childNodes ?? []))
    shown = questionOf(answer.address)
    return { address: answer.address, title: page.title }
  } finally {
    if (!signal.aborted) for (const section of sections) section.removeAttribute('aria-busy')
  }
}

/**
 * @param {string} href
 * @param {AbortSignal} signal
 * @returns {Promise<{ address: string, status: number, text: string } | null>} null when nothing answers, or not to the end
 */
async function pageAt(href, signal) {
  try {
    const answer = await fetch(href, { signal })
    const address = answer.redirected ? answer.url : href
    return { address, status: answer.status, text: await answer.text() }
  } catch {
    return null
  }
}

const UNREACHABLE = 'The server could not be reached'
const LIMITED = 'The server limits new pages for now'

/**
 * Says at the top of a room that it is still what it was: another page would take the conversation along.
 *
 * @param {string} room
 * @param {string} href
 * @param {string} why
 */
function tellUnchanged(room, href, why) {
  document.getElementById('unreachable')?.remove()
  const notice = document.createElement('p')
  notice.id = 'unreachable'
  notice.className = 'notice'
  notice.setAttribute('role', 'alert')
  const again = document.createElement('a')
  again.href = href
  again.dataset['room'] = room
  again.textContent = 'Try again'
  notice.append(`${why}; this section shows its earlier content. `, again)
  document.getElementById(`${room}-title`)?.after(notice)
  notice.scrollIntoView({ block: 'nearest' })
}
