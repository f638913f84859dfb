import type { Client, InStatement, ResultSet } from '@libsql/client'
import { LibsqlError } from '@libsql/client/sqlite3'

/**
 * What a store works with, whichever engine holds it; drizzle takes it for a client of the driver. Interactive
 * transactions are not for stores: a server ends them after five seconds.
 */
export interface StoreClient extends Client {
  /**
   * Runs statements as one write transaction that commits within `ms` of the call or not at all.
   *
   * @throws TooLate when the time was over before the commit: then nothing has happened. Another error may hide a
   *   commit whose answer was lost, but none that is still to come
   */
  batchWithin(statements: readonly InStatement[], ms: number): Promise<ResultSet[]>
  /**
   * One consistent reading made of several statements. `read` may run more than once.
   *
   * @param revision a query whose one number changes with everything `read` looks at
   */
  snapshot<T>(revision: string, read: (reader: Reader) => Promise<T>): Promise<T>
  /** Resolves when a power cut can take nothing that was written before, however fast it was written. */
  makeDurable(): Promise<void>
}

/** What can be asked for rows. */
export type Reader = Pick<Client, 'execute'>

/** The time a write had was over; it has not happened. */
export class TooLate extends Error {
  override readonly name = 'TooLate'
}

/** True when an answer is larger than a server gives: ask for less at once. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof LibsqlError && /^(SQLITE_TOOBIG|RESPONSE_TOO_LARGE)$/.test(error.code)
}
