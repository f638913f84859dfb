import { setTimeout as sleep } from 'node:timers/promises'
import { LibsqlError } from '@libsql/client'
import type {
  Client,
  InArgs,
  InStatement,
  Replicated,
  ResultSet,
  Transaction,
  TransactionMode,
} from '@libsql/client'

/**
 * The client every store goes through. It exists because of two faults of the driver:
 *
 * - after one SQLITE_BUSY the connection acknowledges writes it never commits, until it is reopened; so a busy
 *   connection is always reconnected before anything else runs on it
 * - two open transactions on one client wait for each other; so work is handed out one at a time
 *
 * @param busyMs how long to go on retrying a busy database before the error is thrown
 */
export function guardClient(client: Client, busyMs: number): Client {
  let last: Promise<unknown> = Promise.resolve()

  /** Waits for everything asked before; resolves to the function that lets the next one go. */
  const turn = async (): Promise<() => void> => {
    const before = last
    let release: () => void = () => undefined
    last = new Promise<void>((resolve) => (release = resolve))
    await before
    return release
  }

  const retryBusy = async <T>(work: () => Promise<T>): Promise<T> => {
    const deadline = performance.now() + busyMs
    for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 100)) {
      try {
        return await work()
      } catch (error) {
        if (!isBusy(error)) throw error
        client.reconnect()
        if (performance.now() >= deadline) throw error
        await sleep(pauseMs)
      }
    }
  }

  const alone = async <T>(work: () => Promise<T>): Promise<T> => {
    const release = await turn()
    try {
      return await retryBusy(work)
    } finally {
      release()
    }
  }

  const transaction = async (mode?: TransactionMode): Promise<Transaction> => {
    const release = await turn()
    try {
      const open = await retryBusy(() => client.transaction(mode ?? 'write'))
      return releasing(open, client, release)
    } catch (error) {
      release()
      throw error
    }
  }

  function execute(statement: InStatement): Promise<ResultSet>
  function execute(sql: string, args?: InArgs): Promise<ResultSet>
  function execute(statement: InStatement | string, args?: InArgs): Promise<ResultSet> {
    return alone(() =>
      typeof statement === 'string' ? client.execute(statement, args) : client.execute(statement),
    )
  }

  return {
    execute,
    transaction,
    batch: (statements, mode) => alone(() => client.batch(statements, mode ?? 'write')),
    migrate: (statements) => alone(() => client.migrate(statements)),
    executeMultiple: (sql) => alone(() => client.executeMultiple(sql)),
    sync: (): Promise<Replicated> => client.sync(),
    reconnect: () => client.reconnect(),
    close: () => client.close(),
    get closed() {
      return client.closed
    },
    get protocol() {
      return client.protocol
    },
  }
}

/** True for a lock held by somebody else, under each code the driver reports it with. */
export function isBusy(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LibsqlError && /^SQLITE_(BUSY|LOCKED)/.test(cause.code)) return true
  }
  return false
}

/** A transaction that gives its turn back exactly once, and leaves no poisoned connection behind a busy commit. */
function releasing(open: Transaction, client: Client, release: () => void): Transaction {
  let busy = false
  const noticing = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      busy ||= isBusy(error)
      throw error
    }
  }
  const ending = async (work: () => Promise<void>): Promise<void> => {
    try {
      await noticing(work())
    } finally {
      open.close()
      if (busy) client.reconnect()
      release()
    }
  }
  return {
    execute: (statement: InStatement | string, args?: InArgs) =>
      noticing(
        typeof statement === 'string'
          ? open.execute({ sql: statement, args: args ?? [] })
          : open.execute(statement),
      ),
    batch: (statements) => noticing(open.batch(statements)),
    executeMultiple: (sql) => noticing(open.executeMultiple(sql)),
    commit: () => ending(() => open.commit()),
    rollback: () => ending(() => open.rollback()),
    close: () => {
      open.close()
      release()
    },
    get closed() {
      return open.closed
    },
  }
}
