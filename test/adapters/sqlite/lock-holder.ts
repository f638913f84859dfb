import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import type { Client } from '@libsql/client'
import { onTestFinished, expect, vi } from 'vitest'
import { database } from '../../../src/adapters/sqlite/database.ts'
import type { Database } from '../../../src/adapters/sqlite/database.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

type DatabaseOptions = Parameters<typeof database>[0]

/**
 * How a connection can hold a database: `reading` lets others read but not commit, `writing` lets others read but not
 * write, `committing` keeps everybody out.
 */
export type Lock = 'reading' | 'writing' | 'committing'

/** An address of a database, and its file in a folder of the test's own. */
export function newDatabase(name = 'some.db'): { path: string; url: string } {
  const path = join(temporaryFolder(), name)
  return { path, url: pathToFileURL(path).href }
}

/** A store at an address, migrated at its first use and closed when the test ends. */
export function openStore(
  store: DatabaseOptions['store'],
  url: string,
  changes: Partial<DatabaseOptions> = {},
): Database {
  const location = { url, authToken: null }
  const opened = database({ location, store, nativeBusyMs: 10, retryMs: 5_000, ...changes })
  onTestFinished(() => opened.close())
  return opened
}

/** A lock that another connection holds until `release` is called, at the latest until the test ends. */
export async function holdLock(
  url: string,
  lock: Lock,
  statements: readonly string[] = [],
): Promise<() => Promise<void>> {
  const client = rawClient(url)
  if (lock === 'committing') await client.execute('PRAGMA locking_mode = EXCLUSIVE')
  const transaction = await client.transaction(lock === 'reading' ? 'read' : 'write')
  await transaction.execute('SELECT count(*) FROM sqlite_schema')
  for (const statement of statements) await transaction.execute(statement)
  // In exclusive locking mode the lock of a commit stays with the connection.
  if (lock === 'committing') {
    await transaction.execute('PRAGMA user_version = 1')
    await transaction.commit()
  }
  let held = true
  const release = async (): Promise<void> => {
    if (!held) return
    held = false
    if (lock !== 'committing') return transaction.commit()
    await client.execute('PRAGMA locking_mode = NORMAL')
    await client.execute('SELECT count(*) FROM sqlite_schema')
  }
  onTestFinished(release)
  return release
}

/** A client of the test's own, past every adapter; closed when the test ends. */
export function rawClient(url: string): Client {
  const client = createClient({ url, timeout: 5_000, concurrency: 1 })
  onTestFinished(() => client.close())
  return client
}

/**
 * Starts work and lets it wait long enough for several tries, during which the event loop has to turn.
 *
 * @returns a function that waits for the work's result
 */
export async function startWaiting<T>(work: () => Promise<T>): Promise<() => Promise<T>> {
  let [ticks, settled] = [0, false]
  const timer = setInterval(() => (ticks += 1), 5)
  onTestFinished(() => clearInterval(timer))
  const running = work().finally(() => (settled = true))
  const outcome = Promise.allSettled([running])
  await vi.waitUntil(() => settled || ticks >= 20, { interval: 1, timeout: 10_000 })
  if (settled) expect(await outcome).toBe('still waiting')
  return () => running
}
