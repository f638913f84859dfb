import { statSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Client, InArgs, InStatement, ResultSet, Transaction, TransactionMode } from '@libsql/client'
import { DeadlineExceeded, commitAfter } from './rows.ts'
import type { StoreClient } from './rows.ts'
import { isBusy, retryBusy } from './vendor-errors.ts'

interface GuardOptions {
  journal?: Journal
  /** Path of the write-ahead log, for a file that has one. */
  walPath?: string | null
  /** Executed on the connection before each piece of work, since a retry may have opened a new connection. */
  settings?: string
}

/** A store's client with interactive transactions, which block all other work. */
type GuardedClient = StoreClient & Pick<Client, 'transaction' | 'executeMultiple' | 'reconnect'>

/**
 * Wraps the driver's client for a store in a file or in memory. It works around three faults of the driver:
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
): GuardedClient {
  let queue: Promise<unknown> = Promise.resolve()

  /** Waits for all earlier work; resolves to the function that starts the next one. */
  const waitForTurn = async (): Promise<() => void> => {
    const before = queue
    let release: () => void = () => undefined
    queue = new Promise<void>((resolve) => (release = resolve))
    await before
    return release
  }

  const exclusively = async <T>(work: () => Promise<T>): Promise<T> => {
    const release = await waitForTurn()
    try {
      return await work()
    } finally {
      release()
    }
  }

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

  const begin = (mode: TransactionMode, deadline: number): Promise<Transaction> =>
    retryBusy(async () => {
      // Set each time, because the driver may have opened a new connection, and before the transaction, because it
      // cannot be set inside.
      await client.executeMultiple(mode === 'read' ? settings : `${settings};${JOURNAL_SETTINGS[journal]}`)
      const tx = await client.transaction(mode === 'write' ? 'deferred' : mode)
      try {
        if (mode !== 'deferred') await tx.executeMultiple(mode === 'write' ? TAKE_WRITE_LOCK : TAKE_READ_LOCK)
        return tx
      } catch (error) {
        tx.close()
        throw error
      }
    }, deadline)

  const commit: Commit = async (tx, deadline) => {
    try {
      await retryBusy(() => tx.executeMultiple('COMMIT'), deadline)
    } finally {
      tx.close()
    }
  }

  const run = async (tx: Transaction, statements: InStatement[]): Promise<ResultSet[]> => {
    try {
      return await tx.batch(statements)
    } catch (error) {
      abandon(client, tx, error)
      throw error
    }
  }

  const batch = async (
    statements: InStatement[],
    mode: TransactionMode,
    deadline: number,
  ): Promise<ResultSet[]> => {
    const tx = await begin(mode, deadline)
    const results = await run(tx, statements)
    await commit(tx, deadlineFromNow())
    return results
  }

  const batchUntil = async (statements: InStatement[], deadline: number): Promise<ResultSet[]> => {
    try {
      const tx = await begin('write', deadline)
      const results = await run(tx, [SHORT_WAIT, ...statements])
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

  const transaction = async (mode: TransactionMode = 'write'): Promise<Transaction> => {
    const deadline = deadlineFromNow()
    const release = await waitForTurn()
    try {
      return exclusiveTransaction(await begin(mode, deadline), client, commit, busyMs, release)
    } catch (error) {
      release()
      throw error
    }
  }

  const execute = (statement: InStatement): Promise<ResultSet> => {
    const withArgs = typeof statement === 'string' ? { sql: statement, args: [] } : statement
    const deadline = deadlineFromNow()
    return exclusively(async () => {
      if (QUERY_PATTERN.test(withArgs.sql)) return query(withArgs, deadline)
      const [result] = await batch([withArgs], 'write', deadline)
      if (!result) throw new Error('a statement returned no result')
      return result
    })
  }

  return {
    execute,
    batch: (statements, mode) => {
      const deadline = deadlineFromNow()
      return exclusively(() => batch(statements, mode ?? 'write', deadline))
    },
    batchWithin: (statements, ms) => {
      const deadline = performance.now() + ms
      return exclusively(() => batchUntil([...statements], deadline))
    },
    snapshot: async (_revision, read) => {
      const tx = await transaction('read')
      try {
        return await read(tx)
      } finally {
        tx.close()
      }
    },
    transact: async (work) => commitAfter(await transaction(), work),
    transaction,
    executeMultiple: (sql) => exclusively(() => client.executeMultiple(sql)),
    makeDurable: async () => {
      if (walPath === null) return
      await syncWal(walPath)
      if (isLongWal(walPath)) await exclusively(() => truncateWal(client))
    },
    reconnect: () => client.reconnect(),
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

/** Rolls a transaction back. After a busy statement its connection is replaced. */
function abandon(client: Client, tx: Transaction, error: unknown): void {
  tx.close()
  if (isBusy(error)) client.reconnect()
}

type Commit = (tx: Transaction, deadline: number) => Promise<void>

/** Wraps a transaction for the caller: it releases the queue in every case when it ends. */
function exclusiveTransaction(
  tx: Transaction,
  client: Client,
  commit: Commit,
  busyMs: number,
  release: () => void,
): Transaction {
  let failure: unknown = null
  const recordFailure = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      failure = error
      throw error
    }
  }
  let ended = false
  const undo = (): void => {
    if (!ended) abandon(client, tx, failure)
    ended = true
    release()
  }
  return {
    execute: (statement: InStatement | string, args?: InArgs) =>
      recordFailure(
        typeof statement === 'string'
          ? tx.execute({ sql: statement, args: args ?? [] })
          : tx.execute(statement),
      ),
    batch: (statements) => recordFailure(tx.batch(statements)),
    executeMultiple: (sql) => recordFailure(tx.executeMultiple(sql)),
    commit: () => {
      ended = true
      return commit(tx, performance.now() + busyMs).finally(release)
    },
    rollback: () => Promise.resolve().then(undo),
    close: undo,
    get closed() {
      return tx.closed
    },
  }
}

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
 */
const JOURNAL_SETTINGS = {
  rollback: 'PRAGMA synchronous = EXTRA',
  wal: 'PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = EXTRA',
  'wal-fast': 'PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL',
  temporary: 'PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF',
} satisfies Record<Journal, string>

export function walPathOf(databasePath: string): string {
  return `${databasePath}-wal`
}

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
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** Size of a log that triggers a checkpoint, which blocks this thread and every writer. */
const WAL_MAX_BYTES = 32 * 1024 * 1024

/** Time in milliseconds that a checkpoint waits for writers and readers; it blocks this thread. */
const WAL_WAIT_MS = 250

function isLongWal(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > WAL_MAX_BYTES
}

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
