/**
 * @typedef {{ publications: { asOfDay: string, publishedAt: string }[], gaps: { asOfDay: string }[] }} HistoryIndex
 */

const DAY_MS = 86_400_000

/** The index of the history, requested when the slider is first moved. @type {Promise<Map<string, string>> | null} */
let publishedDays = null

/** Makes the slider over the days of the history show its day while it is moved, and open that day when it is released. */
export function setUpTimeSlider() {
  document.addEventListener('input', (event) => {
    const slider = sliderOf(event)
    if (slider) void describeDay(slider)
  })
  document.addEventListener('change', (event) => {
    const slider = sliderOf(event)
    const dayField = document.getElementById('day-field')
    if (!slider || !(dayField instanceof HTMLInputElement)) return
    dayField.value = dayAt(slider)
    dayField.form?.requestSubmit()
  })
}

/** @param {Event} event */
function sliderOf({ target }) {
  return target instanceof HTMLInputElement && target.id === 'slider' ? target : null
}

/** @param {HTMLInputElement} slider */
function dayAt(slider) {
  const first = Date.parse(slider.dataset['firstDay'] ?? '')
  return new Date(first + Number(slider.value) * DAY_MS).toISOString().slice(0, 10)
}

/**
 * Shows the state of the slider's day beside it and as its value text.
 *
 * @param {HTMLInputElement} slider
 */
async function describeDay(slider) {
  const day = dayAt(slider)
  showText(slider, day)
  publishedDays ??= readIndex(slider.dataset['index'] ?? '')
  try {
    const publishedAt = (await publishedDays).get(day)
    if (dayAt(slider) !== day) return
    const dayState =
      publishedAt === undefined ? 'a gap' : `published ${publishedAt.slice(0, 16).replace('T', ' ')} UTC`
    showText(slider, `${day}, ${dayState}`)
  } catch {
    // Show only the day, and request the index again next time.
    publishedDays = null
  }
}

/**
 * @param {HTMLInputElement} slider
 * @param {string} text
 */
function showText(slider, text) {
  slider.setAttribute('aria-valuetext', text)
  const output = document.getElementById('slider-day')
  if (output) output.textContent = text
}

/** @param {string} href */
async function readIndex(href) {
  const response = await fetch(href)
  /** @type {HistoryIndex} */
  const { publications } = await response.json()
  return new Map(publications.map(({ asOfDay, publishedAt }) => [asOfDay, publishedAt]))
}
