import { DAY_MS, minuteSeenFrom } from '../../../domain/time.ts'
import { formatDay } from '../html.ts'
import { fetchPage, make, onReturn, store, stored } from './dom.ts'

/** Time without another key after which the slider's day opens, in milliseconds. */
const KEY_PAUSE_MS = 500

/**
 * Sets up the slider over the days of the history: it names its day while it is moved, shows the rows of Popular that the
 * server rendered for it, fetched ahead, and opens the day when it is released.
 */
export function setUpTimeline() {
  const timeline = document.querySelector('.year-timeline')
  const slider = document.getElementById('slider')
  if (!(timeline instanceof HTMLElement) || !(slider instanceof HTMLInputElement)) return
  timeline.style.setProperty('--days', timeline.dataset['days'] ?? '1')
  bindSlider(timeline, slider, replay(timeline, slider))
  setUpTips(timeline, slider)
  const { ranks } = timeline.dataset
  if (ranks !== undefined) void setUpMarks(ranks)
}

function bindSlider(
  timeline: HTMLElement,
  slider: HTMLInputElement,
  { show, fetchParts }: ReturnType<typeof replay>,
) {
  let isMovedByKeys = false
  let opening: ReturnType<typeof setTimeout> | undefined
  const open = async () => {
    const problem = await openDay(dayAt(timeline, slider.value))
    if (problem === null) return
    slider.value = slider.defaultValue
    // What names the slider's day goes back with it.
    slider.dispatchEvent(new Event('input'))
    showProblem(timeline, problem)
  }
  for (const type of ['pointerenter', 'focus', 'input'])
    slider.addEventListener(type, () => void fetchParts())
  slider.addEventListener('input', show)
  slider.addEventListener('keydown', () => (isMovedByKeys = true))
  slider.addEventListener('pointerdown', () => (isMovedByKeys = false))
  slider.addEventListener('change', () => {
    clearTimeout(opening)
    opening = setTimeout(() => void open(), isMovedByKeys ? KEY_PAUSE_MS : 0)
  })
  onReturn(() => {
    slider.value = slider.defaultValue
    dayForm()?.reset()
    show()
  })
}

/** Names the bar under the pointer, and that of the slider's day while the slider has the focus. */
function setUpTips(timeline: HTMLElement, slider: HTMLInputElement) {
  const tip = make('span', { className: 'tip', hidden: true })
  tip.setAttribute('aria-hidden', 'true')
  slider.after(tip)
  const days = Number(timeline.dataset['days'] ?? 1)
  const show = (index: number) => {
    const day = dayAt(timeline, index)
    tip.textContent = `${formatDay(day)} · ${newText(barOf(timeline, day))}`
    tip.style.left = `clamp(4rem, ${((index + 0.5) / days) * 100}%, 100% - 4rem)`
    tip.hidden = false
  }
  const ofPointer = ({ clientX }: PointerEvent) => {
    const { left, width } = slider.getBoundingClientRect()
    show(Math.min(days - 1, Math.max(0, Math.floor(((clientX - left) / width) * days))))
  }
  const ofSlider = () => show(Number(slider.value))
  for (const type of ['pointermove', 'pointerdown'] as const) slider.addEventListener(type, ofPointer)
  for (const type of ['focus', 'input']) slider.addEventListener(type, ofSlider)
  for (const type of ['pointerleave', 'blur']) slider.addEventListener(type, () => (tip.hidden = true))
}

function barOf(timeline: HTMLElement, day: string) {
  return timeline.querySelector(`rect[data-day="${day}"]`)
}

/** The number of items that a day brought, in words. */
function newText(bar: Element | null) {
  if (bar === null) return 'no publication'
  const count = bar.getAttribute('data-new') ?? ''
  return count === '' ? 'published' : `${count} new`
}

/** Says below the bars why a day was not opened. */
function showProblem(timeline: HTMLElement, problem: string) {
  const line = timeline.querySelector('.problem') ?? make('p', { className: 'problem' })
  line.setAttribute('role', 'alert')
  line.textContent = problem
  timeline.append(line)
}

