import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { getTableColumns } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { LedgerRow, LegacyRow } from '../../domain/year/ledger.ts'
import { entries, legacyPublications } from '../ledger/schema.ts'

/** Ledger files as somebody changes them who has their password to nothing but the file itself. */

/**
 * Runs statements on a ledger file past everything that guards it: triggers and what they
 * lean on are dropped, checks ignored.
 *
 * @param path of the database, which no other connection has open
 */
export async function changeLedger(path: string, statements: readonly string[]): Promise<void> {
  const client = createClient({ url: pathToFileURL(path).href, concurrency: 1 })
  try {
    const { rows } = await client.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    const script = [
      'PRAGMA journal_mode = MEMORY',
      'PRAGMA synchronous = OFF',
      'PRAGMA ignore_check_constraints = ON',
      'BEGIN IMMEDIATE',
      ...rows.flatMap(({ name }) => (typeof name === 'string' ? [`DROP TRIGGER ${name}`] : [])),
      'DROP INDEX entries_own_day',
      ...statements,
      'COMMIT',
    ]
    await client.executeMultiple(script.join(';\n'))
  } finally {
    client.close()
  }
}

/** Statements that leave these rows, and no other, in the table of entries. */
export function replaceEntries(rows: readonly LedgerRow[]): string[] {
  return ['DELETE FROM entries', ...rows.map((row) => insert(entries, row))]
}

/** Statements that leave these rows, and no other, in the legacy ledger. */
export function replaceLegacy(rows: readonly LegacyRow[]): string[] {
  return ['DELETE FROM legacy_publications', ...rows.map((row) => insert(legacyPublications, row))]
}

/** Statements after which the columns of a table take values of any type. */
export function untyped(table: 'entries' | 'legacy_publications'): string[] {
  const { columns } = getTableConfig(table === 'entries' ? entries : legacyPublications)
  return [
    `CREATE TABLE untyped (${columns.map(({ name }) => name).join(', ')})`,
    `INSERT INTO untyped SELECT * FROM ${table}`,
    `DROP TABLE ${table}`,
    `ALTER TABLE untyped RENAME TO ${table}`,
  ]
}

/** A value as SQL writes it. */
export function literal(value: number | string | null): string {
  if (value === null) return 'NULL'
  return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`
}

function insert(table: SQLiteTable, row: LedgerRow | LegacyRow): string {
  const values = new Map<string, number | string | null>(Object.entries(row))
  const cells = Object.keys(getTableColumns(table)).map((property) => literal(values.get(property) ?? null))
  return `INSERT INTO ${getTableConfig(table).name} VALUES (${cells.join(', ')})`
}
