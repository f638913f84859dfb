import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import type { Client } from '@libsql/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { guardClient } from '../../../src/adapters/libsql/guard.ts'
import { applyMigrations } from '../../../src/adapters/libsql/migrate.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { UNAVAILABLE } from '../refusals.ts'

/** Writes migrations 0, 1, … of the given SQL, as drizzle keeps them. */
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

async function open(): Promise<{ client: Client; path: string; folder: (...sqls: string[]) => string }> {
  const root = await temporaryFolder()
  const path = join(root, 'some.db')
  const client = guardClient(
    createClient({ url: pathToFileURL(path).href, timeout: 10, concurrency: 1 }),
    1_000,
  )
  onTestFinished(() => client.close())
  let folders = 0
  return {
    client,
    path,
    folder: (...sqls) => writeMigrations(join(root, `migrations-${(folders += 1)}`), sqls),
  }
}

async function applied(client: Client): Promise<number> {
  return (await client.execute('SELECT hash FROM __drizzle_migrations')).rows.length
}

async function tables(client: Client): Promise<unknown[]> {
  const result = await client.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
  return result.rows.map((row) => row['name'])
}

describe('migrations', () => {
  test('are applied in order, each once', async () => {
    const { client, path, folder } = await open()
    const migrations = folder(FIRST, SECOND)
    await applyMigrations(client, migrations, path)
    await applyMigrations(client, migrations, path)
    expect((await client.execute('SELECT a, b FROM one')).rows).toEqual([{ a: 'first', b: null }])
    expect(await applied(client)).toBe(2)
  })

  test('bring a database of an older release up to date without touching its rows', async () => {
    const { client, path, folder } = await open()
    await applyMigrations(client, folder(FIRST), path)
    await client.execute("INSERT INTO one VALUES ('own')")
    await applyMigrations(client, folder(FIRST, SECOND), path)
    expect((await client.execute('SELECT a, b FROM one')).rows).toEqual([
      { a: 'first', b: null },
      { a: 'own', b: null },
    ])
    expect(await applied(client)).toBe(2)
  })

  test('are applied all or not at all', async () => {
    const { client, path, folder } = await open()
    await expect(applyMigrations(client, folder(FIRST, 'CREATE NONSENSE'), path)).rejects.toThrow(
      'syntax error',
    )
    expect(await tables(client)).toEqual([])
    await applyMigrations(client, folder(FIRST), path)
    expect(await applied(client)).toBe(1)
  })

  test('refuse a database a newer release has migrated further, and leave it alone', async () => {
    const { client, path, folder } = await open()
    await applyMigrations(client, folder(FIRST, SECOND), path)
    await expect(applyMigrations(client, folder(FIRST), path)).rejects.toMatchObject(UNAVAILABLE)
    await expect(applyMigrations(client, folder(FIRST), path)).rejects.toThrow(path)
    expect(await applied(client)).toBe(2)
  })

  test('refuse a database in which another migration stands in the place of one of theirs', async () => {
    const { client, path, folder } = await open()
    await applyMigrations(client, folder('CREATE TABLE foreign_one (a TEXT);'), path)
    await expect(applyMigrations(client, folder(FIRST), path)).rejects.toMatchObject(UNAVAILABLE)
    await expect(applyMigrations(client, folder(FIRST, SECOND), path)).rejects.toMatchObject(UNAVAILABLE)
    expect(await tables(client)).toEqual(['__drizzle_migrations', 'foreign_one'])
  })

  test('leave a client that others can go on using after a refusal', async () => {
    const { client, path, folder } = await open()
    await applyMigrations(client, folder(FIRST, SECOND), path)
    await expect(applyMigrations(client, folder(FIRST), path)).rejects.toMatchObject(UNAVAILABLE)
    await client.execute("INSERT INTO one VALUES ('later', NULL)")
    expect((await client.execute('SELECT count(*) AS n FROM one')).rows).toEqual([{ n: 2 }])
  })
})