/** Shows the slider's day, and fetches the rows for that. */
function replay(timeline: HTMLElement, slider: HTMLInputElement) {
  const { rows: path, parts: ends = '' } = timeline.dataset
  const section = timeline.closest('#feed')
  const list = path === undefined ? null : document.querySelector('#column-popular ol')
  const original = [...(list?.children ?? [])]
  let shown = original
  /** Rows of Popular as the server rendered them, by as-of day. */
  const days: Map<string, Element[]> = new Map()
  /** Times of the ends of the parts that are not fetched yet, newest first. */
  const parts = ends.split(' ').filter((end) => end !== '')
  let isFetching = false
  const output = timeline.querySelector('output')
  const [title, value] = [output?.textContent ?? '', slider.getAttribute('aria-valuetext') ?? '']

  const show = () => {
    const isMoved = slider.value !== slider.defaultValue
    const day = dayAt(timeline, slider.value)
    const rows = isMoved ? days.get(day) : original
    describe(timeline, slider, day)
    // The opened day may be a gap, of which the page says more.
    if (!isMoved && output) output.textContent = title
    if (!isMoved) slider.setAttribute('aria-valuetext', value)
    section?.classList.toggle('travelling', isMoved)
    // Where the rows are not those of a publication, only the dimmed section says that the day is another.
    section?.classList.toggle('unlisted', rows === undefined)
    if (!list || rows === undefined || rows === shown) return
    shown = rows
    list.replaceChildren(...rows)
  }

  /** Fetches the parts of the period one after another, that of the slider's day first. */
  const fetchParts = async () => {
    if (isFetching) return
    isFetching = true
    while (parts.length > 0) {
      const day = dayAt(timeline, slider.value)
      const index = Math.max(
        0,
        parts.findLastIndex((end) => end.slice(0, 10) > day),
      )
      const fetched = await fetchRows(`${path}?at=${parts[index]}`)
      // The next move tries again.
      if (fetched === null) break
      for (const [each, rows] of fetched) days.set(each, rows)
      parts.splice(index, 1)
      show()
    }
    isFetching = false
  }
  return { show, fetchParts }
}

/** The rows of some days; null if they cannot be read. */
async function fetchRows(href: string): Promise<[day: string, rows: Element[]][] | null> {
  const page = await fetchPage(href)
  const parts = page && [...page.querySelectorAll('[data-rows]')]
  return (
    parts && parts.map((part) => [part.getAttribute('data-rows') ?? '', [...part.querySelectorAll('.item')]])
  )
}

/** Names the slider's day in the title and as its value text. */
function describe(timeline: HTMLElement, slider: HTMLInputElement, day: string) {
  const bar = barOf(timeline, day)
  slider.setAttribute('aria-valuetext', `${day}, ${bar?.getAttribute('data-state') ?? 'a gap'}`)
  const output = timeline.querySelector('output')
  if (output) output.textContent = formatDay(day) + (bar === null ? ', a gap' : '')
  const share = Number(slider.value) / Number(timeline.dataset['days'] ?? 1)
  timeline.querySelector('.chosen')?.setAttribute('x', `${share * 100}%`)
}

/** @param index of the day in the period */
function dayAt(timeline: HTMLElement, index: number | string) {
  const first = Date.parse(timeline.dataset['firstDay'] ?? '')
  return new Date(first + Number(index) * DAY_MS).toISOString().slice(0, 10)
}

function dayForm() {
  const form = document.getElementById('day-field')?.closest('form')
  return form instanceof HTMLFormElement ? form : null
}

/**
 * Opens a day at the address of the form of days; the slider of the opened page has the focus.
 *
 * @returns a sentence if the day cannot be loaded, and then nothing changes; else null
 */
async function openDay(day: string): Promise<string | null> {
  const form = dayForm()
  if (!form) return null
  const fields = new FormData(form)
  fields.set('day', day)
  const query = new URLSearchParams()
  for (const [name, value] of fields) if (typeof value === 'string') query.append(name, value)
  const problem = (why: string) => `${formatDay(day)} cannot be loaded: ${why}.`
  try {
    const response = await fetch(`/?${query}`)
    if (!response.ok) return problem(`the server responded with ${response.status}`)
    // The loaded page comes from the cache, or is checked with the server again.
    location.assign(`${response.url.split('#')[0]}#slider`)
    return null
  } catch {
    return problem('the server cannot be reached')
  }
}

/** Storage of the publications that this browser saw: the newest one, and the newest one of the visit before. */
const STORED = 'dash-seen'

/** Name of a publication: position in its ledger and digest, so that no position of another archive is mistaken for it. */
const NAME = /^\d{1,9}-[0-9a-f]{64}$/

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Publication time of the one seen at the last visit; null for a first visit. */
let lastVisit: Promise<string | null> = Promise.resolve(null)

/** Shows what changed since the last visit instead of since yesterday, and counts it in the title. */
export function setUpSince() {
  const panel = document.querySelector('#since .since')
  const newest = panel?.getAttribute('data-newest') ?? ''
  if (!panel || !NAME.test(newest)) return
  const seq = (name: string) => Number.parseInt(name, 10)
  const { before, isNew } = lastSeen(STORED, newest, NAME, (one, other) => seq(one) >= seq(other))
  if (before === null) return
  lastVisit = fetchSince(before).then((response) => {
    if (response === null) return null
    response.removeAttribute('open')
    panel.replaceWith(response)
    if (isNew) countInTitle(response)
    return response.getAttribute('data-base-at')
  })
}

