import { COLUMNS, COLUMN_NAMES } from '../../domain/feed/columns.ts'
import type { ColumnName } from '../../domain/feed/columns.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import { unitOf } from '../../domain/feed/subscription.ts'
import type { TimelineStop } from '../../domain/year/history/calendar.ts'
import { bumpColumns } from '../../domain/year/history/rank-history.ts'
import { xml } from '../feed/formats.ts'
import type { Xml } from '../feed/formats.ts'
import {
  DAYS_Y,
  PALETTES,
  chartFrame,
  dayLabels,
  gapBand,
  linePath,
  ranksTo,
  round,
  shortTitle,
} from './rank-charts.ts'
import type { Band, ChartColumn, ChartTheme, Palette } from './rank-charts.ts'
import { manifestsOf } from './year-lists.ts'
import type { ListsByDigest } from './year-lists.ts'

/** Sizes of the chart of an item, in pixels: narrow enough to be read on a phone as a whole. */
const ITEM_CHART_SIZE = { width: 480, height: 356 }
const ITEM_PLOT = { left: 56, right: 464, top: 68, bottom: 212 }

/** The plot of the numbers, below that of the ranks, and the baseline of the days below both. */
const NUMBERS_PLOT = { ...ITEM_PLOT, top: 256, bottom: 320 }
const DAYS_BASELINE = 344

/** Longest heading of the chart of an item, in code points. */
const HEADING_MAX = 52

export interface ItemChart {
  heading: string
  /** For people who do not see the picture. */
  title: string
  columns: readonly ChartColumn[]
  /** The ranks of the item by column, in one or two lists; null where it has none. */
  series: readonly { name: string; ranks: readonly (number | null)[] }[]
  /** The points of the item by column, with their unit; null where they are unknown. */
  numbers: { name: string; values: readonly (number | null)[] }
  theme: ChartTheme | 'page'
}

/**
 * Draws the ranks of one item over time, and its points below them on the same days, as an SVG picture without scripts,
 * styles or references.
 */
export function itemChartSvg({ heading, title, columns, series, numbers, theme }: ItemChart): string {
  const palette = PALETTES[theme]
  const ranks = series.flatMap((each) => each.ranks.filter((rank) => rank !== null))
  const worst = Math.max(5, ...ranks)
  const width = (ITEM_PLOT.right - ITEM_PLOT.left) / Math.max(1, columns.length)
  const xOf = (index: number): number => ITEM_PLOT.left + (index + 0.5) * width
  const rankY = scaleOf(ITEM_PLOT, 1, worst)
  const ticks = ticksTo(worst).map((tick) => ({ y: rankY(tick), label: `#${tick}` }))
  const band = { width, top: ITEM_PLOT.top, height: NUMBERS_PLOT.bottom - ITEM_PLOT.top }
  const names = series.map(({ name }) => name)
  return chartFrame(
    { ...ITEM_CHART_SIZE, title, palette, columns },
    xml`<text x="16" y="24" font-size="15" font-weight="600" fill="${palette.ink}">${shortTitle(heading, HEADING_MAX)}</text>
${names.map((name, index) => legend(name, index, palette.lines[index] ?? palette.ink, palette.soft))}
${columns.some(({ isGap }) => isGap) ? gapLegend(names.length, palette) : xml``}
${columns.map((column, index) => gapBand(column, { ...band, x: xOf(index) }))}
${grid(ticks, palette)}
${series.map((each, index) => linePath(each.ranks, palette.lines[index] ?? palette.ink, xOf, rankY))}
${numbersPlot(numbers, palette, xOf)}
<g fill="${palette.soft}" font-size="11" transform="translate(0 ${DAYS_BASELINE - DAYS_Y})">${dayLabels(columns, xOf)}</g>
${theme === 'page' ? columns.map((_, index) => dayArea({ columns, series, numbers }, index, { ...band, x: xOf(index) })) : xml``}`,
  )
}

/** The area of a day, which names its numbers under the pointer. */
function dayArea(
  { columns, series, numbers }: Pick<ItemChart, 'columns' | 'series' | 'numbers'>,
  index: number,
  { x, width, top, height }: Band,
): Xml {
  const { firstDay = '', lastDay = '', isGap = false } = columns[index] ?? {}
  const points = numbers.values[index] ?? null
  const facts = [
    ...series.flatMap(({ name, ranks }) =>
      typeof ranks[index] === 'number' ? [`#${ranks[index]} ${name}`] : [],
    ),
    ...(points === null ? [] : [`${EXACT_FORMAT.format(points)} ${numbers.name}`]),
  ]
  const days = firstDay === lastDay ? firstDay : `${firstDay} to ${lastDay}`
  const text = isGap ? 'gap, nothing was published' : facts.length > 0 ? facts.join(', ') : 'no rank'
  return xml`<rect class="day" x="${round(x - width / 2)}" y="${top}" width="${round(width)}" height="${height}" fill="none" pointer-events="all"><title>${days}: ${text}</title></rect>
`
}

