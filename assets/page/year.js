import { hideRows } from './hidden.js'
import { setUpMarks } from './since.js'

/**
 * The slider over the days of the history: it names its day while it is moved, shows the rows of Popular that the server
 * rendered for it, fetched ahead, and opens the day when it is released.
 */

const DAY_MS = 86_400_000

/** Most days kept in memory. */
const DAYS_MAX = 200

/** Duration of a row's move, in milliseconds. */
const MOVE_MS = 160

/** Time without another step after which the rows stand in the document in their order, in milliseconds. */
const SETTLE_MS = 250

/** Time without another key after which the slider's day opens, in milliseconds. */
const KEY_PAUSE_MS = 500

/** Rows of Popular as the server rendered them, by as-of day. @type {Map<string, Element[]>} */
const lists = new Map()

class YearTimeline extends HTMLElement {
  /** Aborts the requests of an element that was removed. */
  #removed = new AbortController()
  /** @type {string[]} */
  #parts = []
  #isFetching = false
  #isFrameRequested = false
  /** Rows of the list before the slider was moved. @type {Element[] | null} */
  #original = null
  /** The section that is dimmed while the slider is moved. @type {Element | null} */
  #section = null
  #isMovedByKeys = false
  /** Timer that puts the rows into the document in their order. @type {ReturnType<typeof setTimeout> | undefined} */
  #settling
  /** Timer that opens the slider's day. @type {ReturnType<typeof setTimeout> | undefined} */
  #opening