/** The panel of changes since a publication; null if the server does not know that or cannot be reached. */
async function fetchSince(name: string): Promise<Element | null> {
  const panel = (await fetchPage(`/since?since=${name}`))?.querySelector('#since .since')
  return panel?.getAttribute('data-base') === name ? document.adoptNode(panel) : null
}

/** Counts the changes in the title until the panel is opened. */
function countInTitle(panel: Element) {
  const count = Number(panel.getAttribute('data-count'))
  if (!(count > 0)) return
  const prefix = `(${count}) `
  document.title = prefix + document.title
  panel.addEventListener('toggle', () => {
    // The parser of the response reports an opening too.
    if (panel.hasAttribute('open') && document.title.startsWith(prefix))
      document.title = document.title.slice(prefix.length)
  })
}

/** Marks the rows of Popular against the publication of the last visit. @param ranks path of the ranks */
async function setUpMarks(ranks: string) {
  const at = await lastVisit
  if (at === null) return
  try {
    const response = await fetch(`${ranks}?at=${at}&count=1`)
    const { publications, items } = await response.json()
    const popular: [number][] | null = publications[0]?.popular ?? null
    if (popular === null) return
    const before = new Map(popular.map(([index], place) => [items[index].key, place + 1]))
    for (const row of document.querySelectorAll('#column-popular .item')) markRow(row, before)
    // The marks of the other lists compare with another publication.
    for (const mark of document.querySelectorAll('.beyond .item > .rank + span')) showMark(mark, 0, undefined)
  } catch {
    // The marks of the server stay.
  }
}

function markRow(row: Element, before: Map<string, number>) {
  const rank = Number.parseInt(row.querySelector('.rank')?.textContent ?? '', 10)
  const mark = row.querySelector('.rank + span')
  if (mark) showMark(mark, rank, before.get(row.getAttribute('data-key') ?? '') ?? null)
}

/** Shows how a rank changed. @param before the earlier rank; null for a new item, undefined if unknown */
function showMark(mark: Element, rank: number, before: number | null | undefined) {
  const rose = typeof before === 'number' ? before - rank : 0
  const isNew = before === null
  const name = isNew ? 'rose new' : rose === 0 ? '' : `rose ${rose > 0 ? 'up' : 'down'}`
  const text = isNew ? 'NEW' : rose === 0 ? '' : `${rose > 0 ? '▲' : '▼'} ${Math.abs(rose)}`
  mark.className = name
  mark.textContent = text
}

/**
 * Keeps the newest version of something that this browser saw, and the one before.
 *
 * @param isLater whether the first version is later than the second; an older page than the last one changes nothing
 * @returns `before`: the version of the last visit, null for a first visit; `isNew`: false if the newest was seen already
 */
function lastSeen(
  key: string,
  newest: string,
  form: RegExp,
  isLater: (one: string, other: string) => boolean,
): { before: string | null; isNew: boolean } {
  const seen = Object(stored(key))
  const textOf = (value: unknown) => (typeof value === 'string' && form.test(value) ? value : null)
  const [last, earlier] = [textOf(seen.newest), textOf(seen.before)]
  if (last === null || last === newest) {
    const before = last === null ? null : earlier
    store(key, { newest, before })
    return { before, isNew: false }
  }
  if (!isLater(newest, last)) return { before: earlier, isNew: false }
  store(key, { newest, before: last })
  return { before: last, isNew: true }
}

/**
 * Marks the rows that entered a live list since the snapshot that this browser saw last, instead of since yesterday, and
 * counts those that the visitor has not hidden.
 */
export function setUpNews() {
  const line = document.querySelector('.news')
  const snapshot = line?.getAttribute('data-snapshot') ?? ''
  const yesterday = line?.getAttribute('data-since') ?? ''
  if (!line || !INSTANT.test(snapshot) || !INSTANT.test(yesterday)) return
  const { before } = lastSeen('dash-snapshot', snapshot, INSTANT, (one, other) => one > other)
  const since = before ?? yesterday
  const isNew = (mark: Element) => (mark.getAttribute('data-entered') ?? '') > since
  const shown = [...document.querySelectorAll('.item:not([hidden]) [data-entered]')]
  const entered = shown.filter(isNew)
  const [first] = entered
  // The clock of the visitor may be wrong.
  const today = Date.parse(line.getAttribute('data-today') ?? '')
  const text = `${first ? entered.length : 'none'} new since ${minuteSeenFrom(today, Date.parse(since))}`
  for (const mark of document.querySelectorAll('[data-entered]'))
    showMark(mark, 0, isNew(mark) ? null : undefined)
  document.getElementById('new')?.removeAttribute('id')
  if (first) first.id = 'new'
  line.replaceChildren(first ? make('a', { href: '#new' }, text) : text)
}
