import { statSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, InStatement, ResultSet, Transaction } from '@libsql/client'
import { LibsqlError } from '@libsql/client/sqlite3'
import pLimit from 'p-limit'
import { Refusal, StorageFault, errorCode, storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import { DeadlineExceeded } from './rows.ts'
import type { StoreClient } from './rows.ts'

interface GuardOptions {
  journal?: Journal
  /** Path of the write-ahead log, for a file that has one. */
  walPath?: string | null
  /** Executed on the connection before each piece of work, since a retry may have opened a new connection. */
  settings?: string
}

/**
 * Wraps the driver's client for a store in a file. It works around three faults of the driver:
 *
 * - a prepared statement that failed with SQLITE_BUSY is not reset: its connection acknowledges writes it never
 *   commits, and its descriptors and any lock it had are kept, even when the connection is closed, until the statement
 *   is garbage
 * - two open transactions on one client block each other
 * - a read transaction takes its lock only with its first statement
 *
 * Therefore work runs one at a time, and locks are taken by scripts: unlike a prepared statement, a failed script is
 * reset and keeps nothing, so that it is retried on the same connection. Every write is an explicit transaction. Only a
 * statement that is busy although its lock was free just before gets a new connection.
 *
 * @param busyMs time in milliseconds for retrying a busy database before the error is thrown
 */
export function guardClient(
  client: Client,
  busyMs: number,
  { journal = 'rollback', walPath = null, settings = '' }: GuardOptions = {},
): StoreClient {
  const exclusively = pLimit(1)

  /** Returns the end of the retries of work requested now; waiting for its turn counts. */
  const deadlineFromNow = (): number => performance.now() + busyMs

  const query = (statement: InStatement, deadline: number): Promise<ResultSet> =>
    retryBusy(async () => {
      await client.executeMultiple(`${settings};${TAKE_READ_LOCK}`)
      try {
        return await client.execute(statement)
      } catch (error) {
        if (isBusy(error)) client.reconnect()
        throw error
      }
    }, deadline)

  const begin = (mode: 'read' | 'write', deadline: number): Promise<Transaction> =>
    retryBusy(async () => {
      // Set each time, because the driver may have opened a new connection, and before the transaction, because it
      // cannot be set inside.
      await client.executeMultiple(mode === 'read' ? settings : `${settings};${JOURNAL_SETTINGS[journal]}`)
      const tx = await client.transaction(mode === 'write' ? 'deferred' : mode)
      try {
        await tx.executeMultiple(mode === 'write' ? TAKE_WRITE_LOCK : TAKE_READ_LOCK)
        return tx
      } catch (error) {
        tx.close()
        throw error
      }
    }, deadline)

  const commit = async (tx: Transaction, deadline: number): Promise<void> => {
    try {
      await retryBusy(() => tx.executeMultiple('COMMIT'), deadline)
    } finally {
      tx.close()
    }
  }

  const run = async <T>(tx: Transaction, work: (tx: Transaction) => Promise<T>): Promise<T> => {
    try {
      return await work(tx)
    } catch (error) {
      tx.close()
      // After a busy statement the connection is replaced.
      if (isBusy(error)) client.reconnect()
      throw error
    }
  }

  /** Runs work as a transaction, alone. */
  const transact = <T>(mode: 'read' | 'write', work: (tx: Transaction) => Promise<T>): Promise<T> => {
    const deadline = deadlineFromNow()
    return exclusively(async () => {
      const tx = await begin(mode, deadline)
      const value = await run(tx, work)
      await commit(tx, deadlineFromNow())
      return value
    })
  }

  const batchUntil = async (statements: InStatement[], deadline: number): Promise<ResultSet[]> => {
    try {
      const tx = await begin('write', deadline)
      const results = await run(tx, () => tx.batch([SHORT_WAIT, ...statements]))
      if (performance.now() > deadline) {
        tx.close()
        throw new DeadlineExceeded('the commit timed out')
      }
      await commit(tx, deadline)
      return results.slice(1)
    } catch (error) {
      throw isBusy(error) ? new DeadlineExceeded('the database was locked', { cause: error }) : error
    }
  }

  return {
    execute: (statement) => {
      if (!QUERY_PATTERN.test(typeof statement === 'string' ? statement : statement.sql))
        return transact('write', (tx) => tx.execute(statement))
      const deadline = deadlineFromNow()
      return exclusively(() => query(statement, deadline))
    },
    batch: (statements, mode = 'write') => transact(mode, (tx) => tx.batch(statements)),
    batchWithin: (statements, ms) => {
      const deadline = performance.now() + ms
      return exclusively(() => batchUntil([...statements], deadline))
    },
    snapshot: (_revision, read) => transact('read', read),
    transact: (work) => transact('write', work),
    makeDurable: async () => {
      if (walPath === null) return
      await syncWal(walPath)
      const size = statSync(walPath, { throwIfNoEntry: false })?.size ?? 0
      if (size > WAL_MAX_BYTES) await exclusively(() => truncateWal(client))
    },
    close: () => client.close(),
  }
}

/** Statements that take no lock that needs a commit. */
const QUERY_PATTERN = /^\s*(SELECT|PRAGMA|EXPLAIN)\b/i

/** Takes the lock of a read, inside a transaction or to see that it is free. */
const TAKE_READ_LOCK = 'SELECT 1 FROM sqlite_schema LIMIT 1'

/** Ends a transaction that has no lock yet, and begins one with the lock of a write. */
const TAKE_WRITE_LOCK = 'COMMIT; BEGIN IMMEDIATE'

/** Limits the driver's own wait for a lock, in milliseconds, before a commit with a deadline. */
const SHORT_WAIT = 'PRAGMA busy_timeout = 50'

/**
 * Durability of a committed write to a file (docs/decisions/0001-sqlite-journal-and-driver-guard.md).
 *
 * - `rollback`: survives a power cut
 * - `wal`: survives a power cut, with a write-ahead log
 * - `wal-fast`: survives the death of the process, and a power cut after {@link syncWal}
 * - `temporary`: the death of the process can damage the file, which must not outlive it
 */
export type Journal = 'rollback' | 'wal' | 'wal-fast' | 'temporary'

/**
 * FULL does not sync the folder of a deleted rollback journal, so a power cut could restore the journal and undo
 * acknowledged writes. A commit never checkpoints the log; only {@link truncateWal} and the last connection that
 * closes do, and they exclude writers. This SQLite can lose commits to a log that is restarted during a checkpoint.
 * An import changes more pages than the default cache of 2 MiB holds; each would be written and read several times.
 */
const JOURNAL_SETTINGS = {
  rollback: 'PRAGMA cache_size = -65536; PRAGMA synchronous = EXTRA',
  wal: 'PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = EXTRA',
  'wal-fast': 'PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL',
  temporary: 'PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF',
} satisfies Record<Journal, string>

/** Resolves when a power cut cannot lose the contents of a log. Blocks neither writers nor this thread. */
async function syncWal(path: string): Promise<void> {
  await syncPath(path, 'r+')
  await syncPath(dirname(path), 'r')
}

async function syncPath(path: string, flags: string): Promise<void> {
  const file = await openIfPresent(path, flags)
  try {
    await file?.sync()
  } finally {
    await file?.close()
  }
}

/** Opens a path; null if it does not exist, since a missing log is empty. */
async function openIfPresent(
  path: string,
  flags: string,
): Promise<Awaited<ReturnType<typeof openFile>> | null> {
  try {
    return await openFile(path, flags)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

/** Size of a log that triggers a checkpoint, which blocks this thread and every writer. */
const WAL_MAX_BYTES = 32 * 1024 * 1024

/** Time in milliseconds that a checkpoint waits for writers and readers; it blocks this thread. */
const WAL_WAIT_MS = 250

/** Checkpoints and truncates a log. If a lock prevents it, a later call tries again. */
async function truncateWal(client: Client): Promise<void> {
  const { rows } = await client.execute('PRAGMA busy_timeout')
  await client.executeMultiple(`PRAGMA busy_timeout = ${WAL_WAIT_MS}`)
  try {
    await client.execute('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    await client.executeMultiple(`PRAGMA busy_timeout = ${Number(rows[0]?.[0])}`)
  }
}

/**
 * Converts a vendor error to a Refusal where the contract defines one; any other error is returned unchanged as a
 * fault.
 */
export function translateError(error: unknown, name: string): unknown {
  if (error instanceof Refusal || isBusy(error)) return error
  if (error instanceof Error && error.message.includes('ConnectionFailed')) {
    const fix = 'give this user read and write access to it and its folder'
    return storageUnavailable(`${name} cannot be opened; ${fix}`, error)
  }
  const vendor = vendorError(error)
  if (!vendor) return error
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(vendor.code)) {
    return storageDamaged(`${name} is damaged: ${vendor.message}`, error)
  }
  if (/JSON cannot hold BLOB/.test(vendor.message)) {
    return storageDamaged(`${name} contains bytes instead of text`, error)
  }
  if (/no such (table|column)/.test(vendor.message)) {
    return storageDamaged(`${name} has no complete schema: ${vendor.message}`, error)
  }
  if (/^SQLITE_(CANTOPEN|PERM|AUTH|READONLY)/.test(vendor.code)) {
    return storageUnavailable(`${name} cannot be opened: ${vendor.message}`, error)
  }
  if (vendor.code.startsWith('SQLITE_IOERR'))
    return new StorageFault(`${name} failed (${vendor.message}); check its disk`, { cause: error })
  if (/^(SERVER_ERROR|HRANA_)/.test(vendor.code))
    return new StorageFault(`${name} failed (${vendor.message}); check it and its URL`, { cause: error })
  return error
}

function vendorError(error: unknown): { code: string; message: string } | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // A batch names the code of its statement once more.
    if (cause instanceof LibsqlError)
      return { code: cause.code, message: cause.message.replace(/^(\w+: )\1/, '$1') }
    if (cause.name === 'SqliteError' && 'code' in cause && typeof cause.code === 'string') {
      return { code: cause.code, message: cause.message }
    }
  }
  return null
}

/** Returns true for a lock held by another connection, under each code the driver reports it with. */
export function isBusy(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LibsqlError && /^SQLITE_(BUSY|LOCKED)/.test(cause.code)) return true
  }
  return false
}

/**
 * Runs work, and retries it while the database is busy.
 *
 * @param deadline time by `performance.now()` after which the last busy error is thrown
 */
export async function retryBusy<T>(work: () => Promise<T>, deadline: number): Promise<T> {
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 100)) {
    try {
      return await work()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (performance.now() >= deadline) throw error
      await sleep(pauseMs)
    }
  }
}
