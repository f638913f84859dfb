import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { expect, onTestFinished, test } from 'vitest'
import { guardClient } from '../../../src/adapters/sqlite/guard.ts'
import { applyMigrations as applyTo } from '../../../src/adapters/sqlite/migrate.ts'
import type { StoreClient } from '../../../src/adapters/sqlite/rows.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { UNAVAILABLE } from '../../support/refusals.ts'

/** Writes numbered migrations of the given SQL in drizzle's format. */
function writeMigrations(folder: string, sqls: readonly string[]): string {
  mkdirSync(join(folder, 'meta'), { recursive: true })
  const entries = sqls.map((sql, idx) => {
    writeFileSync(join(folder, `000${idx}_step.sql`), sql)
    return { idx, version: '6', when: 1_700_000_000_000 + idx, tag: `000${idx}_step`, breakpoints: true }
  })
  writeFileSync(
    join(folder, 'meta/_journal.json'),
    JSON.stringify({ version: '7', dialect: 'sqlite', entries }),
  )
  return folder
}

const FIRST = "CREATE TABLE one (a TEXT);\n--> statement-breakpoint\nINSERT INTO one VALUES ('first');"
const SECOND = 'ALTER TABLE one ADD COLUMN b TEXT;'

async function open(): Promise<{ client: StoreClient; path: string; folder: (...sqls: string[]) => string }> {
  const root = temporaryFolder()
  const path = join(root, 'some.db')
  const url = pathToFileURL(path).href
  const client = guardClient(createClient({ url, timeout: 10, concurrency: 1 }), 1_000)
  onTestFinished(() => client.close())
  let folders = 0
  const folder = (...sqls: string[]) => writeMigrations(join(root, `migrations-${(folders += 1)}`), sqls)
  return { client, path, folder }
}

async function applied(client: StoreClient): Promise<number> {
  return (await client.execute('SELECT hash FROM migrations_feed')).rows.length
}

async function tables(client: StoreClient): Promise<unknown[]> {
  const result = await client.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
  return result.rows.map((row) => row['name'])
}

const applyMigrations = (client: StoreClient, folder: string, path: string): Promise<void> =>
  applyTo(client, 'feed', folder, path)

test('migrations are applied in order, each once, and leave the rows of an older release alone', async () => {
  const { client, path, folder } = await open()
  await applyMigrations(client, folder(FIRST), path)
  await client.execute("INSERT INTO one VALUES ('own')")
  for (let time = 0; time < 2; time += 1) await applyMigrations(client, folder(FIRST, SECOND), path)
  const { rows } = await client.execute('SELECT a, b FROM one')
  expect(rows).toEqual(['first', 'own'].map((a) => ({ a, b: null })))
  expect(await applied(client)).toBe(2)
})

test('migrations are applied all or not at all', async () => {
  const { client, path, folder } = await open()
  const applying = applyMigrations(client, folder(FIRST, 'CREATE NONSENSE'), path)
  await expect(applying).rejects.toThrow('syntax error')
  expect(await tables(client)).toEqual([])
  await applyMigrations(client, folder(FIRST), path)
  expect(await applied(client)).toBe(1)
})

test('migrations refuse a database of a newer release, and leave it and its client unchanged', async () => {
  const { client, path, folder } = await open()
  await applyMigrations(client, folder(FIRST, SECOND), path)
  const applying = applyMigrations(client, folder(FIRST), path)
  await expect(applying).rejects.toMatchObject(UNAVAILABLE)
  await expect(applying).rejects.toThrow(path)
  expect(await applied(client)).toBe(2)
  await client.execute("INSERT INTO one VALUES ('later', NULL)")
  expect((await client.execute('SELECT count(*) AS n FROM one')).rows).toEqual([{ n: 2 }])
})

test('migrations refuse a database with another migration in the place of a known one', async () => {
  const { client, path, folder } = await open()
  await applyMigrations(client, folder('CREATE TABLE foreign_one (a TEXT);'), path)
  await expect(applyMigrations(client, folder(FIRST), path)).rejects.toMatchObject(UNAVAILABLE)
  await expect(applyMigrations(client, folder(FIRST, SECOND), path)).rejects.toMatchObject(UNAVAILABLE)
  expect(await tables(client)).toEqual(['foreign_one', 'migrations_feed'])
})
