import { make } from './dom.js'
import { setUpMarks, showMark } from './since.js'

/**
 * The slider over the days of the history: it names its day while it is moved, reorders Popular from lists fetched ahead,
 * and opens the day when it is released.
 *
 * @typedef {{ key: string, source: string, title: string, url: string | null, discussionUrl: string | null }} Item
 * @typedef {{ item: Item, points: number, comments: number | null }} Row
 * @typedef {{ asOfDay: string, popular: [number, number, number | null][] | null }} Publication
 * @typedef {{ publications: Publication[], items: Item[] }} Ranks
 */

const DAY_MS = 86_400_000

/** Publications in one response. */
const PART_COUNT = 30

/** Most days kept in memory. */
const DAYS_MAX = 200

/** Most rows kept in memory. */
const ELEMENTS_MAX = 1_000

/** Duration of a row's move, in milliseconds. */
const MOVE_MS = 160

/** Lists of Popular by as-of day. @type {Map<string, Row[]>} */
const lists = new Map()

class YearTimeline extends HTMLElement {
  /** Aborts the requests of an element that was removed. */
  #removed = new AbortController()
  /** @type {string[]} */
  #parts = []
  #isFetching = false
  #isFrameRequested = false
  /** Children of the list before the slider was moved. @type {Element[] | null} */
  #original = null

