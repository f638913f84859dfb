import type { SQLiteTable } from 'drizzle-orm/sqlite-core/table'
import { getTableName } from 'drizzle-orm/table'
import { getTableColumns } from 'drizzle-orm/utils'
import type { Auditors } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import type { LedgerFacts } from '../../domain/survey.ts'
import type { AuditedContents, AuditedRow } from '../../domain/year/audit.ts'
import { asJsonRows, decodeJsonRows, selectJsonRows } from '../sqlite/rows.ts'
import type { Reader } from '../sqlite/rows.ts'
import { readLease, untouchedDatabase } from '../sqlite/untouched.ts'
import { entries, founding, legacyPublications, markOf } from './schema.ts'

/**
 * The auditor of a ledger. It writes nothing, and leaves the file as it is.
 *
 * @param waiting as for any database
 */
export function ledgerAuditor(
  location: DatabaseLocation,
  waiting: { nativeBusyMs: number; retryMs: number },
): Auditors['ledger'] {
  const ledger = untouchedDatabase(location, waiting)
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
  const [mark] = tables.has('founding') ? await readTable(reader, founding) : []
  if (mark && !('row' in mark)) throw storageDamaged(`the founding row of the ledger: ${mark.problem}`)
  return { rows: await readTable(reader, entries), legacy, founding: markOf(mark?.row) }
}

/**
 * All rows of a table, by its first column. Pages are counted off and not continued after a value: a damaged column may
 * hold the same value twice, a text, or a number too large to be exact.
 */
async function readTable<T extends SQLiteTable>(
  reader: Reader,
  table: T,
): Promise<AuditedRow<T['$inferSelect']>[]> {
  const columns = Object.values(getTableColumns(table))
  const key = columns[0]?.name ?? 'rowid'
  const cells = columns.map(({ name: column }) => cellAsHex(column)).join(', ')
  const sql = asJsonRows(cells, `SELECT * FROM ${getTableName(table)} ORDER BY ${key} LIMIT ${PAGE} OFFSET ?`)
  const read: AuditedRow<T['$inferSelect']>[] = []
  const decode = auditedRow(table)
  for (;;) {
    const answer = await reader.execute({ sql, args: [read.length] })
    const page = decodeJsonRows(answer.rows[0]?.[0], 'the ledger')
    for (const cellsOfRow of page) read.push(decode(cellsOfRow, read.length))
    if (page.length < PAGE) return read
  }
}

/** Integers and NULL as they are, anything else as `<type>:<hexadecimal digits>`. */
function cellAsHex(column: string): string {
  return `CASE typeof(${column}) WHEN 'integer' THEN ${column} WHEN 'null' THEN NULL ELSE typeof(${column}) || ':' || hex(${column}) END`
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

type Cell = { value: number | string | null } | { problem: string }

function auditedRow<T extends SQLiteTable>(
  table: T,
): (cells: readonly unknown[], index: number) => AuditedRow<T['$inferSelect']> {
  const columns = Object.entries(getTableColumns(table))
  return (cells, index) => {
    const row: Record<string, number | string | null> = {}
    const problems: string[] = []
    for (const [place, [property, { name, notNull, dataType }]] of columns.entries()) {
      const cell = decodeCell(cells[place], dataType, notNull)
      if ('problem' in cell) problems.push(`${name} ${cell.problem}`)
      else row[property] = cell.value
    }
    if (problems.length === 0) return { row }
    const [first] = columns
    const at = first ? row[first[0]] : null
    const publicationId = row['publicationId']
    return {
      problem: problems.join('; '),
      at: typeof at === 'number' ? at : index + 1,
      publicationId: typeof publicationId === 'string' ? publicationId : null,
    }
  }
}

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
    lease: await readLease(reader, 'lease'),
  }
}
