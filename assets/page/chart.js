// Draws the tables of ranks as charts, by the library that is loaded before this. A chart holds what its table holds.

/** @import UPlot from 'uplot' */

const DAY_SECONDS = 86_400
const HEIGHT = 260

/** @type {{ uPlot?: typeof UPlot }} */
const loaded = Object(globalThis)

/** @typedef {{ days: number[], names: string[], values: (number | null)[][] }} Ranks */

/**
 * The numbers of a table, a place a day from the first to the last: days without a row have none.
 *
 * @param {HTMLTableElement} table
 * @returns {Ranks}
 */
function ranksOf(table) {
  const heads = [...table.querySelectorAll('thead th')]
  const drawn = heads.flatMap((head, column) => (head.hasAttribute('data-drawn') ? [column] : []))
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
  const values = drawn.map((column) =>
    days.map((day) => {
      const value = rows.get(day)?.cells[column]?.dataset['value']
      return value === undefined ? null : Number(value)
    }),
  )
  return { days, names: drawn.map((column) => heads[column]?.textContent?.trim() ?? ''), values }
}

/** A colour of the stylesheet as it is now, which a canvas cannot look up itself. @param {string} name */
function colour(name) {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** @param {number} day */
function textOfDay(day) {
  return new Date(day * 1000).toISOString().slice(0, 10)
}

/**
 * @param {Ranks} ranks
 * @param {number} at
 */
function textAt({ days, names, values }, at) {
  const parts = names.map((name, index) => `${name}: ${values[index]?.[at] ?? 'none'}`)
  return `${textOfDay(days[at] ?? 0)}, ${parts.join(', ')}`
}

/**
 * @param {Ranks} ranks
 * @param {number} width
 * @param {typeof UPlot} Plot
 * @returns {UPlot.Options}
 */
function optionsOf({ names, values }, width, Plot) {
  const strokes = [colour('--link'), colour('--attention')]
  const axis = {
    stroke: colour('--soft'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  const worst = Math.max(1, ...values.flat().flatMap((value) => value ?? []))
  return {
    width,
    height: HEIGHT,
    // Half of the last day's name stands beyond the axis.
    padding: [null, 40, null, null],
    tzDate: (seconds) => Plot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { range: (_plot, first, last) => [first - DAY_SECONDS, last + DAY_SECONDS] },
      // The first rank stands above.
      y: { dir: -1, range: [0, worst + Math.max(1, worst * 0.08)] },
    },
    axes: [
      { ...axis, space: 100, values: (_plot, days) => days.map(textOfDay) },
      {
        ...axis,
        size: 52,
        label: 'Rank',
        labelSize: 18,
        splits: (_plot, _axis, _min, max) => ranksToName(Math.floor(max)),
      },
    ],
    series: [
      { label: 'Day', value: (_plot, day) => (day === null ? '–' : textOfDay(day)) },
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

/** The first rank and a few round ones below it. @param {number} worst */
function ranksToName(worst) {
  const step =
    [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000].find((each) => worst / each <= 6) ?? worst
  /** @type {number[]} */
  const ranks = [1]
  for (let rank = step; rank <= worst; rank += step) if (rank > 1) ranks.push(rank)
  return ranks
}

/**
 * Draws one chart, again whenever its width or the colours change. With the keyboard it is a slider over the days.
 *
 * @param {HTMLElement} place
 * @param {typeof UPlot} Plot
 */
function draw(place, Plot) {
  const table = document.getElementById(place.dataset['table'] ?? '')
  if (!(table instanceof HTMLTableElement)) return
  const ranks = ranksOf(table)
  // A single day has no course.
  if (ranks.days.length < 2) {
    place.hidden = true
    return
  }
  const last = ranks.days.length - 1
  const data = /** @type {UPlot.AlignedData} */ ([ranks.days, ...ranks.values])
  let at = last
  let plot = new Plot(optionsOf(ranks, place.clientWidth, Plot), data, place)

  const again = () => {
    if (!place.isConnected) return
    plot.destroy()
    plot = new Plot(optionsOf(ranks, place.clientWidth, Plot), data, place)
  }
  const say = () => {
    place.setAttribute('aria-valuenow', String(at))
    place.setAttribute('aria-valuetext', textAt(ranks, at))
  }
  const attributes = {
    tabindex: '0',
    role: 'slider',
    'aria-label': `Chart: ${table.caption?.textContent?.trim() ?? ''}; the table below has the same data`,
    'aria-valuemin': '0',
    'aria-valuemax': String(last),
  }
  for (const [name, value] of Object.entries(attributes)) place.setAttribute(name, value)
  say()
  place.addEventListener('keydown', (event) => {
    const to = placeAfter(event.key, at, last)
    if (to === null) return
    event.preventDefault()
    at = to
    say()
    const top = plot.valToPos(ranks.values[0]?.[at] ?? 1, 'y')
    plot.setCursor({ left: plot.valToPos(ranks.days[at] ?? 0, 'x'), top })
  })
  new ResizeObserver(() => {
    if (plot.width !== place.clientWidth) plot.setSize({ width: place.clientWidth, height: HEIGHT })
  }).observe(place)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again)
  for (const choice of document.querySelectorAll('input[name="theme"]'))
    choice.addEventListener('change', again)
}

/**
 * Where a key leads to; null for a key that leads nowhere.
 *
 * @param {string} key
 * @param {number} at
 * @param {number} last
 */
function placeAfter(key, at, last) {
  switch (key) {
    case 'ArrowLeft':
    case 'ArrowDown':
      return Math.max(0, at - 1)
    case 'ArrowRight':
    case 'ArrowUp':
      return Math.min(last, at + 1)
    case 'Home':
      return 0
    case 'End':
      return last
    default:
      return null
  }
}

const drawAll = () => {
  if (!loaded.uPlot) return
  for (const place of document.querySelectorAll('.chart:not([role])'))
    if (place instanceof HTMLElement) draw(place, loaded.uPlot)
}
drawAll()
// A room that was changed in place has new tables.
new MutationObserver(drawAll).observe(document.getElementById('main') ?? document.body, {
  childList: true,
  subtree: true,
})
