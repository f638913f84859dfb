import { fileURLToPath } from 'node:url'
import type { Client, InStatement } from '@libsql/client'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { Refusal, storageUnavailable } from '../../domain/refusal.ts'
import { asJsonRows, selectJsonRows } from './rows.ts'
import { isBusy } from './vendor-errors.ts'

/** Another process can be first only once; a migration that cannot be applied fails each time. */
const TRIES = 3

/** Bookkeeping of earlier releases, when every store had a database of its own. */
const FORMER_TABLE = '__drizzle_migrations'

type MigrationClient = Pick<Client, 'execute' | 'batch'>

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
  client: MigrationClient,
  store: StoreName,
  folder: string,
  name: string,
): Promise<void> {
  const known = readMigrationFiles({ migrationsFolder: folder })
  for (let tries = 1; ; tries += 1) {
    try {
      const statements = await missingSteps(client, `migrations_${store}`, known, name)
      if (statements.length > 0) await client.batch(statements, 'write')
      return
    } catch (error) {
      if (error instanceof Refusal || isBusy(error) || tries === TRIES) throw error
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

/** Looks how far a store's migrations are applied, and applies none; parameters as for {@link applyMigrations}. */
export async function migrationState(
  client: MigrationClient,
  store: StoreName,
  folder: string,
): Promise<MigrationState> {
  const known = readMigrationFiles({ migrationsFolder: folder })
  const applied =
    (await selectHashes(client, `migrations_${store}`)) ?? (await selectHashes(client, FORMER_TABLE)) ?? []
  const newer = applied.some((hash, index) => known[index]?.hash !== hash)
  return { applied: applied.length, known: known.length, newer }
}

type Migration = ReturnType<typeof readMigrationFiles>[number]

async function missingSteps(
  client: MigrationClient,
  table: string,
  known: readonly Migration[],
  name: string,
): Promise<InStatement[]> {
  const own = await selectHashes(client, table)
  const former = own === null ? await selectHashes(client, FORMER_TABLE) : null
  // On a server that table may be somebody else's.
  const takenOver =
    former !== null && former.some((hash) => known.some((migration) => migration.hash === hash))
  const applied = own ?? (takenOver ? former : [])
  if (applied.some((hash, index) => known[index]?.hash !== hash)) {
    throw storageUnavailable(
      `${name} has migrations this release does not know: it was written by a newer release, which must be used`,
    )
  }
  const missing = known.slice(applied.length)
  const steps: InStatement[] = []
  if (own === null) {
    steps.push(
      takenOver
        ? `ALTER TABLE ${FORMER_TABLE} RENAME TO ${table}`
        : `CREATE TABLE IF NOT EXISTS ${table} (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at NUMERIC)`,
    )
  }
  for (const [index, { hash, folderMillis }] of missing.entries()) {
    steps.push({
      sql: `INSERT INTO ${table} (id, hash, created_at) VALUES (?, ?, ?)`,
      args: [applied.length + index + 1, hash, folderMillis],
    })
  }
  return [...steps, ...missing.flatMap(({ sql }) => sql)]
}

/** The hashes of a list of migrations, in order; null when there is no such table. */
async function selectHashes(client: MigrationClient, table: string): Promise<unknown[] | null> {
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
