import { createClient, LibsqlError } from '@libsql/client'
import type { Client } from '@libsql/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isBusy, guardClient } from '../../../src/adapters/sqlite/guard.ts'
import { DeadlineExceeded } from '../../../src/adapters/sqlite/rows.ts'
import type { StoreClient } from '../../../src/adapters/sqlite/rows.ts'
import { openDescriptors } from '../../support/temporary-folder.ts'
import { holdLock, newDatabase, rawClient, startWaiting } from './lock-holder.ts'
import type { Lock } from './lock-holder.ts'

type Guarded = StoreClient

/** As a server opens a database: hardly any waiting inside the native call. */
const NATIVE_BUSY_MS = 10

async function notes(
  retryMs: number,
): Promise<{ path: string; url: string; client: Guarded; driver: Client }> {
  const { path, url } = newDatabase()
  await rawClient(url).execute('CREATE TABLE notes (text TEXT NOT NULL)')
  const driver = createClient({ url, timeout: NATIVE_BUSY_MS, concurrency: 1 })
  const client = guardClient(driver, retryMs)
  onTestFinished(() => client.close())
  return { path, url, client, driver }
}

/** Reads the rows in the file through another connection, in order. */
async function textsIn(url: string): Promise<unknown[]> {
  const client = rawClient(url)
  const result = await client.execute('SELECT text FROM notes ORDER BY rowid')
  return result.rows.map((row) => row['text'])
}

const insert = (text: string): { sql: string; args: string[] } => ({
  sql: 'INSERT INTO notes VALUES (?)',
  args: [text],
})

/** Every way to write through a client. */
const WRITES: Record<string, (client: Guarded, text: string) => Promise<unknown>> = {
  'a statement': (client, text) => client.execute(insert(text)),
  'a batch': (client, text) => client.batch([insert(text)], 'write'),
  'a transaction': (client, text) => client.transact((tx) => tx.execute(insert(text))),
}

/** Every way to read through a client. */
const READS: Record<string, (client: Guarded) => Promise<unknown>> = {
  'a query': (client) => client.execute('SELECT text FROM notes'),
  'a batch of queries': (client) => client.batch(['SELECT text FROM notes'], 'read'),
  'a read transaction': (client) => client.snapshot('', (reader) => reader.execute('SELECT text FROM notes')),
}

const LOCKS: Lock[] = ['reading', 'writing', 'committing']

const CASES = LOCKS.flatMap((lock) => Object.entries(WRITES).map(([what, write]) => ({ lock, what, write })))

