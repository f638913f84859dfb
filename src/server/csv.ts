import { z } from 'zod'
import { COLUMN_NAMES } from '../domain/feed/columns.ts'
import type { ColumnName } from '../domain/feed/columns.ts'
import type { PublishedBody } from './respond.ts'
import type { Contract } from './route.ts'

/** Lists as CSV, beside their JSON: the same items in the same order, below a line with the names of the columns. */

const CONTENT_TYPE = 'text/csv'

export const CSV_TYPE = `${CONTENT_TYPE}; charset=utf-8; header=present`

type Cell = string | number | boolean | null | undefined

/** A column: its name, and its value in a row. */
interface Column {
  name: string
  valueOf: (row: object) => Cell
}

/**
 * The columns of a list: the members of its items, those of an object inside as `object.member`. An array inside an item
 * has no column.
 */
function columnsOf(item: z.ZodObject): Column[] {
  return Object.entries(item.shape).flatMap(([name, type]): Column[] => {
    const member = (row: object): unknown => (row as Readonly<Record<string, unknown>>)[name]
    if (type instanceof z.ZodArray) return []
    if (!(type instanceof z.ZodObject)) return [{ name, valueOf: (row) => member(row) as Cell }]
    return columnsOf(type).map((inner) => ({
      name: `${name}.${inner.name}`,
      valueOf: (row) => inner.valueOf(member(row) as object),
    }))
  })
}

/** A text that spreadsheets would run as a formula. */
const FORMULA_START = /^[=+\-@\t\r]/

/** An absent value and null are empty cells. A text that begins like a formula gets an apostrophe, a number never. */
function cellOf(value: Cell): string {
  if (typeof value !== 'string') return String(value ?? '')
  const text = FORMULA_START.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Writes a list (RFC 4180). @param item schema of an item, which names the columns */
export function writeCsv<Item extends z.ZodObject>(item: Item, items: readonly z.infer<Item>[]): string {
  const columns = columnsOf(item)
  const rows = items.map((row) => columns.map(({ valueOf }) => valueOf(row)))
  return [columns.map(({ name }) => name), ...rows]
    .map((cells) => `${cells.map(cellOf).join(',')}\r\n`)
    .join('')
}

/** Writes the lists of a live period or of a Year below each other; the first column names the list. */
export function writeListsCsv<Item extends z.ZodObject>(
  item: Item,
  lists: Readonly<Record<ColumnName, readonly z.infer<Item>[]>>,
): string {
  const rows = COLUMN_NAMES.flatMap((list) => lists[list].map((each) => ({ list, ...each })))
  return writeCsv(z.object({ list: z.enum(COLUMN_NAMES), ...item.shape }), rows)
}

/** Names the file as which a browser saves a body. @param name without its extension */
export function namedCsv(published: PublishedBody, name: string): PublishedBody {
  const disposition = `attachment; filename="${name}.csv"`
  return { ...published, headers: { ...published.headers, 'content-disposition': disposition } }
}

/** The contract of a list as CSV. @param json that of the list as JSON, with the same query, refusals and caching */
export function csvContract<Code extends string>(json: Contract<Code>): Contract<Code> {
  return {
    ...json,
    path: `${json.path}.csv`,
    operationId: `${json.operationId}Csv`,
    summary: `${json.summary}, as CSV`,
    description: [
      `The items of \`${json.path}\` with the same parameters, one a line, below the names of their members.`,
      'The first column of several lists, `list`, names the list. Lists inside an item are left out.',
      'A text that spreadsheets would run as a formula begins with an apostrophe.',
    ].join(' '),
    contentType: CONTENT_TYPE,
    success: z.string(),
    successDescription: 'Comma-separated values (RFC 4180) in UTF-8',
    successHeaders: {
      ...json.successHeaders,
      ETag: 'strong: the SHA-256 of the body in hexadecimal, quoted',
      'Content-Disposition': 'a file name',
    },
  }
}