  connectedCallback() {
    this.#removed = new AbortController()
    this.#section = this.closest('#feed')
    const { signal } = this.#removed
    this.style.setProperty('--days', this.dataset['days'] ?? '1')
    this.#parts = (this.dataset['parts'] ?? '').split(' ').filter((part) => part !== '')
    const slider = this.#slider()
    if (!slider) return
    for (const type of ['pointerenter', 'focus', 'input'])
      slider.addEventListener(type, () => void this.#fetchParts(), { signal })
    slider.addEventListener('input', () => this.#requestFrame(), { signal })
    slider.addEventListener('keydown', () => (this.#isMovedByKeys = true), { signal })
    slider.addEventListener('pointerdown', () => (this.#isMovedByKeys = false), { signal })
    slider.addEventListener('change', () => this.#openSoon(slider), { signal })
    const { ranks } = this.dataset
    if (ranks !== undefined) void setUpMarks(ranks, signal)
  }

  disconnectedCallback() {
    this.#removed.abort()
    clearTimeout(this.#opening)
    clearTimeout(this.#settling)
    // The section stays and shows another view.
    this.#section?.classList.remove('travelling', 'unlisted')
  }

  /** Opens the slider's day: when the pointer lets it go, or when no further key moves it. @param {HTMLInputElement} slider */
  #openSoon(slider) {
    clearTimeout(this.#opening)
    this.#opening = setTimeout(() => openDay(this, slider), this.#isMovedByKeys ? KEY_PAUSE_MS : 0)
  }

  #slider() {
    const slider = this.querySelector('input')
    return slider instanceof HTMLInputElement ? slider : null
  }

  /** Fetches the parts of the period one after another, each once, that of the slider's day first. */
  async #fetchParts() {
    if (this.#isFetching) return
    this.#isFetching = true
    for (let part = this.#nextPart(); part !== undefined; part = this.#nextPart()) {
      const isFetched = await fetchPart(`${this.dataset['rows']}?at=${part}`, this.#removed.signal)
      if (this.#removed.signal.aborted) return
      if (isFetched) this.#requestFrame()
      else {
        // Try this part again at the next move.
        this.#parts = [part, ...this.#parts].sort().toReversed()
        break
      }
    }
    this.#isFetching = false
  }

  /** Takes a part from those that are not fetched yet, which stand newest first and each have the time of their end. */
  #nextPart() {
    const slider = this.#slider()
    const day = slider ? dayAt(this, slider) : ''
    const index = this.#parts.findLastIndex((end) => end.slice(0, 10) > day)
    return this.#parts.splice(Math.max(0, index), 1)[0]
  }

  /** Shows the slider's day in the next frame, once for all moves until then. */
  #requestFrame() {
    if (this.#isFrameRequested) return
    this.#isFrameRequested = true
    requestAnimationFrame(() => {
      this.#isFrameRequested = false
      const slider = this.#slider()
      if (slider?.isConnected) this.#show(slider)
    })
  }

  /** @param {HTMLInputElement} slider */
  #show(slider) {
    const isMoved = slider.value !== slider.defaultValue
    const day = dayAt(this, slider)
    // Where the rows are not those of a publication, only the dimmed section says that the day is another.
    const list = this.dataset['rows'] === undefined ? null : document.querySelector('#column-popular ol')
    const rows = list ? lists.get(day) : undefined
    // Measured before the first change of this frame, while no layout is needed for it.
    const places = list ? placesOf(list.children) : new Map()
    this.#describe(slider, day)
    if (list && isMoved && !rows) balance(list)
    this.#section?.classList.toggle('travelling', isMoved)
    this.#section?.classList.toggle('unlisted', isMoved && !rows)
    if (!list || (!isMoved && this.#original === null)) return
    const original = (this.#original ??= [...list.children])
    const changeable = [...list.children].filter((row) => !original.includes(row))
    if (!isMoved) reorder(list, original, places)
    else if (rows) reorder(list, elementsOf(rows, changeable), places)
    clearTimeout(this.#settling)
    this.#settling = setTimeout(() => settle(list), SETTLE_MS)
  }

  /**
   * Names the slider's day beside it and as its value text.
   *
   * @param {HTMLInputElement} slider
   * @param {string} day
   */
  #describe(slider, day) {
    const state = this.querySelector(`rect[data-day="${day}"]`)?.getAttribute('data-state') ?? 'a gap'
    slider.setAttribute('aria-valuetext', `${day}, ${state}`)
    const [dayPart, statePart] = this.querySelector('output')?.children ?? []
    if (dayPart) showText(dayPart, day)
    if (statePart) showText(statePart, `, ${state}`)
    const share = Number(slider.value) / Number(this.dataset['days'] ?? 1)
    this.querySelector('.chosen')?.setAttribute('x', `${share * 100}%`)
  }
}

/** Defines the element, which starts wherever the page shows it. */
export function setUpTimeline() {
  customElements.define('year-timeline', YearTimeline)
}

/**
 * @param {HTMLElement} timeline
 * @param {HTMLInputElement} slider
 */
function dayAt(timeline, slider) {
  const first = Date.parse(timeline.dataset['firstDay'] ?? '')
  return new Date(first + Number(slider.value) * DAY_MS).toISOString().slice(0, 10)
}

/**
 * Opens the slider's day with the form of days.
 *
 * @param {HTMLElement} timeline
 * @param {HTMLInputElement} slider
 */
function openDay(timeline, slider) {
  const field = document.getElementById('day-field')
  if (!(field instanceof HTMLInputElement)) return
  field.value = dayAt(timeline, slider)
  field.form?.requestSubmit()
}

/**
 * @param {string} href
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} whether the lists were fetched
 */
async function fetchPart(href, signal) {
  try {
    const response = await fetch(href, { signal })
    if (!response.ok) return false
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    for (const part of page.querySelectorAll('[data-rows]')) {
      const day = part.getAttribute('data-rows') ?? ''
      const rows = [...part.querySelectorAll('.item')]
      lists.delete(day)
      lists.set(day, rows)
    }
    for (const day of [...lists.keys()].slice(0, Math.max(0, lists.size - DAYS_MAX))) lists.delete(day)
    return true
  } catch {
    return false
  }
}

/**
 * Gives rows their elements on the page: that of the same story, which moves, else that of a story that leaves, since a
 * changed row is laid out faster than a new one.
 *
 * @param {readonly Element[]} rows as the server rendered them
 * @param {readonly Element[]} changeable elements of the page that stand for other rows
 */
function elementsOf(rows, changeable) {
  const byKey = new Map(changeable.map((element) => [keyOf(element), element]))
  const keys = new Set(rows.map(keyOf))
  const leaving = changeable.filter((element) => !keys.has(keyOf(element)))
  return rows.map((row) => {
    const element = byKey.get(keyOf(row)) ?? leaving.pop() ?? document.importNode(row, true)
    morph(element, row)
    return element
  })
}

/**
 * Makes an element equal to another one of the same name with few changes, since each costs a layout.
 *
 * @param {Element} element
 * @param {Element} target
 */
function morph(element, target) {
  for (const { name, value } of target.attributes)
    if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  for (const name of element.getAttributeNames())
    if (name !== 'style' && !target.hasAttribute(name)) element.removeAttribute(name)
  const [nodes, targets] = [[...element.childNodes], [...target.childNodes]]
  if (
    nodes.length !== targets.length ||
    nodes.some((node, index) => node.nodeName !== targets[index]?.nodeName)
  )
    return element.replaceChildren(...targets.map((node) => document.importNode(node, true)))
  for (const [index, node] of nodes.entries()) {
    const other = targets[index]
    if (!other || node.isEqualNode(other)) continue
    if (node instanceof Element && other.nodeType === Node.ELEMENT_NODE)
      morph(node, /** @type {Element} */ (other))
    else node.nodeValue = other.nodeValue
  }
}

/**
 * Sets a text; an equal one would cost a layout too.
 *
 * @param {Element} element
 * @param {string} text
 */
function showText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

const REDUCED = matchMedia('(prefers-reduced-motion: reduce)')

/** Moves under way. @type {Map<Element, Animation>} */
const moves = new Map()

/**
 * Gives a list other rows. Those that are seen move from where they were to their new place.
 *
 * @param {Element} list
 * @param {readonly Element[]} rows
 * @param {ReadonlyMap<string, DOMRect>} places of the rows until now, by save key
 */
function reorder(list, rows, places) {
  const isSame =
    list.children.length === rows.length &&
    rows.every((row, index) => row.parentElement === list && orderOf(row) === index)
  if (!isSame) replaceRows(list, rows)
  hideRows(list)
  balance(list)
  if (isSame) return
  for (const move of moves.values()) move.cancel()
  moves.clear()
  if (REDUCED.matches) return
  const newPlaces = placesOf(rows)
  for (const row of rows) {
    const [from, to] = [places.get(keyOf(row)), newPlaces.get(keyOf(row))]
    const isUnmoved = from && to && Math.abs(from.x - to.x) < 1 && Math.abs(from.y - to.y) < 1
    if (!to || isUnmoved || !(isSeen(to) || (from && isSeen(from)))) continue
    const start = from ? { transform: `translate(${from.x - to.x}px, ${from.y - to.y}px)` } : { opacity: 0 }
    const end = from ? { transform: 'none' } : { opacity: 1 }
    moves.set(row, row.animate([start, end], { duration: MOVE_MS, easing: 'ease-out' }))
  }
}

/**
 * Changes the rows of a list. Their order is one of style until {@link settle}: a row that is moved in the document is
 * laid out anew.
 *
 * @param {Element} list
 * @param {readonly Element[]} rows
 */
function replaceRows(list, rows) {
  const staying = new Set(rows)
  for (const row of [...list.children].filter((child) => !staying.has(child))) row.remove()
  list.append(...rows.filter((row) => row.parentElement !== list))
  for (const [index, row] of rows.entries())
    if (row instanceof HTMLElement && orderOf(row) !== index) row.style.order = String(index)
}

/** Gives both columns of a list the same number of rows. @param {Element} list */
function balance(list) {
  const shown = [...list.children].filter((row) => row instanceof HTMLElement && !row.hidden)
  if (list instanceof HTMLElement) list.style.setProperty('--rows', String(Math.ceil(shown.length / 2)))
}

/** The place of a row in its list while the slider is moved; NaN for a row that has none. @param {Element} row */
function orderOf(row) {
  return row instanceof HTMLElement ? Number.parseInt(row.style.order, 10) : NaN
}

/** Puts the rows of a list into the document in the order in which they are seen. @param {Element} list */
function settle(list) {
  const rows = [...list.children]
  if (rows.every((row) => Number.isNaN(orderOf(row)))) return
  const { activeElement } = document
  list.append(...rows.toSorted((a, b) => orderOf(a) - orderOf(b)))
  for (const row of rows) if (row instanceof HTMLElement) row.style.removeProperty('order')
  if (activeElement instanceof HTMLElement && list.contains(activeElement))
    activeElement.focus({ preventScroll: true })
}

/** @param {DOMRect} place */
function isSeen({ top, bottom }) {
  return bottom > 0 && top < window.innerHeight
}

/** @param {Iterable<Element>} rows */
function placesOf(rows) {
  return new Map([...rows].map((row) => [keyOf(row), row.getBoundingClientRect()]))
}

/** @param {Element} row */
function keyOf(row) {
  return row.getAttribute('data-key') ?? ''
}