describe('a guarded client', () => {
  test.each(CASES)(
    'the client lets $what wait for a connection that is $lock, and really writes it',
    async ({ lock, write }) => {
      const { url, client } = await notes(5_000)
      const release = await holdLock(url, lock)
      const writing = await startWaiting(() => write(client, 'patient'))
      await release()
      await writing()
      expect(await textsIn(url)).toEqual(['patient'])
    },
  )

  test.each(CASES)(
    'the client fails $what while another connection keeps $lock, and stays usable',
    async ({ lock, write }) => {
      const { url, client } = await notes(100)
      const release = await holdLock(url, lock)
      const startedAt = performance.now()
      const error = await write(client, 'too late').catch((reason: unknown) => reason)
      expect(isBusy(error)).toBe(true)
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(100)
      await release()
      // An acknowledged write must be in the file, visible to other connections, and no lock must be left.
      const other = rawClient(url)
      await client.execute(insert('one'))
      await other.execute(insert('two'))
      await client.batch([insert('three')], 'write')
      await other.execute(insert('four'))
      expect(await textsIn(url)).toEqual(['one', 'two', 'three', 'four'])
    },
  )

  test.each([
    ...CASES,
    ...Object.entries(READS).map(([what, write]) => ({ lock: 'committing' as const, what, write })),
  ])(
    'the client opens no more descriptors, however often $what fails while another connection is $lock',
    async ({ lock, write }) => {
      const { path, url, client } = await notes(0)
      await client.execute(insert('before'))
      await holdLock(url, lock)
      const before = openDescriptors(path)
      for (let times = 0; times < 50; times += 1)
        await expect(write(client, 'too late')).rejects.toSatisfy(isBusy)
      expect(openDescriptors(path)).toBe(before)
    },
  )

  test('the client keeps reading while another connection is writing', async () => {
    const { url, client } = await notes(0)
    await client.execute(insert('before'))
    await holdLock(url, 'writing', ["INSERT INTO notes VALUES ('not yet committed')"])
    const result = await client.execute('SELECT text FROM notes')
    expect(result.rows.map((row) => row['text'])).toEqual(['before'])
  })

  test.each(Object.entries(READS))(
    'the client lets %s wait for a connection that is committing',
    async (_what, read) => {
      const { url, client } = await notes(5_000)
      await client.execute(insert('stored'))
      const release = await holdLock(url, 'committing')
      const reading = await startWaiting(() => read(client))
      await release()
      expect(JSON.stringify(await reading())).toContain('stored')
    },
  )

  test('the client runs concurrent transactions one after the other', async () => {
    const { url, client } = await notes(1_000)
    const numbers = Array.from({ length: 20 }, (_, index) => index)
    await Promise.all(
      numbers.map(async (number) => {
        const transaction = client.transact(async (tx) => {
          await tx.execute(insert(`${number} first`))
          await new Promise((resolve) => setImmediate(resolve))
          await tx.execute(insert(`${number} second`))
          if (number % 2 === 0) throw new Error('undone')
        })
        await transaction.catch(() => undefined)
      }),
    )
    const committed = numbers.filter((number) => number % 2 === 1)
    expect(await textsIn(url)).toEqual(committed.flatMap((number) => [`${number} first`, `${number} second`]))
  })

  test('the client starts the next work after a failure', async () => {
    const { url, client } = await notes(1_000)
    const outcomes = await Promise.allSettled([
      client.execute('INSERT INTO nowhere VALUES (1)'),
      client.batch([insert('undone'), 'INSERT INTO nowhere VALUES (1)'], 'write'),
      client.transact(async (tx) => {
        await tx.execute(insert('undone too'))
        await tx.execute('INSERT INTO nowhere VALUES (1)')
      }),
      client.execute(insert('done')),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled'])
    expect(await textsIn(url)).toEqual(['done'])
  })
})

describe('a batch with a deadline', () => {
  test('the batch is committed, and returns the results of its own statements', async () => {
    const { url, client } = await notes(1_000)
    const results = await client.batchWithin([insert('one'), 'SELECT count(*) AS n FROM notes'], 1_000)
    expect(results.map(({ rowsAffected, rows }) => [rowsAffected, rows[0]?.['n']])).toEqual([
      [1, undefined],
      [0, 1],
    ])
    expect(await textsIn(url)).toEqual(['one'])
  })

  test.each(LOCKS)(
    'the batch is not committed if its time ends while another connection is %s',
    async (lock) => {
      const { url, client } = await notes(60_000)
      const release = await holdLock(url, lock)
      await expect(client.batchWithin([insert('late')], 100)).rejects.toBeInstanceOf(DeadlineExceeded)
      await release()
      expect(await textsIn(url)).toEqual([])
      await client.batchWithin([insert('in time')], 1_000)
      expect(await textsIn(url)).toEqual(['in time'])
    },
  )

  test('the batch is not committed if its statements exceed its time', async () => {
    const { url, client } = await notes(60_000)
    const slow = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
      SELECT max(i) FROM n`
    await expect(client.batchWithin([insert('late'), slow], 1)).rejects.toBeInstanceOf(DeadlineExceeded)
    expect(await textsIn(url)).toEqual([])
    await client.batchWithin([insert('in time')], 1_000)
    expect(await textsIn(url)).toEqual(['in time'])
  })

  test('the batch is not committed if one of its statements fails', async () => {
    const { url, client } = await notes(1_000)
    const writing = client.batchWithin([insert('undone'), 'SELECT * FROM nowhere'], 1_000)
    await expect(writing).rejects.toThrow('no such table')
    expect(await textsIn(url)).toEqual([])
  })
})

const levelOf = async (client: Guarded): Promise<unknown> =>
  (await client.execute('PRAGMA synchronous')).rows[0]?.['synchronous']

test.each(Object.entries(WRITES))(
  'a write by %s is synced with its folder, also after a reconnection',
  async (_what, write) => {
    const { client, driver } = await notes(1_000)
    await write(client, 'one')
    expect(await levelOf(client)).toBe(3)
    driver.reconnect()
    expect(await levelOf(client)).not.toBe(3)
    await write(client, 'two')
    expect(await levelOf(client)).toBe(3)
  },
)

test.each([
  [new LibsqlError('database is locked', 'SQLITE_BUSY'), true],
  [new LibsqlError('database table is locked', 'SQLITE_LOCKED'), true],
  [new LibsqlError('database is locked', 'SQLITE_BUSY_SNAPSHOT'), true],
  [new Error('Failed query', { cause: new LibsqlError('database is locked', 'SQLITE_BUSY') }), true],
  [new LibsqlError('UNIQUE constraint failed', 'SQLITE_CONSTRAINT'), false],
  [new Error('SQLITE_BUSY: database is locked'), false],
  [new Error('ENOENT', { cause: 'SQLITE_BUSY' }), false],
  ['SQLITE_BUSY', false],
  [null, false],
])('a busy error is distinguished from every other: %s', (error, expected) => {
  expect(isBusy(error)).toBe(expected)
})
