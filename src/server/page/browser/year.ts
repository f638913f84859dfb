import { setUpMarks } from './since.ts'

const DAY_MS = 86_400_000

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
  for (const type of ['pointerenter', 'focus', 'input'])
    slider.addEventListener(type, () => void fetchParts())
  slider.addEventListener('input', show)
  slider.addEventListener('keydown', () => (isMovedByKeys = true))
  slider.addEventListener('pointerdown', () => (isMovedByKeys = false))
  slider.addEventListener('change', () => {
    clearTimeout(opening)
    opening = setTimeout(() => openDay(dayAt(timeline, slider)), isMovedByKeys ? KEY_PAUSE_MS : 0)
  })
  addEventListener('pageshow', ({ persisted }) => {
    // A browser that goes back may keep the page as it was left.
    if (!persisted) return
    slider.value = slider.defaultValue
    dayForm()?.reset()
    show()
  })
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

  const show = () => {
    const isMoved = slider.value !== slider.defaultValue
    const day = dayAt(timeline, slider)
    const rows = isMoved ? days.get(day) : original
    describe(timeline, slider, day)
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
      const day = dayAt(timeline, slider)
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

/** @returns null if the server cannot be reached or refuses */
async function fetchRows(href: string): Promise<[day: string, rows: Element[]][] | null> {
  try {
    const response = await fetch(href)
    if (!response.ok) return null
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    return [...page.querySelectorAll('[data-rows]')].map((part) => [
      part.getAttribute('data-rows') ?? '',
      [...part.querySelectorAll('.item')],
    ])
  } catch {
    return null
  }
}

/** Names the slider's day beside it and as its value text. */
function describe(timeline: HTMLElement, slider: HTMLInputElement, day: string) {
  const state = timeline.querySelector(`rect[data-day="${day}"]`)?.getAttribute('data-state') ?? 'a gap'
  slider.setAttribute('aria-valuetext', `${day}, ${state}`)
  const [dayPart, statePart] = timeline.querySelector('output')?.children ?? []
  if (dayPart) dayPart.textContent = day
  if (statePart) statePart.textContent = `, ${state}`
  const share = Number(slider.value) / Number(timeline.dataset['days'] ?? 1)
  timeline.querySelector('.chosen')?.setAttribute('x', `${share * 100}%`)
}

function dayAt(timeline: HTMLElement, slider: HTMLInputElement) {
  const first = Date.parse(timeline.dataset['firstDay'] ?? '')
  return new Date(first + Number(slider.value) * DAY_MS).toISOString().slice(0, 10)
}

function dayForm() {
  const form = document.getElementById('day-field')?.closest('form')
  return form instanceof HTMLFormElement ? form : null
}

/** Opens a day with the form of days; the slider of the opened page has the focus. */
function openDay(day: string) {
  const [form, field] = [dayForm(), document.getElementById('day-field')]
  if (!form || !(field instanceof HTMLInputElement)) return
  field.value = day
  form.action = '/#slider'
  form.requestSubmit()
}
