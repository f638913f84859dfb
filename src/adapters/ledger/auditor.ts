import type { SQLiteColumn } from 'drizzle-orm/sqlite-core/columns/common'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableName } from 'drizzle-orm/table'
import { getTableColumns } from 'drizzle-orm/utils'
import type { Auditors } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import type { LedgerFacts } from '../../domain/inspection.ts'
import type { AuditedContents, UnreadableRow } from '../../domain/year/ledger.ts'
import { readLease } from '../sqlite/lease.ts'
import { asJsonRows, decodeJsonRows, selectJsonRows } from '../sqlite/rows.ts'
import type { Reader } from '../sqlite/rows.ts'
import { openReadOnlyCopy } from '../sqlite/read-only-copy.ts'
import { entries, founding, lease, legacyPublications, markOf } from './schema.ts'

/**
 * The auditor of a ledger. It writes nothing, and leaves the file as it is.
 *
 * @param waiting as for any database
 */
export function ledgerAuditor(
  location: DatabaseLocation,
  waiting: { nativeBusyMs: number; retryMs: number },
): Auditors['ledger'] {
  const ledger = openReadOnlyCopy(location, waiting)
  return { read: () => ledger.read(readForAudit) }
}

/** Rows of one answer; a server gives no more than some megabytes at once. */
const PAGE = 1_000

/**
 * Both ledgers as stored. Texts come as hexadecimal digits, so that a cell that is no text, or no UTF-8, or holds a
 * NUL, damages only its own row and is reported as such. Pages need no transaction: rows are only added.
 *
 * @returns null when the database has none of the ledger's tables: nothing was ever written to it
 */
async function readForAudit(reader: Reader): Promise<AuditedContents | null> {
  const { rows } = await reader.execute(
    "SELECT CAST(json_group_array(json_array(name)) AS BLOB) FROM sqlite_schema WHERE type = 'table'",
  )
  const tables = new Set(decodeJsonRows(rows[0]?.[0], 'the list of tables').map(([name]) => name))
  if (!tables.has('entries') && !tables.has('legacy_publications')) return null
  const legacy = await readTable(reader, legacyPublications)
  // A table that should be there and is not makes its statement fail; only `founding` came with a later release.
  const marks = tables.has('founding') ? await readTable(reader, founding) : { rows: [], unreadable: [] }
  const [unreadableMark] = marks.unreadable
  if (unreadableMark) throw storageDamaged(`the founding row of the ledger: ${unreadableMark.problem}`)
  const versioned = await readTable(reader, entries)
  return {
    rows: versioned.rows,
    legacy: legacy.rows,
    founding: markOf(marks.rows[0]),
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
 * All rows of a table, by its first column. Pages are counted off and not continued after a value: a damaged column may
 * hold the same value twice, a text, or a number too large to be exact.
 */
async function readTable<T extends SQLiteTable>(
  reader: Reader,
  table: T,
): Promise<ReadTable<T['$inferSelect']>> {
  const columns = Object.entries(getTableColumns(table))
  const [key = 'rowid', ...others] = columns.map(([, { name }]) => name)
  const cells = [key, ...others].map(cellAsHex).join(', ')
  const sql = asJsonRows(cells, `SELECT * FROM ${getTableName(table)} ORDER BY ${key} LIMIT ${PAGE} OFFSET ?`)
  const read: ReadTable<T['$inferSelect']> = { rows: [], unreadable: [] }
  for (let offset = 0; ; offset += PAGE) {
    const answer = await reader.execute({ sql, args: [offset] })
    const page = decodeJsonRows(answer.rows[0]?.[0], 'the ledger')
    for (const [index, cellsOfRow] of page.entries()) addRow(read, columns, cellsOfRow, offset + index + 1)
    if (page.length < PAGE) return read
  }
}

/** Integers and NULL as they are, anything else as `<type>:<hexadecimal digits>`. */
function cellAsHex(column: string): string {
  return `CASE typeof(${column}) WHEN 'integer' THEN ${column} WHEN 'null' THEN NULL ELSE typeof(${column}) || ':' || hex(${column}) END`
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @param place of the row in its table, from 1 */
function addRow(
  read: ReadTable<object>,
  columns: readonly [property: string, Pick<SQLiteColumn, 'name' | 'notNull' | 'dataType'>][],
  cells: readonly unknown[],
  place: number,
): void {
  const row: Record<string, unknown> = {}
  const problems: string[] = []
  for (const [index, [property, { name, notNull, dataType }]] of columns.entries()) {
    const cell = decodeCell(cells[index], dataType, notNull)
    if ('problem' in cell) problems.push(`${name} ${cell.problem}`)
    else row[property] = cell.value
  }
  if (problems.length === 0) {
    read.rows.push(row)
    return
  }
  const { publicationId, seq = row['position'] } = row
  read.unreadable.push({
    at: typeof seq === 'number' ? seq : place,
    publicationId: typeof publicationId === 'string' ? publicationId : null,
    problem: problems.join('; '),
  })
}

type Cell = { value: number | string | null } | { problem: string }

function decodeCell(cell: unknown, dataType: string, notNull: boolean): Cell {
  if (cell === null || cell === undefined) return notNull ? { problem: 'is NULL' } : { value: null }
  if (typeof cell === 'number') {
    if (dataType !== 'number') return { problem: 'holds a number' }
    return Number.isSafeInteger(cell) ? { value: cell } : { problem: 'holds a number out of range' }
  }
  if (typeof cell !== 'string') return { problem: 'could not be read' }
  const [type = '', hex = ''] = cell.split(':')
  if (type !== 'text' || dataType !== 'string') return { problem: `holds a ${type}` }
  try {
    const value = utf8.decode(Buffer.from(hex, 'hex'))
    return value.includes('\0') ? { problem: 'holds a NUL' } : { value }
  } catch {
    return { problem: 'holds bytes that are not UTF-8' }
  }
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

/** What an operator asks of a ledger; it proves nothing. */
export async function ledgerFacts(reader: Reader): Promise<LedgerFacts> {
  const ask = (sql: string): Promise<unknown[][]> => selectJsonRows(reader, sql, [], 'the ledger')
  const [counts] = await ask(COUNTS)
  const [newest] = await ask(NEWEST)
  const gaps = await ask(GAPS)
  return {
    publications: Number(counts?.[0]),
    recordedAt: typeof counts?.[1] === 'number' ? counts[1] : null,
    newest: newest ? { asOfDay: String(newest[0]), publishedAt: Number(newest[1]) } : null,
    gaps: gaps.map(([asOfDay, reason]) => ({ asOfDay: String(asOfDay), reason: String(reason) })),
    lease: await readLease(reader, lease),
  }
}
