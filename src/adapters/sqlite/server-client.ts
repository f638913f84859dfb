import { setTimeout as sleep } from 'node:timers/promises'
import { LibsqlBatchError, LibsqlError, createClient } from '@libsql/client'
import type { Client, InStatement, ResultSet, Transaction } from '@libsql/client'
import { Refusal, StorageFault, errorCode, storageUnavailable } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/refusal.ts'
import { TimeLimitExceeded, openHttpClient, readBody } from '../http.ts'
import type { HttpResponse } from '../http.ts'
import { DeadlineExceeded } from './rows.ts'
import type { SqlReader, SqlTransaction, StoreClient } from './rows.ts'
import { isBusy, retryBusy } from './guard.ts'

/** Attempts to read a snapshot without a concurrent write. */
const SNAPSHOT_ATTEMPTS = 5

/**
 * Creates the client of a store on a libSQL server. A write is one batch in one request, or a transaction: it happens as a
 * whole or not at all. A write whose response was lost is never sent again (docs/decisions/0008-libsql-server.md).
 *
 * @param name name of the server in error messages
 * @param busyMs time in milliseconds for retrying a busy database before the error is thrown
 */
export function serverClient(location: DatabaseLocation, name: string, busyMs: number): StoreClient {
  const requests = openServerRequests(name)
  const { url, authToken } = location
  const client = createClient({ url, ...(authToken === null ? {} : { authToken }), fetch: requests.fetch })
  const withBusyRetry = <T>(work: () => Promise<T>): Promise<T> => retryBusy(work, performance.now() + busyMs)
  const execute: SqlReader['execute'] = (statement) => withBusyRetry(() => client.execute(statement))
  return {
    execute,
    batch: (statements, mode = 'write') => withBusyRetry(() => client.batch(statements, mode)),
    transact: (work) => withBusyRetry(async () => commitAfter(await client.transaction('write'), work)),
    batchWithin: (statements, ms) => batchWithin(client, statements, ms),
    snapshot: (revision, read) => snapshot({ execute }, revision, read, name),
    // The server is responsible for the durability of acknowledged writes.
    makeDurable: () => Promise.resolve(),
    close() {
      client.close()
      requests.close()
    },
  }
}

const SERVER_TIME = "SELECT unixepoch('subsec') AS now"

/** Fails, and so rolls its batch back, after a time by the server's clock. */
const FAIL_WHEN_LATE = "SELECT CASE WHEN unixepoch('subsec') > ? THEN json('late') END"

/**
 * Runs a batch with a deadline. The server's clock is read first. The reading precedes its response, so the
 * remaining time is never overestimated, even if the clocks differ. The batch carries its deadline and does not
 * commit after it, however long it is delayed. The check is the last statement: the server holds its lock by then,
 * and only the commit follows.
 */
async function batchWithin(
  client: Client,
  statements: readonly InStatement[],
  ms: number,
): Promise<ResultSet[]> {
  const deadline = performance.now() + ms
  let sent = false
  try {
    return await retryBusy(async () => {
      // Read in a write batch, so that the primary responds and not a replica.
      const [serverTime] = await client.batch([SERVER_TIME], 'write')
      const leftMs = deadline - performance.now()
      if (leftMs < 0) throw new DeadlineExceeded('the commit timed out')
      const deadlineCheck = {
        sql: FAIL_WHEN_LATE,
        args: [Number(serverTime?.rows[0]?.['now']) + leftMs / 1000],
      }
      sent = true
      const results = await client.batch([...statements, deadlineCheck], 'write')
      return results.slice(0, -1)
    }, deadline)
  } catch (error) {
    if (isBusy(error)) throw new DeadlineExceeded('the database was locked', { cause: error })
    if (failedAtStatement(error, statements.length))
      throw new DeadlineExceeded('the statement reached the server too late', { cause: error })
    // Until the deadline the batch may still arrive; afterwards a read shows whether it was committed.
    const mayStillArrive = sent && !isServerError(error) && !wasNeverSent(error)
    if (mayStillArrive) await sleep(Math.max(0, deadline - performance.now()))
    throw error
  }
}

