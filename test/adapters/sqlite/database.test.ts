import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { describe, expect, test, onTestFinished } from 'vitest'
import { readOnlyDatabase, QUERY_ONLY } from '../../../src/adapters/sqlite/database.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { isBusy, guardClient } from '../../../src/adapters/sqlite/guard.ts'
import { migrationsOf } from '../../../src/adapters/sqlite/migrate.ts'
import { DeadlineExceeded } from '../../../src/adapters/sqlite/rows.ts'
import { storageUnavailable } from '../../../src/domain/refusal.ts'
import { DAMAGED, UNAVAILABLE } from '../../support/refusals.ts'
import { temporaryFolder, openDescriptors } from '../../support/temporary-folder.ts'
import { holdLock, newDatabase, openStore, rawClient } from './lock-holder.ts'

const open = (path: string, retryMs = 5_000): Database =>
  openStore('feed', pathToFileURL(path).href, { retryMs })

const INSERT_TITLE = `
  INSERT INTO verified_titles (source, source_id, title, provenance, verified_at) VALUES ('hn', ?1, 'title', 'hn:test', 1)`

const save = (store: Database, sourceId: string): Promise<unknown> =>
  store.execute({ sql: INSERT_TITLE, args: [sourceId] })

async function ids(store: Database): Promise<string[]> {
  const { rows } = await store.execute('SELECT source_id FROM verified_titles ORDER BY source_id')
  return rows.map((row) => row['source_id'] as string)
}

/** A new database that holds one title. */
async function holding(sourceId: string): Promise<{ path: string; store: Database }> {
  const path = newDatabase().path
  const store = open(path)
  await save(store, sourceId)
  return { path, store }
}

describe('a database', () => {
  test('a database opens at its first use, keeps its data, and opens again after it was closed', async () => {
    const path = newDatabase().path
    const store = open(path)
    expect(existsSync(path)).toBe(false)
    await save(store, '1')
    store.close()
    for (const each of [open(path), store]) expect(await ids(each)).toEqual(['1'])
  })

  test('a database opens once for many concurrent first uses', async () => {
    const path = newDatabase().path
    const store = open(path)
    await Promise.all(Array.from({ length: 12 }, (_, index) => save(store, String(index))))
    expect(await ids(store)).toHaveLength(12)
    expect(openDescriptors(path)).toBe(1)
  })

  test('a database passes foreign Refusals and errors on unchanged', async () => {
    const store = open(newDatabase().path)
    for (const error of [storageUnavailable('elsewhere'), new TypeError('x'), new Error('no such luck')])
      await expect(store.transact(() => Promise.reject(error))).rejects.toBe(error)
    const nonsense = store.execute('not SQL')
    await expect(nonsense).rejects.toThrow('syntax error')
    await expect(nonsense).rejects.not.toMatchObject({ name: 'Refusal' })
  })

  test('a database fails as busy, not with a Refusal, if a lock is not released', async () => {
    const path = newDatabase().path
    await ids(open(path))
    const store = open(path, 50)
    await ids(store)
    await holdLock(pathToFileURL(path).href, 'writing')
    await expect(save(store, '1')).rejects.toSatisfy(isBusy)
    expect(await ids(store)).toEqual([])
  })

  test('a database that is locked while it opens keeps its descriptors, and opens once it is free', async () => {
    const { path } = await holding('1')
    const release = await holdLock(pathToFileURL(path).href, 'committing')
    const store = open(path, 0)
    await expect(ids(store)).rejects.toSatisfy(isBusy)
    const before = openDescriptors(path)
    for (let times = 0; times < 50; times += 1) await expect(ids(store)).rejects.toSatisfy(isBusy)
    expect(openDescriptors(path)).toBe(before)
    await release()
    expect(await ids(store)).toEqual(['1'])
  })

  test('the time in which a database opens counts for the deadline of a write', async () => {
    const { path } = await holding('1')
    const release = await holdLock(pathToFileURL(path).href, 'committing')
    const store = open(path)
    const write = store.batchWithin([{ sql: INSERT_TITLE, args: ['2'] }], 50)
    setTimeout(() => void release(), 200)
    await expect(write).rejects.toBeInstanceOf(DeadlineExceeded)
    expect(await ids(store)).toEqual(['1'])
  })

  test('a database that another file replaces while it is locked is opened from the other file', async () => {
    const { path } = await holding('1')
    const other = await holding('2')
    await holdLock(pathToFileURL(path).href, 'committing')
    const store = open(path, 0)
    await expect(ids(store)).rejects.toSatisfy(isBusy)
    renameSync(other.path, path)
    expect(await ids(store)).toEqual(['2'])
  })
})

test('migrations are applied once when four connections open a database at the same time', async () => {
  const path = newDatabase().path
  const stores = Array.from({ length: 4 }, () => open(path, 15_000))
  expect(await Promise.all(stores.map(ids))).toEqual([[], [], [], []])
  const { rows } = await rawClient(pathToFileURL(path).href).execute('SELECT hash FROM migrations_feed')
  expect(rows).toHaveLength(readdirSync(migrationsOf('feed')).filter((name) => name.endsWith('.sql')).length)
})

