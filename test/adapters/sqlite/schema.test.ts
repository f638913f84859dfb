import type { Row } from '@libsql/client'
import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { expect, test } from 'vitest'
import * as ledgerSchema from '../../../src/adapters/ledger/schema.ts'
import * as stateSchema from '../../../src/adapters/state/schema.ts'
import type { StoreName } from '../../../src/adapters/sqlite/migrate.ts'
import { newDatabase, openStore } from './lock-holder.ts'

const STORES = { ledger: ledgerSchema, state: stateSchema }

const TABLES = Object.entries(STORES).flatMap(([store, schema]) =>
  Object.values(schema)
    .filter((value) => is(value, SQLiteTable))
    .map((table) => ({ store: store as keyof typeof STORES, name: getTableConfig(table).name, table })),
)

async function queryMigrated(store: StoreName, sql: string): Promise<Row[]> {
  return (await openStore(store, newDatabase().url).execute(sql)).rows
}

test.each(TABLES)(
  'the schema has the columns of the migrated table $store.$name, in order',
  async ({ store, name, table }) => {
    const { columns, primaryKeys } = getTableConfig(table)
    const keys = new Set([
      ...primaryKeys.flatMap((key) => key.columns.map((column) => column.name)),
      ...columns.filter((column) => column.primary).map((column) => column.name),
    ])
    const info = await queryMigrated(store, `PRAGMA table_info(${name})`)
    expect(
      columns.map((column) => ({
        name: column.name,
        type: column.getSQLType().toUpperCase(),
        // SQLite does not call an INTEGER PRIMARY KEY "not null", although it never is.
        required: column.notNull,
        key: keys.has(column.name),
      })),
    ).toEqual(
      info.map((row) => ({
        name: row['name'],
        type: row['type'],
        required: row['notnull'] === 1 || row['pk'] !== 0,
        key: row['pk'] !== 0,
      })),
    )
  },
)

test('the tables of a migrated database accept no value of another type, and none has a table of another store', async () => {
  const names: unknown[] = []
  for (const store of ['feed', 'ledger', 'state'] as const) {
    const rows = await queryMigrated(
      store,
      // The search's words are in virtual tables.
      `SELECT name, strict FROM pragma_table_list
          WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'migrations_${store}'`,
    )
    expect(rows.filter(({ strict }) => strict !== 1)).toEqual([])
    names.push(...rows.map(({ name }) => name))
  }
  // One server holds all stores.
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThan(30)
})
