import type { Client, InStatement, InValue } from '@libsql/client'
import { getTableColumns } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { FoundingRefusal, Ledger } from '../../domain/ports.ts'
import type { Attempt, FoundingMark, LedgerContents, LedgerRow } from '../../domain/year/ledger.ts'
import { attempts, entries, founding, legacyPublications } from './schema.ts'

type Guard = Parameters<Ledger['found']>[2]

const LEASE_HELD = 'EXISTS (SELECT 1 FROM lease WHERE token = ? AND expires_at > ?)'

/** See {@link Ledger.beginFounding}. */
export async function beginFounding(
  client: Pick<Client, 'batch'>,
  { seq, leaf, beganAt }: FoundingMark,
  { token, now }: Guard,
): Promise<FoundingRefusal | null> {
  const mark = [seq, leaf]
  const [, state] = await client.batch(
    [
      {
        sql: `INSERT INTO founding (id, seq, leaf, began_at) SELECT 1, ?, ?, ?
          WHERE NOT EXISTS (SELECT 1 FROM founding) AND NOT EXISTS (SELECT 1 FROM entries) AND ${LEASE_HELD}`,
        args: [...mark, beganAt, token, now],
      },
      {
        sql: `SELECT ${LEASE_HELD} AS held, NOT EXISTS (SELECT 1 FROM entries)
          AND EXISTS (SELECT 1 FROM founding WHERE seq = ? AND leaf = ?) AS begun`,
        args: [token, now, ...mark],
      },
    ],
    'write',
  )
  const [row] = state?.rows ?? []
  if (row?.['held'] !== 1) return 'lease-lost'
  return row['begun'] === 1 ? null : 'ledger-moved'
}

/** See {@link Ledger.found}. */
export async function found(
  client: Pick<Client, 'batch'>,
  { legacy, rows }: Parameters<Ledger['found']>[0],
  seal: Parameters<Ledger['found']>[1],
  { token, now }: Guard,
): Promise<FoundingRefusal | null> {
  const last = rows.at(-1)
  const lease = [token, now]
  const condition = `NOT EXISTS (SELECT 1 FROM entries) AND (SELECT count(*) FROM legacy_publications) = ?
    AND coalesce((SELECT seq || ' ' || leaf FROM founding), '') = ? AND ${LEASE_HELD}`
  const args = [last ? `${last.seq} ${last.leaf}` : '', ...lease]
  // Entries follow the legacy rows, because the legacy ledger takes no row once there is an entry.
  const [, inserted, held] = await client.batch(
    [
      insertAll(legacyPublications, legacy, condition, [0, ...args]),
      insertAll(entries, [...rows, seal], `${INSERTED_BEFORE} AND ${condition}`, [
        legacy.length,
        legacy.length,
        ...args,
      ]),
      { sql: `SELECT ${LEASE_HELD} AS held`, args: lease },
    ],
    'write',
  )
  if (inserted?.rowsAffected === rows.length + 1) return null
  return held?.rows[0]?.['held'] === 1 ? 'ledger-moved' : 'lease-lost'
}

/** The rows the statement before this one inserted: none when its condition did not hold. */
const INSERTED_BEFORE = 'changes() = ?'

/** How far the chain goes, and that it is this chain. */
const ENDS_WITH = `(SELECT count(*) FROM entries) = ?
  AND coalesce((SELECT leaf FROM entries ORDER BY seq DESC LIMIT 1), '') = ?`

function endOf(rows: readonly LedgerRow[]): InValue[] {
  return [rows.length, rows.at(-1)?.leaf ?? '']
}

/** See {@link Ledger.adopt}. Attempts that are there already stay as they are, as the database demands. */
export async function adopt(
  client: Pick<Client, 'batch'>,
  contents: LedgerContents,
  counted: readonly Attempt[],
  before: LedgerContents,
  { token, now }: Guard,
): Promise<FoundingRefusal | null> {
  const lease = [token, now]
  const condition = `${ENDS_WITH} AND (SELECT count(*) FROM legacy_publications) = ? AND ${LEASE_HELD}`
  const asBefore = [...endOf(before.rows), before.legacy.length, ...lease]
  const legacy = contents.legacy.slice(before.legacy.length)
  const mark = contents.founding
  const results = await client.batch(
    [
      insertAll(
        founding,
        mark ? [{ id: 1, ...mark }] : [],
        `NOT EXISTS (SELECT 1 FROM founding) AND ${condition}`,
        asBefore,
      ),
      insertAll(legacyPublications, legacy, condition, asBefore),
      insertAll(entries, contents.rows.slice(before.rows.length), `${INSERTED_BEFORE} AND ${condition}`, [
        legacy.length,
        ...endOf(before.rows),
        contents.legacy.length,
        ...lease,
      ]),
      insertAll(
        attempts,
        counted,
        `NOT EXISTS (SELECT 1 FROM attempts WHERE as_of_day = value ->> 0 AND attempt = value ->> 1)
          AND ${ENDS_WITH} AND ${LEASE_HELD}`,
        [...endOf(contents.rows), ...lease],
      ),
      {
        sql: `SELECT ${LEASE_HELD} AS held, ${ENDS_WITH} AS adopted`,
        args: [...lease, ...endOf(contents.rows)],
      },
    ],
    'write',
  )
  const [state] = results.at(-1)?.rows ?? []
  if (state?.['held'] !== 1) return 'lease-lost'
  return state['adopted'] === 1 ? null : 'ledger-moved'
}

/** One statement that inserts all rows, in their order, or none when the condition does not hold. */
function insertAll(
  table: SQLiteTable,
  rows: readonly object[],
  condition: string,
  args: readonly InValue[],
): InStatement {
  const columns = Object.entries(getTableColumns(table))
  const cells = rows.map((row) => {
    const values = new Map<string, unknown>(Object.entries(row))
    return columns.map(([property]) => values.get(property) ?? null)
  })
  const names = columns.map(([, { name }]) => name).join(', ')
  const values = columns.map((_, index) => `json_extract(value, '$[${index}]')`).join(', ')
  return {
    sql: `INSERT INTO ${getTableConfig(table).name} (${names})
      SELECT ${values} FROM json_each(?) WHERE ${condition} ORDER BY key`,
    args: [JSON.stringify(cells), ...args],
  }
}
