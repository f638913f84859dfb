import { fileURLToPath } from 'node:url'
import type { InStatement } from '@libsql/client'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { Refusal, storageUnavailable } from '../../domain/refusal.ts'
import { asJsonRows, insertRow, selectJsonRows } from './rows.ts'
import type { SqlReader, StoreClient } from './rows.ts'
import { isBusy } from './guard.ts'

/** A race with another process fails once; a broken migration fails each time. */
const ATTEMPTS = 3

/**
 * Applies the missing numbered migrations of a store in one batch. The batch first inserts their rows in the list
 * of migrations: of processes that start together, all but one fail on these rows, apply nothing and check again.
 * Each store has its own list, since one server may hold all stores.
 *
 * @param folder holds the SQL files and `meta/_journal.json`
 * @param name name of the database in error messages
 * @throws Refusal `storage_unavailable` if a newer release has migrated the database
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
          `${name} was written by a newer release (unknown migrations); use that release`,
        )
      }
      const statements = missingStatements(`migrations_${store}`, applied, known)
      if (statements.length > 0) await client.batch(statements)
      return
    } catch (error) {
      if (error instanceof Refusal || isBusy(error) || attempt === ATTEMPTS) throw error
    }
  }
}

export interface MigrationState {
  applied: number
  /** Number of migrations in this release. */
  known: number
  /** True if migrations unknown to this release were applied. */
  newer: boolean
}

/** Reads the state of a store's migrations without applying any. */
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
  const rows = missing.map(({ hash, folderMillis: createdAt }, index) =>
    insertRow(table, { id: appliedCount + index + 1, hash, createdAt }),
  )
  return [...(applied === null ? [create] : []), ...rows, ...missing.flatMap(({ sql }) => sql)]
}

/** Reads the hashes in a store's list of migrations, in order; null if there is no list. */
async function selectHashes(client: SqlReader, store: StoreName): Promise<unknown[] | null> {
  const table = `migrations_${store}`
  const found = await client.execute({ sql: 'SELECT 1 FROM sqlite_schema WHERE name = ?', args: [table] })
  if (found.rows.length === 0) return null
  const sql = asJsonRows('hash', `SELECT hash FROM ${table} ORDER BY id`)
  const rows = await selectJsonRows(client, sql, [], 'the list of migrations')
  return rows.map(([hash]) => hash)
}

/** The stores. Each has its own database, or shares one server with the others. */
export type StoreName = 'ledger' | 'feed' | 'state'

/**
 * Returns the folder of a store's numbered migrations, which has the same relative path from the sources and from
 * the build.
 */
export function migrationsOf(store: StoreName): string {
  return fileURLToPath(new URL(`../../../migrations/${store}`, import.meta.url))
}
