import { fileURLToPath } from 'node:url'
import type { InStatement } from '@libsql/client'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { Refusal, storageUnavailable } from '../../domain/refusal.ts'
import { asJsonRows, selectJsonRows } from './rows.ts'
import type { SqlReader, StoreClient } from './rows.ts'
import { isBusy } from './vendor-errors.ts'

/** Another process can be first only once; a migration that cannot be applied fails each time. */
const ATTEMPTS = 3

/**
 * Applies a store's numbered migrations that are missing, in one batch whose first rows say which: of processes
 * started together all but one find those rows taken, apply nothing, and look again. Each store keeps its own list,
 * since one server holds them all.
 *
 * @param folder holds the SQL files and `meta/_journal.json`
 * @param name names the database in errors
 * @throws Refusal `storage_unavailable` when the database was migrated by a newer release
 */
export async function applyMigrations(
  client: Pick<StoreClient, 'execute' | 'batch'>,
  store: StoreName,
  folder: string,
  name: string,
): Promise<void> {
  const known = readMigrationFiles({ migrationsFolder: folder })
  for (let attempt = 1; ; attempt += 1) {
    try {
      const applied = await selectHashes(client, store)
      if (isNewer(applied, known)) {
        throw storageUnavailable(
          `${name} has migrations this release does not know: it was written by a newer release, which must be used`,
        )
      }
      const statements = missingStatements(`migrations_${store}`, applied, known)
      if (statements.length > 0) await client.batch(statements, 'write')
      return
    } catch (error) {
      if (error instanceof Refusal || isBusy(error) || attempt === ATTEMPTS) throw error
    }
  }
}

/** How far a store's migrations are applied. */
export interface MigrationState {
  applied: number
  /** Of this release. */
  known: number
  /** True when some were applied that this release does not know. */
  newer: boolean
}

/** Looks how far a store's migrations are applied, and applies none. */
export async function migrationState(client: SqlReader, store: StoreName): Promise<MigrationState> {
  const known = readMigrationFiles({ migrationsFolder: migrationsOf(store) })
  const applied = await selectHashes(client, store)
  return { applied: applied?.length ?? 0, known: known.length, newer: isNewer(applied, known) }
}

type Migration = ReturnType<typeof readMigrationFiles>[number]

function isNewer(applied: readonly unknown[] | null, known: readonly Migration[]): boolean {
  return applied?.some((hash, index) => known[index]?.hash !== hash) ?? false
}

function missingStatements(
  table: string,
  applied: readonly unknown[] | null,
  known: readonly Migration[],
): InStatement[] {
  const appliedCount = applied?.length ?? 0
  const missing = known.slice(appliedCount)
  const create = `CREATE TABLE IF NOT EXISTS ${table} (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at NUMERIC)`
  const rows = missing.map(({ hash, folderMillis }, index) => ({
    sql: `INSERT INTO ${table} (id, hash, created_at) VALUES (?, ?, ?)`,
    args: [appliedCount + index + 1, hash, folderMillis],
  }))
  return [...(applied === null ? [create] : []), ...rows, ...missing.flatMap(({ sql }) => sql)]
}

/** The hashes of a store's list of migrations, in order; null when there is none. */
async function selectHashes(client: SqlReader, store: StoreName): Promise<unknown[] | null> {
  const table = `migrations_${store}`
  const found = await client.execute({ sql: 'SELECT 1 FROM sqlite_schema WHERE name = ?', args: [table] })
  if (found.rows.length === 0) return null
  const sql = asJsonRows('hash', `SELECT hash FROM ${table} ORDER BY id`)
  const rows = await selectJsonRows(client, sql, [], 'the list of migrations')
  return rows.map(([hash]) => hash)
}

/** What is kept in a database of its own, or beside the others on one server. */
export type StoreName = 'ledger' | 'feed' | 'state'

/** Folder of a store's numbered migrations; at the same depth from the sources as from the build. */
export function migrationsOf(store: StoreName): string {
  return fileURLToPath(new URL(`../../../migrations/${store}`, import.meta.url))
}