/** Converts a value to its y coordinate in a plot. @param top value at the top */
function scaleOf(plot: typeof ITEM_PLOT, top: number, bottom: number): (value: number) => number {
  const share = (plot.bottom - plot.top) / (bottom - top || 1)
  return (value) => round(plot.top + (value - top) * share)
}

/** Lines across a plot with their labels. */
function grid(ticks: readonly { y: number; label: string }[], { line, soft }: Palette): Xml {
  return xml`<g stroke="${line}">${ticks.map(({ y }) => xml`<path d="M${ITEM_PLOT.left} ${y}H${ITEM_PLOT.right}"/>`)}</g>
<g fill="${soft}" text-anchor="end">${ticks.map(({ y, label }) => xml`<text x="${ITEM_PLOT.left - 8}" y="${y + 4}">${label}</text>`)}</g>`
}

const EXACT_FORMAT = new Intl.NumberFormat('en')
const COMPACT_FORMAT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 })

function numberText(value: number): string {
  return (value < 100_000 ? EXACT_FORMAT : COMPACT_FORMAT).format(value)
}

/** The plot of the points between their least and their greatest; nothing if none is known. */
function numbersPlot(
  { name, values }: ItemChart['numbers'],
  palette: Palette,
  xOf: (index: number) => number,
): Xml {
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return xml``
  const greatest = Math.max(...known)
  const least = Math.min(...known)
  const lowest = least === greatest ? Math.min(0, least - 1) : least
  const yOf = scaleOf(NUMBERS_PLOT, greatest, lowest)
  const ticks = [greatest, lowest].map((value) => ({ y: yOf(value), label: numberText(value) }))
  return xml`<text x="16" y="${NUMBERS_PLOT.top - 16}" fill="${palette.soft}">${name}</text>
${grid(ticks, palette)}
${linePath(values, palette.ink, xOf, yOf)}`
}

/** Rank 1 and a few round ranks. */
function ticksTo(worst: number): number[] {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000].find((each) => worst / each <= 6) ?? worst
  return [1, ...ranksTo(Math.floor(worst / step)).map((count) => count * step)].filter(
    (tick, index) => index === 0 || tick > 1,
  )
}

/** Width of a name with its mark above the chart of an item. */
const LEGEND_WIDTH = 150

function gapLegend(index: number, { soft }: Palette): Xml {
  const x = 16 + index * LEGEND_WIDTH
  return xml`<rect x="${x}" y="36" width="18" height="12" fill="url(#gap)"/><text x="${x + 24}" y="46" fill="${soft}">gap</text>
`
}

function legend(name: string, index: number, colour: string, ink: string): Xml {
  const x = 16 + index * LEGEND_WIDTH
  return xml`<path d="M${x} 42h18" stroke="${colour}" stroke-width="3"/><text x="${x + 24}" y="46" fill="${ink}">${name}</text>
`
}

/** The ranks of an item in a range, in its own list and in Popular; null if no publication lists it. */
export function itemChartOf(
  stops: readonly TimelineStop[],
  lists: ListsByDigest,
  key: string,
): Omit<ItemChart, 'theme'> | null {
  const newestFirst = manifestsOf(stops).toReversed()
  const listed = (name: ColumnName): boolean =>
    newestFirst.some(({ sha256 }) => lists.get(sha256)?.ranks[name].has(key))
  const names = COLUMN_NAMES.filter(listed)
  if (names.length === 0) return null
  const items = newestFirst.flatMap(({ sha256 }) => lists.get(sha256)?.popular ?? [])
  const series = names.map((name) => ({
    name: `in ${COLUMNS[name]}`,
    ranks: bumpColumns(stops, (sha256) => lists.get(sha256)?.ranks[name] ?? null).map(
      ({ ranks }) => ranks?.get(key) ?? null,
    ),
  }))
  const heading = items.find((item) => item.key === key)?.title ?? key
  const values = stops.map((stop) =>
    stop.kind === 'gap' ? null : (lists.get(stop.item.manifest.sha256)?.positions.get(key)?.points ?? null),
  )
  const [{ source } = { source: '' }] = itemsOfKey(key)
  return {
    heading,
    title: `${heading}: rank in the Year`,
    columns: bumpColumns(stops, () => null),
    series,
    numbers: { name: unitOf(source), values },
  }
}
