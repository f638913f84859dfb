import fastStringWidth from 'fast-string-width'
import { wrapAnsi } from 'fast-wrap-ansi'
import type { Instant } from '../../../domain/time.ts'
import type { CommandContext } from '../../context.ts'
import { hyperlink, knowsHyperlinks, webAddress } from '../../hyperlink.ts'
import { DEFAULT_COLUMNS, escaped } from '../../terminal.ts'

/** The displayed fields of an item of a live period or of the Year. */
export interface NewsItem {
  key: string
  source: string
  rank: number
  title: string
  url: string | null
  discussionUrl: string | null
  points: number
  comments: number | null
  publishedAt: string
}

/** Where lines of items are printed. */
export interface Layout {
  /** Width of the terminal; null for a file or pipe, which gets whole titles and their addresses. */
  columns: number | null
  /** True if titles become links. */
  linked: boolean
}

export function layoutOf({ stdout, env }: CommandContext): Layout {
  return {
    columns: stdout.isTTY ? stdout.columns || DEFAULT_COLUMNS : null,
    linked: knowsHyperlinks(stdout, env),
  }
}

/** Narrowest title; on a narrower terminal its lines wrap. */
const TITLE_MIN_COLUMNS = 10

/**
 * Returns the line of an item: its title behind `before`, cut to the width of a terminal, else with its address.
 *
 * @param before text of the program
 */
function itemLine(before: string, item: NewsItem, { columns, linked }: Layout): string {
  const title = escaped(item.title.replaceAll(/\s+/g, ' ').trim())
  const address = addressOf(item)
  if (columns === null) return address === null ? before + title : `${before}${title}  ${address}`
  const shown = cutToColumns(title, Math.max(TITLE_MIN_COLUMNS, columns - 1 - fastStringWidth(before)))
  return before + (linked && address !== null ? hyperlink(address, shown) : shown)
}

/** Returns the address of an item, else that of its discussion; null without a web page. */
function addressOf({ url, discussionUrl }: NewsItem): string | null {
  return webAddress(url) ?? webAddress(discussionUrl)
}

function cutToColumns(text: string, columns: number): string {
  if (fastStringWidth(text) <= columns) return text
  const [row = ''] = wrapAnsi(text, columns - 1, { hard: true, wordWrap: false }).split('\n')
  return `${row}…`
}

/** Columns of a ranking before the title; a terminal shows those that its width has room for. */
const COLUMNS: readonly {
  head: string
  /** Width of the terminal from which the column is shown. */
  from: number
  alignsLeft?: true
  cellOf: (item: NewsItem, now: Instant) => string
}[] = [
  { head: '#', from: 0, cellOf: ({ rank }) => String(rank) },
  { head: 'points', from: 50, cellOf: ({ points }) => String(points) },
  { head: 'comments', from: 100, cellOf: ({ comments }) => (comments === null ? '-' : String(comments)) },
  { head: 'age', from: 100, cellOf: ({ publishedAt }, now) => ageText(now - Date.parse(publishedAt)) },
  { head: 'source', from: 50, alignsLeft: true, cellOf: ({ source }) => escaped(source) },
]

/**
 * Returns the lines of a ranking: columns with a head on a terminal, else without.
 *
 * @param now time from which ages count
 */
export function rankingLines(items: readonly NewsItem[], now: Instant, layout: Layout): string[] {
  const { columns } = layout
  const cells = COLUMNS.filter(({ from }) => columns === null || columns >= from).map(
    ({ head, alignsLeft, cellOf }) => {
      const column = [head, ...items.map((item) => cellOf(item, now))]
      const width = Math.max(...column.map((cell) => cell.length))
      return column.map((cell) => `${alignsLeft ? cell.padEnd(width) : cell.padStart(width)}  `)
    },
  )
  const [head = '', ...rest] = ['', ...items].map((_item, row) => cells.map((column) => column[row]).join(''))
  const lines = items.map((item, index) => itemLine(rest[index] ?? '', item, layout))
  return columns === null ? lines : [`${head}title`, ...lines]
}

const HOUR_MS = 3_600_000
const HOURS_MAX = 48

/** Formats an age: hours below two days, else days, `19h`, `12d`. */
function ageText(ageMs: number): string {
  const hours = Math.max(0, Math.floor(ageMs / HOUR_MS))
  return hours < HOURS_MAX ? `${hours}h` : `${Math.floor(hours / 24)}d`
}
