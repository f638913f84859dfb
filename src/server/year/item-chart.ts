import { firstCodePoints } from '../../domain/text.ts'
import type { BumpColumn } from '../../domain/year/history/rank-history.ts'
import { xml } from '../feed/formats.ts'
import type { Xml } from '../feed/formats.ts'
import { PALETTES, chartFrame, dayLabels, gapBand, linePath, round } from './bump-chart.ts'
import type { ChartTheme } from './bump-chart.ts'

/** Sizes in pixels. */
const [WIDTH, HEIGHT] = [720, 320]
const PLOT = { left: 56, right: WIDTH - 24, top: 76, bottom: HEIGHT - 20 }

/** Longest title, in code points. */
const TITLE_MAX = 70

/** Ranks that get a line across, as far as the chart reaches. */
const TICKS = [1, 5, 10, 20, 40, 60, 80, 100]

export interface ItemChart {
  /** Title of the item. */
  title: string
  columns: readonly BumpColumn[]
  /** The ranks of the item by column, in its own list and in Popular; null where it is not listed. */
  series: readonly { name: string; ranks: readonly (number | null)[] }[]
  theme: ChartTheme
  /** Prefix of the title, as for the demo; empty for none. */
  prefix: string
}

/** Draws the ranks of one item over publications as an SVG picture without scripts, styles or references. */
export function itemChartSvg({ title, columns, series, theme, prefix }: ItemChart): string {
  const palette = PALETTES[theme]
  const ranks = series.flatMap((each) => each.ranks.filter((rank) => rank !== null))
  const worst = Math.max(5, ...ranks)
  const width = (PLOT.right - PLOT.left) / Math.max(1, columns.length)
  const xOf = (index: number): number => PLOT.left + (index + 0.5) * width
  const yOf = (rank: number): number =>
    round(PLOT.top + ((rank - 1) * (PLOT.bottom - PLOT.top)) / Math.max(1, worst - 1))
  const start = firstCodePoints(title, TITLE_MAX)
  const name = `${prefix}${start === title ? title : `${start}…`}`
  const ticks = TICKS.filter((tick) => tick <= worst)
  return chartFrame(
    { width: WIDTH, height: HEIGHT, title: `${prefix}${title}: rank in the Year`, palette },
    xml`<text x="16" y="24" font-size="15" font-weight="600" fill="${palette.ink}">${name}</text>
${series.map((each, index) => legend(each.name, index, palette.lines[index] ?? palette.ink, palette.soft))}
${columns.map((column, index) => gapBand(column, { x: xOf(index), width, top: PLOT.top, height: PLOT.bottom - PLOT.top }))}
<g fill="${palette.soft}" font-size="11" transform="translate(0 ${PLOT.top - 28})">${dayLabels(columns, xOf)}</g>
<g stroke="${palette.line}">${ticks.map((tick) => xml`<path d="M${PLOT.left} ${yOf(tick)}H${PLOT.right}"/>`)}</g>
<g fill="${palette.soft}" text-anchor="end">${ticks.map((tick) => xml`<text x="${PLOT.left - 8}" y="${yOf(tick) + 4}">#${tick}</text>`)}</g>
${series.map((each, index) => linePath(each.ranks, palette.lines[index] ?? palette.ink, xOf, yOf))}`,
  )
}

function legend(name: string, index: number, colour: string, ink: string): Xml {
  const x = 16 + index * 200
  return xml`<path d="M${x} 42h18" stroke="${colour}" stroke-width="3"/><text x="${x + 24}" y="46" fill="${ink}">${name}</text>
`
}
