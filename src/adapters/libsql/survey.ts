import type { HeldLease, Survey } from '../../domain/operations/survey.ts'
import type { DatabaseLocation } from '../../domain/storage.ts'
import { asJsonRows, selectJsonRows } from './json-rows.ts'
import { migrationState } from './migrate.ts'
import { migrationsOf } from './migrations.ts'
import type { StoreName } from './migrations.ts'
import type { Reader } from './store-client.ts'
import { untouchedDatabase } from './untouched.ts'

const NONE = { applied: 0, known: 0, newer: false }

/**
 * Looks at a store's database and leaves it as it is.
 *
 * @param waiting as for any database
 * @param readFacts asked only when every migration is applied
 * @throws Refusals of a store
 */
export async function surveyDatabase<Facts>(
  location: DatabaseLocation,
  store: StoreName,
  waiting: { nativeBusyMs: number; retryMs: number },
  readFacts: (reader: Reader) => Promise<Facts>,
): Promise<Survey<Facts>> {
  const database = untouchedDatabase(location, waiting)
  const isFile = location.url.startsWith('file:')
  const found = await database.read(async (client) => {
    const migrations = await migrationState(client, store, migrationsOf(store))
    const isCurrent = !migrations.newer && migrations.applied === migrations.known
    return {
      migrations,
      now: isFile ? null : await serverTime(client),
      facts: isCurrent ? await readFacts(client) : null,
    }
  })
  const { name } = database
  return found === null
    ? { name, there: false, migrations: NONE, now: null, facts: null }
    : { name, there: true, ...found }
}

async function serverTime(client: Reader): Promise<number> {
  const { rows } = await client.execute("SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)")
  return Number(rows[0]?.[0])
}

/** The row of a table of a lease; null while nobody holds it. */
export async function readLease(reader: Reader, table: string): Promise<HeldLease | null> {
  const sql = asJsonRows(
    'holder, process, taken_at, expires_at',
    `SELECT holder, process, taken_at, expires_at FROM ${table}`,
  )
  const [row] = await selectJsonRows(reader, sql, [], `the table ${table}`)
  if (!row) return null
  const [holder, process, takenAt, expiresAt] = row
  return {
    holder: String(holder),
    process: typeof process === 'string' ? process : null,
    takenAt: Number(takenAt),
    expiresAt: Number(expiresAt),
  }
}