describe('a database that has changed', () => {
  test('a database removed while open is refused, and never created again', async () => {
    const { path, store } = await holding('1')
    rmSync(path)
    for (let again = 0; again < 3; again += 1) await expect(ids(store)).rejects.toMatchObject(UNAVAILABLE)
    await expect(save(store, '2')).rejects.toMatchObject(UNAVAILABLE)
    expect(existsSync(path)).toBe(false)
  })

  test('a database whose folder was unmounted is refused, and works again once it is back', async () => {
    const disk = join(temporaryFolder(), 'disk')
    mkdirSync(disk)
    const store = open(join(disk, 'feed.db'))
    await save(store, '1')
    renameSync(disk, `${disk}-elsewhere`)
    await expect(ids(store)).rejects.toMatchObject(UNAVAILABLE)
    mkdirSync(disk)
    await expect(ids(store)).rejects.toMatchObject(UNAVAILABLE)
    expect(readdirSync(disk)).toEqual([])
    rmdirSync(disk)
    renameSync(`${disk}-elsewhere`, disk)
    expect(await ids(store)).toEqual(['1'])
  })

  test('a database is read again when another file replaces it', async () => {
    const { path, store } = await holding('old')
    const other = await holding('new')
    other.store.close()
    renameSync(other.path, path)
    expect(await ids(store)).toEqual(['new'])
    await save(store, 'newer')
    expect(await ids(open(path))).toEqual(['new', 'newer'])
  })

  test.each([
    ['missing', () => undefined],
    ['a file', (folder: string) => writeFileSync(folder, '')],
  ])('a database is unavailable while its folder is %s, and opens once it exists', async (_what, put) => {
    const folder = join(temporaryFolder(), 'folder')
    put(folder)
    const store = open(join(folder, 'feed.db'))
    await expect(ids(store)).rejects.toMatchObject(UNAVAILABLE)
    rmSync(folder, { force: true })
    await expect(ids(store)).rejects.toMatchObject(UNAVAILABLE)
    expect(existsSync(folder)).toBe(false)
    mkdirSync(folder)
    expect(await ids(store)).toEqual([])
  })

  test.each<[string, object, (path: string) => void]>([
    ['unavailable when a folder stands in its place', UNAVAILABLE, (path) => mkdirSync(path)],
    [
      'damaged when its file is no database',
      DAMAGED,
      (path) => writeFileSync(path, 'certainly not a database, but long enough for a header\n'.repeat(100)),
    ],
  ])('a database is %s', async (_what, refusal, put) => {
    const path = newDatabase().path
    put(path)
    await expect(ids(open(path))).rejects.toMatchObject(refusal)
  })

  test('a database is damaged if a table is missing, or all of them after a migration', async () => {
    const { path, store } = await holding('1')
    const raw = rawClient(pathToFileURL(path).href)
    await raw.execute('DROP TABLE verified_titles')
    for (const work of [
      () => ids(store),
      () => store.batch(['SELECT * FROM verified_titles'], 'read'),
      () => store.execute("DELETE FROM verified_titles WHERE source = 'hn'"),
    ])
      await expect(work()).rejects.toMatchObject(DAMAGED)
    store.close()
    for (const table of ['signals', 'events', 'source_days', 'revision'])
      await raw.execute(`DROP TABLE ${table}`)
    await expect(ids(store)).rejects.toMatchObject(DAMAGED)
  })
})

test.each(['feed', 'state'] as const)(
  'a temporary %s database syncs nothing, and a durable handle takes it over',
  async (kind) => {
    const { url } = newDatabase()
    const synchronous = async (store: Database): Promise<unknown> => {
      await store.batch(['CREATE TABLE IF NOT EXISTS kept (id INTEGER)', 'INSERT INTO kept VALUES (1)'])
      return (await store.execute('PRAGMA synchronous')).rows[0]?.['synchronous']
    }
    const temporary = openStore(kind, url, { temporary: true })
    expect(await synchronous(temporary)).toBe(0)
    temporary.close()
    const durable = openStore(kind, url)
    expect(await synchronous(durable)).toBe(3)
    const { rows } = await durable.execute('SELECT count(*) AS count FROM kept')
    expect(rows[0]?.['count']).toBe(2)
  },
)

const BUSY = { nativeBusyMs: 10, retryMs: 2_000 }

async function openBoth(): Promise<{ path: string; url: string; owner: Database; reader: Database }> {
  const { path, url } = newDatabase()
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

test.each(WRITES)('the engine itself refuses a write of a query-only connection: %s', async (sql) => {
  const { url, owner } = await openBoth()
  await owner.open()
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

describe('a read-only handle', () => {
  test("the handle reads its owner's data", async () => {
    const { owner, reader } = await openBoth()
    await owner.execute('UPDATE revision SET number = 41')
    const sql = 'SELECT number FROM revision'
    const results = [
      await reader.execute(sql),
      (await reader.batch([sql, { sql: 'SELECT ?', args: [1] }], 'read'))[0],
      await reader.snapshot(sql, (each) => each.execute(sql)),
    ]
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
    for (const work of [
      () => reader.execute(sql),
      () => reader.execute({ sql, args: [] }),
      () => reader.batch(['SELECT 1', sql], 'write'),
      () => reader.batch([{ sql, args: [] }], 'read'),
      () => reader.batchWithin([sql], 100),
      () => reader.transact((tx) => tx.execute(sql)),
      () => reader.snapshot('SELECT 1', (each) => each.execute(sql)),
    ])
      await expect(work()).rejects.toThrow('is read-only and accepts only SELECT')
    const ways = ['batch', 'batchWithin', 'execute', 'makeDurable', 'snapshot', 'transact']
    expect(Object.keys(reader).sort()).toEqual([...ways, 'changeToken', 'close', 'open'].sort())
  })

  test('the handle never creates a database: its owner does', async () => {
    const { path, url, owner, reader } = await openBoth()
    const orphan: Database = { ...owner, open: () => Promise.resolve() }
    const alone = readOnlyDatabase({ location: { url, authToken: null }, ...BUSY }, orphan)
    await expect(alone.open()).rejects.toMatchObject({ code: 'storage_unavailable' })
    expect(existsSync(path)).toBe(false)
    await reader.open()
    expect(existsSync(path)).toBe(true)
  })
})
