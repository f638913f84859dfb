import type { Client } from '@libsql/client'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { storageUnavailable } from '../../domain/storage.ts'
import { selectJsonRows } from './json-rows.ts'

const SELECT_HASHES =
  'SELECT CAST(json_group_array(json_array(hash) ORDER BY id) AS BLOB) FROM __drizzle_migrations'

/**
 * Applies a store's numbered migrations that are missing, in one write transaction, so that processes started
 * together cannot apply one twice. The bookkeeping table is drizzle's own.
 *
 * @param folder holds the SQL files and `meta/_journal.json`
 * @param path names the database in errors
 * @throws Refusal `storage_unavailable` when the database was migrated by a newer release
 */
export async function applyMigrations(client: Client, folder: string, path: string): Promise<void> {
  const known = readMigrationFiles({ migrationsFolder: folder })
  const before = await appliedHashes(client)
  assertKnown(before, known, path)
  if (before.length === known.length) return
  const transaction = await client.transaction('write')
  try {
    await transaction.execute(
      'CREATE TABLE IF NOT EXISTS __drizzle_migrations (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at NUMERIC)',
    )
    const applied = await selectHashes(transaction)
    assertKnown(applied, known, path)
    for (const migration of known.slice(applied.length)) {
      for (const statement of migration.sql) await transaction.execute(statement)
      await transaction.execute({
        sql: 'INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)',
        args: [migration.hash, migration.folderMillis],
      })
    }
    await transaction.commit()
  } catch (error) {
    await transaction.rollback().catch(() => undefined)
    throw error
  }
}

async function appliedHashes(client: Client): Promise<unknown[]> {
  const table = await client.execute("SELECT 1 FROM sqlite_schema WHERE name = '__drizzle_migrations'")
  if (table.rows.length === 0) return []
  return selectHashes(client)
}

async function selectHashes(client: Pick<Client, 'execute'>): Promise<unknown[]> {
  const rows = await selectJsonRows(client, SELECT_HASHES, [], 'the list of migrations')
  return rows.map(([hash]) => hash)
}

function assertKnown(applied: readonly unknown[], known: readonly { hash: string }[], path: string): void {
  const foreign = applied.some((hash, index) => known[index]?.hash !== hash)
  if (!foreign) return
  throw storageUnavailable(
    `the database ${path} has migrations this release does not know: it was written by a newer release, which must be used`,
  )
}
