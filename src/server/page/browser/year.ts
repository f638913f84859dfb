import { DAY_MS } from '../../../domain/time.ts'
import { formatDay } from '../html.ts'
import { fetchPage, make } from './dom.ts'
import { setUpMarks } from './since.ts'

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
    show()
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
  addEventListener('pageshow', ({ persisted }) => {
    // A browser that goes back may keep the page as it was left.
    if (!persisted) return
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
