import { setTimeout as sleep } from 'node:timers/promises'
import { LibsqlError } from '@libsql/client/sqlite3'

/** True for a lock held by somebody else, under each code the driver reports it with. */
export function isBusy(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LibsqlError && /^SQLITE_(BUSY|LOCKED)/.test(cause.code)) return true
  }
  return false
}

/**
 * Runs work, again while it finds the database busy.
 *
 * @param deadline by `performance.now()`; the last busy error is thrown once it has passed
 * @param beforeRetry is called after every busy error, the last one too
 */
export async function retryBusy<T>(
  work: () => Promise<T>,
  deadline: number,
  beforeRetry: () => void = () => undefined,
): Promise<T> {
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 100)) {
    try {
      return await work()
    } catch (error) {
      if (!isBusy(error)) throw error
      beforeRetry()
      if (performance.now() >= deadline) throw error
      await sleep(pauseMs)
    }
  }
}
