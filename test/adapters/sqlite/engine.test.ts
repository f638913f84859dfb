import { createClient } from '@libsql/client'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readOnlyDatabase } from '../../../src/adapters/sqlite/database.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { guardClient } from '../../../src/adapters/sqlite/guard.ts'
import { QUERY_ONLY } from '../../../src/adapters/sqlite/engine.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { openStore } from './lock-holder.ts'

const BUSY = { nativeBusyMs: 10, retryMs: 2_000 }

async function openBoth(): Promise<{ path: string; url: string; owner: Database; reader: Database }> {
  const path = join(await temporaryFolder(), 'feed.db')
  const url = pathToFileURL(path).href
  const location = { url, authToken: null }
  const owner = openStore('feed', url, BUSY)
  const reader = readOnlyDatabase({ location, ...BUSY }, owner)
  onTestFinished(() => reader.close())
  return { path, url, owner, reader }
}

const WRITES = [
  "INSERT INTO source_pauses (host, paused_until) VALUES ('x', 1)",
  'UPDATE revision SET number = 7',
  'DELETE FROM snapshots',
  'CREATE TABLE t (x)',
  'DROP TABLE snapshots',
  'PRAGMA user_version = 7',
  'VACUUM',
]

describe('a query-only connection', () => {
  test.each(WRITES)('the engine itself refuses a write: %s', async (sql) => {
    const { url, owner } = await openBoth()
    await owner.use(() => Promise.resolve())
    const driver = createClient({ url, concurrency: 1 })
    const client = guardClient(driver, 1_000, { settings: QUERY_ONLY })
    onTestFinished(() => client.close())
    const expectRefused = (work: Promise<unknown>) =>
      expect(work).rejects.toThrow('attempt to write a readonly database')
    await expectRefused(client.execute(sql))
    await expectRefused(client.batch([sql], 'write'))
    // A retry works on another connection.
    driver.reconnect()
    await expectRefused(client.execute(sql))
    await expectRefused(client.transact((tx) => tx.execute(sql)))
  })
})

describe('a read-only handle', () => {
  test("the handle reads its owner's data", async () => {
    const { owner, reader } = await openBoth()
    await owner.use((client) => client.execute('UPDATE revision SET number = 41'))
    const sql = 'SELECT number FROM revision'
    const results = await reader.use(async (client) => [
      await client.execute(sql),
      (await client.batch([sql, { sql: 'SELECT ?', args: [1] }], 'read'))[0],
      await client.snapshot(sql, (each) => each.execute(sql)),
    ])
    expect(results.map((result) => result?.rows[0]?.['number'])).toEqual([41, 41, 41])
  })

  test.each([
    ...WRITES,
    "ATTACH ':memory:' AS other",
    'PRAGMA query_only = OFF',
    'WITH t AS (SELECT 1) DELETE FROM snapshots',
    'COMMIT',
  ])('the handle accepts nothing but SELECT statements: %s', async (sql) => {
    const { reader } = await openBoth()
    await reader.use(async (client) => {
      await expect(client.execute(sql)).rejects.toThrow('is read-only and accepts only SELECT')
      await expect(client.execute({ sql, args: [] })).rejects.toThrow('is read-only and accepts only SELECT')
      await expect(client.batch(['SELECT 1', sql], 'write')).rejects.toThrow(
        'is read-only and accepts only SELECT',
      )
      await expect(client.batch([{ sql, args: [] }], 'read')).rejects.toThrow(
        'is read-only and accepts only SELECT',
      )
      await expect(client.batchWithin([sql], 100)).rejects.toThrow('is read-only and accepts only SELECT')
      const work = client.transact((tx) => tx.execute(sql))
      await expect(work).rejects.toThrow('is read-only and accepts only SELECT')
      const ways = ['batch', 'batchWithin', 'close', 'execute', 'makeDurable', 'snapshot', 'transact']
      expect(Object.keys(client).sort()).toEqual(ways)
      await expect(client.snapshot('SELECT 1', (each) => each.execute(sql))).rejects.toThrow(
        'is read-only and accepts only SELECT',
      )
    })
  })

  test('the handle never creates a database: its owner does', async () => {
    const { path, url, owner, reader } = await openBoth()
    const orphan: Database = { ...owner, use: (work) => work(undefined as never) }
    const alone = readOnlyDatabase({ location: { url, authToken: null }, ...BUSY }, orphan)
    await expect(alone.use(() => Promise.resolve())).rejects.toMatchObject({ code: 'storage_unavailable' })
    expect(existsSync(path)).toBe(false)
    await reader.use(() => Promise.resolve())
    expect(existsSync(path)).toBe(true)
  })
})