  connectedCallback() {
    this.#removed = new AbortController()
    const { signal } = this.#removed
    this.style.setProperty('--days', this.dataset['days'] ?? '1')
    this.#parts = (this.dataset['parts'] ?? '').split(' ').filter((part) => part !== '')
    const slider = this.#slider()
    if (!slider) return
    for (const type of ['pointerenter', 'focus', 'input'])
      slider.addEventListener(type, () => void this.#fetchParts(), { signal })
    slider.addEventListener('input', () => this.#requestFrame(), { signal })
    slider.addEventListener('change', openDay, { signal })
    if (this.hasAttribute('data-shows-newest')) void setUpMarks(this.dataset['ranks'] ?? '', signal)
  }

  disconnectedCallback() {
    this.#removed.abort()
  }

  #slider() {
    const slider = this.querySelector('input')
    return slider instanceof HTMLInputElement ? slider : null
  }

  /** Fetches the parts of the period one after another, each once. */
  async #fetchParts() {
    if (this.#isFetching) return
    this.#isFetching = true
    for (let part = this.#parts.shift(); part !== undefined; part = this.#parts.shift()) {
      const isFetched = await fetchPart(
        `${this.dataset['ranks']}?at=${part}&count=${PART_COUNT}`,
        this.#removed.signal,
      )
      if (this.#removed.signal.aborted) return
      if (isFetched) this.#requestFrame()
      else {
        // Try this part again at the next move.
        this.#parts.unshift(part)
        break
      }
    }
    this.#isFetching = false
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
    this.#describe(slider, day)
    const list = document.querySelector('#column-popular ol')
    if (!list || (!isMoved && this.#original === null)) return
    const rows = lists.get(day)
    this.#original ??= [...list.children]
    this.closest('#feed')?.classList.toggle('travelling', isMoved)
    if (!isMoved) reorder(list, this.#original)
    else if (rows) reorder(list, elementsOf(rows, this.#original.length, lists.get(this.#dayBefore(day))))
  }

  /** The last published day before a day. @param {string} day */
  #dayBefore(day) {
    const days = [...this.querySelectorAll('rect[data-day]')].map((bar) => bar.getAttribute('data-day') ?? '')
    return days.findLast((each) => each < day) ?? ''
  }

  /**
   * Names the slider's day beside it and as its value text.
   *
   * @param {HTMLInputElement} slider
   * @param {string} day
   */
  #describe(slider, day) {
    const publishedAt = this.querySelector(`rect[data-day="${day}"]`)?.getAttribute('data-at') ?? null
    const state =
      publishedAt === null ? 'a gap' : `published ${publishedAt.slice(0, 16).replace('T', ' ')} UTC`
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

/** Opens the slider's day with the form of days. @param {Event} event */
function openDay({ target }) {
  const timeline = target instanceof Element ? target.closest('year-timeline') : null
  const field = document.getElementById('day-field')
  if (!(timeline instanceof HTMLElement) || !(target instanceof HTMLInputElement)) return
  if (!(field instanceof HTMLInputElement)) return
  field.value = dayAt(timeline, target)
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
    /** @type {Ranks} */
    const { publications, items } = await response.json()
    for (const { asOfDay, popular } of publications) {
      lists.delete(asOfDay)
      lists.set(asOfDay, rowsOf(popular ?? [], items))
    }
    for (const day of [...lists.keys()].slice(0, Math.max(0, lists.size - DAYS_MAX))) lists.delete(day)
    return true
  } catch {
    return false
  }
}

/**
 * @param {[number, number, number | null][]} popular
 * @param {Item[]} items
 * @returns {Row[]}
 */
function rowsOf(popular, items) {
  return popular.flatMap(([index, points, comments]) => {
    const item = items[index]
    return item ? [{ item, points, comments }] : []
  })
}

/** Elements of rows by save key; a row is the same element on every day, so that it moves. @type {Map<string, Element>} */
const elements = new Map()

/**
 * @param {Row[]} rows
 * @param {number} count rows to show
 * @param {Row[] | undefined} before rows of the publication before
 */
function elementsOf(rows, count, before) {
  if (elements.size > ELEMENTS_MAX) elements.clear()
  const ranks = before && new Map(before.map(({ item }, index) => [item.key, index + 1]))
  return storiesOf(rows)
    .slice(0, count)
    .map(({ rank: place, rows: [row, ...others] }) => {
      const { key } = row.item
      const element = elements.get(key) ?? elementOf(row.item)
      elements.set(key, element)
      const [rank, mark, , about] = element.children
      if (rank) showText(rank, String(place))
      if (mark) showMark(mark, place, ranks && (ranks.get(key) ?? null))
      const [, , points, comments] = about?.children ?? []
      if (points) showText(points, row.points.toLocaleString('en'))
      if (comments) showText(comments, row.comments?.toLocaleString('en') ?? '')
      showOthers(about, others)
      return element
    })
}

/**
 * Rows by story, as the server groups them: items with equal addresses stand once, where the first of them ranks.
 *
 * @param {Row[]} rows
 */
function storiesOf(rows) {
  /** @type {Map<string, { rank: number, rows: [Row, ...Row[]] }>} */
  const stories = new Map()
  for (const [index, row] of rows.entries()) {
    const { key, url, source } = row.item
    const { host, pathname, search } = new URL(url !== null && URL.canParse(url) ? url : `key:${key}`)
    const name = host.replace(/^www\./, '') + pathname.replace(/\/$/, '') + search
    const story = stories.get(name)
    if (!story) stories.set(name, { rank: index + 1, rows: [row] })
    else if (story.rows.every(({ item }) => item.source !== source)) story.rows.push(row)
  }
  return [...stories.values()]
}

/**
 * @param {Element | undefined} about
 * @param {Row[]} others rows of the same story on other sources
 */
function showOthers(about, others) {
  const shown = [...(about?.children ?? [])].slice(4)
  if (shown.length === 0 && others.length === 0) return
  for (const old of shown) old.remove()
  for (const { item, points } of others)
    about?.append(
      make(
        'span',
        { className: 'other' },
        make('span', { className: 'source' }, nameOf(item)),
        ' ',
        make('span', { className: 'points' }, points.toLocaleString('en')),
      ),
    )
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

/** An element with the parts of a row of the server, so that the page keeps its height. @param {Item} item */
function elementOf(item) {
  const { key, title, url, discussionUrl } = item
  const rank = make('a', { className: 'rank', href: `/item?${new URLSearchParams({ key })}` })
  const [href, discussion] = [url, discussionUrl].map((each) => /^https?:\/\//i.test(each ?? '') && each)
  const rel = 'noopener noreferrer nofollow ugc'
  const text = make('bdi', {}, title)
  const address = href || discussion
  const link = address ? make('a', { href: address, rel }, text) : text
  const comments = discussion
    ? make('a', { className: 'comments', href: discussion, rel })
    : make('span', { className: 'comments' })
  const about = make(
    'p',
    { className: 'about' },
    make('span', { className: 'source' }, nameOf(item)),
    make('span', { className: 'host' }, href ? new URL(href).hostname.replace(/^www\./, '') : ''),
    make('span', { className: 'points' }),
    comments,
  )
  const heading = make('p', { className: 'title' }, link)
  const element = make('li', { className: 'item' }, rank, make('span', {}), heading, about)
  element.dataset['key'] = key
  return element
}

/** @type {Readonly<Record<string, string>>} */
const NAMES = { hn: 'HN', lesswrong: 'LessWrong', lobsters: 'Lobsters' }

/** Name of the source of an item. @param {Item} item */
function nameOf({ source }) {
  return NAMES[source] ?? source
}

const REDUCED = matchMedia('(prefers-reduced-motion: reduce)')

/** Moves under way. @type {Map<Element, Animation>} */
const moves = new Map()

/**
 * Gives a list other rows. Those that stay move from where they are seen now to their new place.
 *
 * @param {Element} list
 * @param {readonly Element[]} rows
 */
function reorder(list, rows) {
  if (list.children.length === rows.length && rows.every((row, index) => list.children[index] === row)) return
  const isAnimated = !REDUCED.matches
  const keyed = isAnimated ? placesOf(list.children) : null
  for (const move of moves.values()) move.cancel()
  moves.clear()
  arrange(list, rows)
  if (!keyed) return
  const places = rows.map((row) => row.getBoundingClientRect())
  for (const [index, row] of rows.entries()) {
    const [from, to] = [keyed.get(keyOf(row)), places[index]]
    const isUnmoved = from && to && Math.abs(from.x - to.x) < 1 && Math.abs(from.y - to.y) < 1
    if (!to || isUnmoved) continue
    const start = from ? { transform: `translate(${from.x - to.x}px, ${from.y - to.y}px)` } : { opacity: 0 }
    const end = from ? { transform: 'none' } : { opacity: 1 }
    moves.set(row, row.animate([start, end], { duration: MOVE_MS, easing: 'ease-out' }))
  }
}

/**
 * Gives a list these children and leaves in place those that have their place.
 *
 * @param {Element} list
 * @param {readonly Element[]} rows
 */
function arrange(list, rows) {
  for (const [index, row] of rows.entries())
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null)
  while (list.children.length > rows.length) list.lastElementChild?.remove()
}

/** @param {HTMLCollection} rows */
function placesOf(rows) {
  return new Map([...rows].map((row) => [keyOf(row), row.getBoundingClientRect()]))
}

/** @param {Element} row */
function keyOf(row) {
  return row.getAttribute('data-key') ?? ''
}
