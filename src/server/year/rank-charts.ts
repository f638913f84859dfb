import { firstCodePoints, withoutOverrides } from '../../domain/text.ts'
import type { BumpColumn, BumpLine } from '../../domain/year/history/rank-history.ts'
import type { TimelineStop } from '../../domain/year/history/calendar.ts'
import { bumpColumns, bumpLines } from '../../domain/year/history/rank-history.ts'
import { xml } from '../feed/formats.ts'
import type { Xml } from '../feed/formats.ts'
import { manifestsOf } from './year-lists.ts'
import type { ListsByDigest } from './year-lists.ts'

export const CHART_THEMES = ['light', 'dark'] as const
export type ChartTheme = (typeof CHART_THEMES)[number]

export interface Palette {
  ground: string
  ink: string
  soft: string
  line: string
  gap: string
  /** Colours of the lines, in turn. Neighbours differ in brightness as well as in hue. */
  lines: readonly string[]
}

export const PALETTES: Readonly<Record<ChartTheme | 'page', Palette>> = {
  light: {
    ground: '#ffffff',
    ink: '#16181b',
    soft: '#595e67',
    line: '#e2dfd8',
    gap: '#c98a3a',
    lines: ['#0b57a4', '#b4560f', '#17642f', '#9c2f7d', '#4a8fd6', '#7a5c00', '#5a3fb0', '#2f8f83'],
  },
  dark: {
    ground: '#1a1d21',
    ink: '#ecebe7',
    soft: '#a3a9b2',
    line: '#30353c',
    gap: '#b8863f',
    lines: ['#8fbcf6', '#f1a05f', '#82d29d', '#e79bd0', '#4f92dd', '#d8bf5a', '#b3a1f2', '#5fc4b6'],
  },
  // Inside a page, whose stylesheet has the colours of the chosen theme.
  page: {
    ground: 'var(--surface)',
    ink: 'var(--ink)',
    soft: 'var(--soft)',
    line: 'var(--line)',
    gap: 'var(--attention)',
    lines: ['var(--accent)', 'var(--attention)'],
  },
}

/** Sizes of the bump chart, in pixels. */
const ROW = 24
const HEAD = 30
const FOOT = 12
const LEFT = 36
const PLOT = 560
const LABELS = 340
const WIDTH = LEFT + PLOT + LABELS

/** Longest title beside a line, in code points. */
const TITLE_MAX = 46

export interface BumpChart {
  columns: readonly BumpColumn[]
  lines: readonly BumpLine[]
  /** Number of ranks shown. */
  top: number
  /** Title of an item by save key. */
  titleOf: (key: string) => string
  theme: ChartTheme
  /** Prefix of the title, as for the demo; empty for none. */
  prefix: string
}

/** Draws ranks over publications as an SVG picture without scripts, styles or references. A gap breaks every line. */
export function bumpChartSvg({ columns, lines, top, titleOf, theme, prefix }: BumpChart): string {
  const palette = PALETTES[theme]
  const height = HEAD + top * ROW + FOOT
  const xOf = (index: number): number =>
    LEFT + 12 + ((index + 0.5) * (PLOT - 24)) / Math.max(1, columns.length)
  const title = `${prefix}Top ${top} of the Year, ${daysOf(columns)}`
  const width = (PLOT - 24) / columns.length
  return chartFrame(
    { width: WIDTH, height, title, palette, columns },
    xml`${columns.map((column, index) => gapBand(column, { x: xOf(index), width, top: HEAD, height: top * ROW }))}
<g fill="${palette.soft}" font-size="11">${dayLabels(columns, xOf)}</g>
<g stroke="${palette.line}">${ranksTo(top).map((rank) => xml`<path d="M${LEFT} ${yOf(rank)}h${PLOT}"/>`)}</g>
<g fill="${palette.soft}" text-anchor="end">${ranksTo(top).map((rank) => xml`<text x="${LEFT - 10}" y="${yOf(rank) + 4}">${rank}</text>`)}</g>
${lines.map(({ ranks }, index) => linePath(ranks, palette.lines[index % palette.lines.length] ?? palette.ink, xOf, yOf))}
<g fill="${palette.ink}">${lines.map((line) => labelOf(line, titleOf))}</g>`,
  )
}

interface ChartFrame {
  width: number
  height: number
  /** For people who do not see the picture. */
  title: string
  palette: Palette
  columns: readonly ChartColumn[]
}

export type ChartColumn = Pick<BumpColumn, 'firstDay' | 'lastDay' | 'isGap'>