function failedAtStatement(error: unknown, statement: number): boolean {
  return (
    error instanceof LibsqlBatchError &&
    error.statementIndex === statement &&
    error.message.includes('malformed JSON')
  )
}

/** Returns true if the server itself reported that a statement failed. */
function isServerError(error: unknown): boolean {
  if (error instanceof DeadlineExceeded) return true
  return error instanceof LibsqlError && error.cause instanceof Error && error.cause.name === 'ResponseError'
}

async function snapshot<T>(
  reader: SqlReader,
  revision: string,
  read: (reader: SqlReader) => Promise<T>,
  name: string,
): Promise<T> {
  const readRevision = async (): Promise<number> => Number((await reader.execute(revision)).rows[0]?.[0])
  let before = await readRevision()
  for (let attempt = 1; attempt <= SNAPSHOT_ATTEMPTS; attempt += 1) {
    const value = await read(reader)
    const after = await readRevision()
    if (after === before) return value
    before = after
  }
  throw new Error(`the store on ${name} changed during each of ${SNAPSHOT_ATTEMPTS} reads`)
}

const CONNECT_TIMEOUT_MS = 5_000

/** Time limit of a whole response; on a server a write waits for another for up to five seconds. */
const RESPONSE_TIMEOUT_MS = 10_000

/** Error codes of failures before the first byte of a request was sent. */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_\w+|\w*CERT\w*)$/

/** Sends the driver's requests over this adapter's connections. */
export interface ServerRequests {
  /**
   * @throws Refusal `storage_unavailable` if the server is unreachable or rejects the token; StorageFault at the
   *   time limit
   */
  fetch: (request: Request) => Promise<Response>
  close(): void
}

/** @param name name of the server in error messages */
export function openServerRequests(name: string, responseTimeoutMs = RESPONSE_TIMEOUT_MS): ServerRequests {
  const http = openHttpClient({ connect: { timeout: CONNECT_TIMEOUT_MS } })
  return {
    async fetch(request) {
      const body = new Uint8Array(await request.arrayBuffer())
      try {
        return await http.exchange(
          {
            url: request.url,
            headers: Object.fromEntries(request.headers),
            body,
            timeoutMs: responseTimeoutMs,
          },
          (response) => toResponse(response, name),
        )
      } catch (error) {
        if (error instanceof TimeLimitExceeded)
          throw new StorageFault(`${name} did not respond within ${responseTimeoutMs} ms`, {
            cause: error.cause,
          })
        const code = errorCode(error)
        if (error instanceof Refusal || code === null) throw error
        const fix = 'start it or correct the variable with this URL'
        throw storageUnavailable(`${name} cannot be reached (${code}); ${fix}`, error)
      }
    },
    close: () => void http.close(),
  }
}

async function toResponse({ statusCode, headers, body }: HttpResponse, name: string): Promise<Response> {
  if (statusCode === 401 || statusCode === 403) {
    throw storageUnavailable(`${name} responded with ${statusCode}; correct DASH_DATABASE_AUTH_TOKEN`)
  }
  const type = headers['content-type']
  // Query results have no size limit: the server is the operator's own.
  const bytes = await readBody(body, Number.POSITIVE_INFINITY)
  // A web server may send a page for any path.
  if (statusCode === 200 && !/^\s*\{/.test(bytes?.toString('utf8', 0, 100) ?? ''))
    throw new StorageFault(`${name} failed (its response is not a JSON object); check it and its URL`)
  return new Response(bytes, {
    status: statusCode,
    headers: typeof type === 'string' ? { 'content-type': type } : {},
  })
}

/** Returns true if the server cannot have received the failed request. */
export function wasNeverSent(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (NEVER_SENT.test(errorCode(cause) ?? '')) return true
  }
  return false
}

/** Commits a transaction when `work` resolves, and undoes it when `work` rejects. */
async function commitAfter<T>(tx: Transaction, work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
  try {
    const value = await work(tx)
    await tx.commit()
    return value
  } finally {
    tx.close()
  }
}
