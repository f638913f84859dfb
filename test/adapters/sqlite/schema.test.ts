import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Row } from '@libsql/client'
import { is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { describe, expect, test } from 'vitest'
import * as feedSchema from '../../../src/adapters/feed/schema.ts'
import * as ledgerSchema from '../../../src/adapters/ledger/schema.ts'
import * as stateSchema from '../../../src/adapters/state/schema.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { openStore } from './lock-holder.ts'

const STORES = { feed: feedSchema, ledger: ledgerSchema, state: stateSchema }

const TABLES = Object.entries(STORES).flatMap(([store, schema]) =>
  Object.values(schema)
    .filter((value) => is(value, SQLiteTable))
    .map((table) => ({ store: store as keyof typeof STORES, name: getTableConfig(table).name, table })),
)

async function queryMigrated(store: keyof typeof STORES, sql: string): Promise<Row[]> {
  const url = pathToFileURL(join(await temporaryFolder(), 'migrated.db')).href
  return openStore(store, url).use(async ({ client }) => (await client.execute(sql)).rows)
}

describe('the schema the queries are built from', () => {
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

  test.each(['feed', 'ledger', 'state'] as const)(
    'the schema names every table of the migrated %s database',
    async (store) => {
      const rows = await queryMigrated(
        store,
        // The search's words are in virtual tables, which have no drizzle schema.
        `SELECT name FROM pragma_table_list
      WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`,
      )
      const names = rows
        .map(({ name }) => (typeof name === 'string' ? name : ''))
        .filter((name) => name !== `migrations_${store}`)
      expect(names).toEqual(TABLES.flatMap((table) => (table.store === store ? [table.name] : [])).sort())
    },
  )

  test.each(TABLES)(
    'the table of the schema accepts no value of another type: $store.$name',
    async ({ store, name }) => {
      const rows = await queryMigrated(store, `SELECT strict FROM pragma_table_list WHERE name = '${name}'`)
      expect(rows).toEqual([{ strict: 1 }])
    },
  )

  test('the schemas of two stores share no table name: one server holds them all', () => {
    const names = TABLES.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })
})