/** An SVG document with a title, a ground, and the pattern of gaps if it has one. */
export function chartFrame({ width, height, title, palette, columns }: ChartFrame, content: Xml): string {
  return xml`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"
role="img" aria-label="${title}" font-family="Segoe UI,Roboto,Liberation Sans,Arial,sans-serif" font-size="13">
<title>${title}</title>
<rect width="${width}" height="${height}" fill="${palette.ground}"/>
${columns.some(({ isGap }) => isGap) ? gapPattern(palette) : xml``}
${content}
</svg>
`.xml
}

function yOf(rank: number): number {
  return HEAD + (rank - 0.5) * ROW
}

export function ranksTo(top: number): number[] {
  return Array.from({ length: top }, (_, index) => index + 1)
}

function daysOf(columns: readonly ChartColumn[]): string {
  const [first, last] = [columns[0], columns.at(-1)]
  return first && last ? `${first.firstDay} to ${last.lastDay}` : 'no publication'
}

function gapPattern({ gap }: Palette): Xml {
  return xml`<defs><pattern id="gap" width="6" height="6" patternUnits="userSpaceOnUse">
<path d="M0 6 6 0" stroke="${gap}" stroke-width="1.5"/></pattern></defs>
`
}

export interface Band {
  /** Middle of the column. */
  x: number
  width: number
  top: number
  height: number
}

/** The hatched band of a gap; nothing for a publication. */
export function gapBand({ isGap, firstDay, lastDay }: ChartColumn, { x, width, top, height }: Band): Xml {
  if (!isGap) return xml``
  const days = firstDay === lastDay ? firstDay : `${firstDay} to ${lastDay}`
  return xml`<rect x="${round(x - width / 2)}" y="${top}" width="${round(width)}" height="${height}" fill="url(#gap)">
<title>Gap: nothing was published for ${days}</title></rect>
`
}

/** Most days that are written. */
const DAY_LABELS = 6

/** Baseline of the days. */
export const DAYS_Y = 18

/** Some days of the columns. */
export function dayLabels(columns: readonly ChartColumn[], xOf: (index: number) => number): Xml[] {
  const step = Math.max(1, Math.ceil(columns.length / DAY_LABELS))
  return columns.flatMap(({ firstDay }, index) =>
    index % step === 0
      ? [
          xml`<text x="${round(xOf(index))}" y="${DAYS_Y}" text-anchor="middle">${MONTH_DAY.format(Date.parse(firstDay))}</text>`,
        ]
      : [],
  )
}

const MONTH_DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** A line with a break wherever a column has no rank; a rank between two breaks is a dot. */
export function linePath(
  ranks: readonly (number | null)[],
  colour: string,
  atColumn: (index: number) => number,
  atRank: (rank: number) => number,
): Xml {
  const points = ranks.map((rank, index) =>
    rank === null ? null : `${round(atColumn(index))} ${atRank(rank)}`,
  )
  const path = points.map((point, index) => {
    if (point === null) return ''
    return `${index === 0 || points[index - 1] === null ? 'M' : 'L'}${point}`
  })
  const radius = ranks.length > 40 ? 2 : 3.5
  const dots = ranks.flatMap((rank, index) =>
    rank === null
      ? []
      : [xml`<circle cx="${round(atColumn(index))}" cy="${atRank(rank)}" r="${radius}" fill="${colour}"/>`],
  )
  return xml`<path d="${path.join('')}" fill="none" stroke="${colour}" stroke-width="2.5" stroke-linejoin="round"/>${dots}
`
}

/** The label stands beside the last rank; lines are those of the last publication. */
function labelOf({ key, ranks }: BumpLine, titleOf: (key: string) => string): Xml {
  const rank = ranks.findLast((each) => each !== null) ?? 1
  const title = withoutOverrides(titleOf(key))
  return xml`<text x="${LEFT + PLOT}" y="${yOf(rank) + 4}">${shortTitle(title, TITLE_MAX)}<title>${title}</title></text>`
}

export function shortTitle(title: string, length: number): string {
  const start = firstCodePoints(title, length)
  return start === title ? title : `${start}…`
}

export function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** Columns, lines and titles of the bump chart of `popular`, and of its table. */
export function chartOf(
  stops: readonly TimelineStop[],
  lists: ListsByDigest,
): Pick<BumpChart, 'columns' | 'lines' | 'top' | 'titleOf'> {
  const columns = bumpColumns(stops, (sha256) => lists.get(sha256)?.ranks.popular ?? null)
  const newest = manifestsOf(stops).at(-1)
  const items = lists.get(newest?.sha256 ?? '')?.popular ?? []
  const titles = new Map(items.map(({ key, title }) => [key, title]))
  return {
    columns,
    lines: bumpLines(columns, CHART_TOP),
    top: CHART_TOP,
    titleOf: (key: string): string => titles.get(key) ?? key,
  }
}

/** Ranks shown in a bump chart. */
export const CHART_TOP = 20
