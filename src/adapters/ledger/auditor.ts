import type { SQLiteColumn } from 'drizzle-orm/sqlite-core/columns/common'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableName } from 'drizzle-orm/table'
import { getTableColumns } from 'drizzle-orm/utils'
import type { LedgerAuditor } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import { decodeUtf8 } from '../../domain/text.ts'
import type { LedgerFacts } from '../../domain/inspection.ts'
import type { AuditedContents, UnreadableRow } from '../../domain/year/ledger.ts'
import { asJsonRows, decodeJsonRows, matchesColumn, selectJsonRows } from '../sqlite/rows.ts'
import type { SqlReader } from '../sqlite/rows.ts'
import { openReadOnlyCopy } from '../sqlite/read-only-copy.ts'
import { entries, founding, legacyPublications, toFoundingMark } from './schema.ts'

/**
 * Creates the auditor of a ledger. It does not change the database.
 *
 * @param busyOptions as for any database
 */
export function ledgerAuditor(
  location: DatabaseLocation,
  busyOptions: { nativeBusyMs: number; retryMs: number },
): LedgerAuditor {
  const ledger = openReadOnlyCopy(location, busyOptions)
  return { read: () => ledger.read(readForAudit) }
}

/** Rows per query: a server limits a response to some megabytes. */
const PAGE_ROWS = 1_000

/**
 * Reads both ledgers as stored. Texts are read as hexadecimal digits, so that a cell that is not text, is not UTF-8
 * or contains a NUL damages only its own row. Pages need no transaction: rows are only added.
 *
 * @returns null if the database lists no table of the ledger, because nothing was ever written to it
 */
async function readForAudit(reader: SqlReader): Promise<AuditedContents | null> {
  const { rows } = await reader.execute(
    "SELECT CAST(json_group_array(json_array(name)) AS BLOB) FROM sqlite_schema WHERE type = 'table'",
  )
  const tables = new Set(decodeJsonRows(rows[0]?.[0], 'the list of tables').map(([name]) => name))
  if (!tables.has('entries') && !tables.has('legacy_publications')) return null
  // A missing table makes its statement fail.
  const legacy = await readTable(reader, legacyPublications)
  const marks = await readTable(reader, founding)
  const [unreadableMark] = marks.unreadable
  if (unreadableMark) throw storageDamaged(`the founding row of the ledger: ${unreadableMark.problem}`)
  const versioned = await readTable(reader, entries)
  return {
    rows: versioned.rows,
    legacy: legacy.rows,
    founding: toFoundingMark(marks.rows[0]),
    unreadable: [
      ...versioned.unreadable.map((row) => ({ ...row, table: 'entries' as const })),
      ...legacy.unreadable.map((row) => ({ ...row, table: 'legacy_publications' as const })),
    ],
  }
}

interface ReadTable<Row> {
  rows: Row[]
  unreadable: Omit<UnreadableRow, 'table'>[]
}

/**
 * Reads all rows of a table, ordered by its first column. Pages use an offset instead of the last value: a damaged
 * column may hold duplicates, texts, or numbers too large to be exact.
 */
async function readTable<T extends SQLiteTable>(
  reader: SqlReader,
  table: T,
): Promise<ReadTable<T['$inferSelect']>> {
  const columns = Object.entries(getTableColumns(table))
  const [key = 'rowid', ...others] = columns.map(([, { name }]) => name)
  const cells = [key, ...others].map(cellAsHex).join(', ')
  const sql = asJsonRows(
    cells,
    `SELECT * FROM ${getTableName(table)} ORDER BY ${key} LIMIT ${PAGE_ROWS} OFFSET ?`,
  )
  const result: ReadTable<T['$inferSelect']> = { rows: [], unreadable: [] }
  for (let offset = 0; ; offset += PAGE_ROWS) {
    const selected = await reader.execute({ sql, args: [offset] })
    const page = decodeJsonRows(selected.rows[0]?.[0], 'the ledger')
    for (const [index, rowCells] of page.entries()) addRow(result, columns, rowCells, offset + index + 1)
    if (page.length < PAGE_ROWS) return result
  }
}

/** Returns an expression for a cell: integers and NULL unchanged, anything else as `<type>:<hexadecimal digits>`. */
function cellAsHex(column: string): string {
  return `CASE typeof(${column}) WHEN 'integer' THEN ${column} WHEN 'null' THEN NULL ELSE typeof(${column}) || ':' || hex(${column}) END`
}

/** @param rowNumber number of the row in its table, from 1 */
function addRow(
  result: ReadTable<object>,
  columns: readonly [property: string, Pick<SQLiteColumn, 'name' | 'notNull' | 'dataType'>][],
  cells: readonly unknown[],
  rowNumber: number,
): void {
  const values = cells.map(decodeCell)
  const row: Record<string, unknown> = Object.fromEntries(
    columns.map(([property], index) => [property, values[index]]),
  )
  const damaged = columns.filter(([, column], index) => !matchesColumn(values[index], column))
  if (damaged.length === 0) {
    result.rows.push(row)
    return
  }
  const { publicationId, seq = row['position'] } = row
  result.unreadable.push({
    at: Number.isSafeInteger(seq) ? Number(seq) : rowNumber,
    publicationId: typeof publicationId === 'string' ? publicationId : null,
    problem: `not what was written: ${damaged.map(([, { name }]) => name).join(', ')}`,
  })
}

/** The value of a cell; undefined if no ledger can have it. */
function decodeCell(cell: unknown): unknown {
  if (typeof cell !== 'string') return cell
  const [type, hex = ''] = cell.split(':')
  const text = type === 'text' ? decodeUtf8(Buffer.from(hex, 'hex')) : null
  return text === null || text.includes('\0') ? undefined : text
}

const NEWEST = asJsonRows(
  'as_of_day, published_at',
  "SELECT as_of_day, published_at FROM entries WHERE kind = 'publication' ORDER BY published_at DESC LIMIT 1",
)

const GAPS = asJsonRows(
  'as_of_day, reason',
  "SELECT as_of_day, reason FROM entries WHERE kind = 'gap' ORDER BY as_of_day DESC LIMIT 30",
)

const COUNTS = asJsonRows(
  'publications, recorded',
  "SELECT count(*) FILTER (WHERE kind = 'publication') AS publications, max(recorded_at) AS recorded FROM entries",
)

/** Reads the state of a ledger for an operator; it proves nothing. */
export async function ledgerFacts(reader: SqlReader): Promise<LedgerFacts> {
  const select = (sql: string): Promise<unknown[][]> => selectJsonRows(reader, sql, [], 'the ledger')
  const [counts] = await select(COUNTS)
  const [newest] = await select(NEWEST)
  const gaps = await select(GAPS)
  return {
    publications: Number(counts?.[0]),
    recordedAt: typeof counts?.[1] === 'number' ? counts[1] : null,
    newest: newest ? { asOfDay: String(newest[0]), publishedAt: Number(newest[1]) } : null,
    gaps: gaps.map(([asOfDay, reason]) => ({ asOfDay: String(asOfDay), reason: String(reason) })),
  }
}
