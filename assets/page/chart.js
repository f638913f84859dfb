// Draws charts from the tables of ranks with uPlot, which is loaded before this script.

/** @import UPlot from 'uplot' */

const DAY_SECONDS = 86_400
const HEIGHT = 260

/** Steps between the labelled days of the axis, in days: uPlot would go below one. */
const DAY_STEPS = [1, 2, 3, 7, 14, 30, 60, 90, 180, 365]

/** @type {{ uPlot?: typeof UPlot }} */
const libraries = Object(globalThis)

/** @typedef {{ days: number[], names: string[], values: (number | null)[][] }} Ranks */

/**
 * Reads the numbers of a table, one entry per day from the first to the last; days without a row are null.
 *
 * @param {HTMLTableElement} table
 * @returns {Ranks}
 */
function ranksOf(table) {
  const heads = [...table.querySelectorAll('thead th')]
  const drawnColumns = heads.flatMap((head, column) => (head.hasAttribute('data-drawn') ? [column] : []))
  /** @type {Map<number, HTMLTableRowElement>} */
  const rows = new Map()
  for (const row of table.tBodies[0]?.rows ?? []) {
    const day = row.dataset['day']
    if (day !== undefined) rows.set(Date.parse(day) / 1000, row)
  }
  const [first, last] = [Math.min(...rows.keys()), Math.max(...rows.keys())]
  /** @type {number[]} */
  const days = []
  for (let day = first; day <= last; day += DAY_SECONDS) days.push(day)
  const values = drawnColumns.map((column) =>
    days.map((day) => {
      const value = rows.get(day)?.cells[column]?.dataset['value']
      return value === undefined ? null : Number(value)
    }),
  )
  return { days, names: drawnColumns.map((column) => heads[column]?.textContent?.trim() ?? ''), values }
}

/** Resolves a colour variable of the stylesheet for the canvas. @param {string} name */
function colour(name) {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** @param {number} day */
function formatDay(day) {
  return new Date(day * 1000).toISOString().slice(0, 10)
}

/**
 * @param {Ranks} ranks
 * @param {number} index
 */
function valueText({ days, names, values }, index) {
  const parts = names.map((name, series) => `${name}: ${values[series]?.[index] ?? 'none'}`)
  return `${formatDay(days[index] ?? 0)}, ${parts.join(', ')}`
}

/**
 * @param {Ranks} ranks
 * @param {number} width
 * @param {typeof UPlot} Plot
 * @returns {UPlot.Options}
 */
function plotOptions({ names, values }, width, Plot) {
  const strokes = [colour('--accent'), colour('--attention')]
  const axis = {
    stroke: colour('--soft'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  const maxRank = Math.max(1, ...values.flat().flatMap((value) => value ?? []))
  return {
    width,
    height: HEIGHT,
    // Half of the last day's label extends beyond the axis.
    padding: [null, 40, null, null],
    tzDate: (seconds) => Plot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { range: (_plot, first, last) => [first - DAY_SECONDS, last + DAY_SECONDS] },
      // Rank 1 is at the top.
      y: { dir: -1, range: [0, maxRank + Math.max(1, maxRank * 0.08)] },
    },
    axes: [
      {
        ...axis,
        space: 100,
        incrs: DAY_STEPS.map((step) => step * DAY_SECONDS),
        values: (_plot, days) => days.map(formatDay),
      },
      {
        ...axis,
        size: 52,
        label: 'Rank',
        labelSize: 18,
        splits: (_plot, _axis, _min, max) => rankTicks(Math.floor(max)),
      },
    ],
    series: [
      { label: 'Day', value: (_plot, day) => (day === null ? '–' : formatDay(day)) },
      ...names.map((label, index) => ({
        label,
        stroke: strokes[index % strokes.length] ?? '',
        width: 2,
        dash: index === 0 ? [] : [6, 4],
        spanGaps: false,
        points: { show: true, size: 6 },
      })),
    ],
  }
}

/** Axis ticks: rank 1 and a few round ranks. @param {number} maxRank */
function rankTicks(maxRank) {
  const step =
    [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000].find((each) => maxRank / each <= 6) ?? maxRank
  /** @type {number[]} */
  const ranks = [1]
  for (let rank = step; rank <= maxRank; rank += step) if (rank > 1) ranks.push(rank)
  return ranks
}

/**
 * Draws one chart and redraws it when its width or the colours change. With the keyboard it is a slider over the days.
 *
 * @param {HTMLElement} container
 * @param {typeof UPlot} Plot
 */
function draw(container, Plot) {
  const table = document.getElementById(container.dataset['table'] ?? '')
  if (!(table instanceof HTMLTableElement)) return
  const ranks = ranksOf(table)
  // A single day needs no chart.
  if (ranks.days.length < 2) {
    container.hidden = true
    return
  }
  const last = ranks.days.length - 1
  const data = /** @type {UPlot.AlignedData} */ ([ranks.days, ...ranks.values])
  let index = last
  let plot = new Plot(plotOptions(ranks, container.clientWidth, Plot), data, container)

  const redraw = () => {
    if (!container.isConnected) return
    plot.destroy()
    plot = new Plot(plotOptions(ranks, container.clientWidth, Plot), data, container)
  }
  const updateValue = () => {
    container.setAttribute('aria-valuenow', String(index))
    container.setAttribute('aria-valuetext', valueText(ranks, index))
  }
  const attributes = {
    tabindex: '0',
    role: 'slider',
    'aria-label': `Chart: ${table.caption?.textContent?.trim() ?? ''}; the table below has the same data`,
    'aria-valuemin': '0',
    'aria-valuemax': String(last),
  }
  for (const [name, value] of Object.entries(attributes)) container.setAttribute(name, value)
  updateValue()
  container.addEventListener('keydown', (event) => {
    const nextIndex = indexAfterKey(event.key, index, last)
    if (nextIndex === null) return
    event.preventDefault()
    index = nextIndex
    updateValue()
    const top = plot.valToPos(ranks.values[0]?.[index] ?? 1, 'y')
    plot.setCursor({ left: plot.valToPos(ranks.days[index] ?? 0, 'x'), top })
  })
  new ResizeObserver(() => {
    if (plot.width !== container.clientWidth) plot.setSize({ width: container.clientWidth, height: HEIGHT })
  }).observe(container)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw)
  for (const choice of document.querySelectorAll('input[name="theme"]'))
    choice.addEventListener('change', redraw)
}

/**
 * The index after a key press; null for other keys.
 *
 * @param {string} key
 * @param {number} index
 * @param {number} last
 */
function indexAfterKey(key, index, last) {
  switch (key) {
    case 'ArrowLeft':
    case 'ArrowDown':
      return Math.max(0, index - 1)
    case 'ArrowRight':
    case 'ArrowUp':
      return Math.min(last, index + 1)
    case 'Home':
      return 0
    case 'End':
      return last
    default:
      return null
  }
}

const drawAll = () => {
  if (!libraries.uPlot) return
  for (const container of document.querySelectorAll('.chart:not([role])'))
    if (container instanceof HTMLElement) draw(container, libraries.uPlot)
}
drawAll()
// A section replaced in place has new tables.
new MutationObserver(drawAll).observe(document.getElementById('main') ?? document.body, {
  childList: true,
  subtree: true,
})
