import { SEARCH_GROUPS } from '../../domain/feed/search/search.ts'
import type {
  ItemTrend,
  SearchCaller,
  SearchPage,
  SimilarItem,
  TermTrend,
} from '../../domain/feed/search/search.ts'
import type { FeedSearch } from '../../domain/ports.ts'
import { Refusal, StorageFault, isRefusal } from '../../domain/refusal.ts'
import type { DatabaseLocation, StorageRefusal } from '../../domain/refusal.ts'
import type { Database } from '../sqlite/database.ts'
import { searchIndex } from './search-documents.ts'
import { workerProcess } from '../worker-process.ts'
import { runQuery } from './search-queries.ts'
import type { FeedQuery, FeedResult } from './search-queries.ts'

/** Settings of the process, as JSON in its first argument. */
export interface SearchWorkerData {
  /** `file:` URL of a database that is already migrated. */
  url: string
  nativeBusyMs: number
  retryMs: number
}

/** Responses of the process, one per query. */
export type SearchWorkerMessage =
  | { outcome: 'answer'; value: FeedResult }
  | { outcome: 'refusal'; code: string; detail: string | undefined }
  | { outcome: 'fault'; message: string; stack: string | undefined }

export interface FeedSearchOptions {
  location: DatabaseLocation
  /** The feed's database, which migrates the file that the search process reads. */
  database: Database
  /** Time limit of a query in milliseconds, from its turn on. */
  timeoutMs: number
  startTimeoutMs?: number
  /** The program of the search process; default: that of the build. */
  script?: URL
}

/**
 * Time in milliseconds that the process waits for a writer, within the time of a query: in native calls, and by
 * retrying.
 */
const PROCESS_BUSY_OPTIONS = { nativeBusyMs: 200, retryMs: 1_000 }

const SERVER_CONCURRENCY = 4

/** Memory limit of JavaScript in MB; the driver's memory is limited by its cache. */
const MEMORY = '--max-old-space-size=256'

const START_TIMEOUT_MS = 10_000

/**
 * Opens the search of stored items and its index. A file is read by a separate process, because its driver blocks
 * the calling thread; a server is queried directly (docs/decisions/0019-search-index.md). A native call cannot be stopped,
 * and ending a thread inside one ends the whole program: a query over the time limit kills the process, and the next one
 * starts another. Queries of the chat go first, then those of MCP clients (docs/decisions/0047-fair-queue.md).
 */
export function openFeedSearch(options: FeedSearchOptions): FeedSearch & { close: () => Promise<void> } {
  const { location, database, timeoutMs, startTimeoutMs: startMs = START_TIMEOUT_MS } = options
  const workerData: SearchWorkerData = { url: location.url, ...PROCESS_BUSY_OPTIONS }
  const searcher = location.url.startsWith('file:')
    ? workerProcess(options.script ?? new URL('./search-worker.js', import.meta.url), {
        name: 'search process',
        args: [JSON.stringify(workerData)],
        startMs,
        execArgv: [MEMORY],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
    : null
  let closed = false
  const run = async (query: FeedQuery): Promise<FeedResult> => {
    if (!searcher) return withTimeout(timeoutMs, runQuery(database, query))
    await database.open()
    if (closed) throw closedFault()
    const response = await searcher.request(query, timeoutMs).catch((cause: Error) => {
      throw new StorageFault(cause.message, { cause })
    })
    return toResult(response as SearchWorkerMessage)
  }
  const queue = searchQueue(searcher ? 1 : SERVER_CONCURRENCY)
  return {
    ...searchIndex(database),
    by(caller) {
      const enqueueQuery = (query: FeedQuery): Promise<FeedResult> => queue.run(caller, () => run(query))
      return {
        search: async (query) => (await enqueueQuery({ kind: 'search', query })) as SearchPage,
        similar: async (key, limit) => (await enqueueQuery({ kind: 'similar', key, limit })) as SimilarItem[],
        itemTrend: async (key) => (await enqueueQuery({ kind: 'item-trend', key })) as ItemTrend,
        termTrend: async (query) => (await enqueueQuery({ kind: 'term-trend', query })) as TermTrend,
      }
    },
    async close() {
      closed = true
      queue.close()
      await searcher?.end()
    },
  }
}

/** Rejects after `ms` milliseconds. A query on a server cannot be stopped; its late result is ignored. */
async function withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StorageFault(`no complete response within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

function toResult(message: SearchWorkerMessage): FeedResult {
  if (message.outcome === 'answer') return message.value
  if (message.outcome === 'refusal') throw new Refusal(message.code, message.detail)
  throw new StorageFault(`the search failed: ${message.message}`, { cause: message.stack })
}

/** The queries of all callers. The requests that cause them have a bound, so that this queue needs none. */
export interface SearchQueue {
  /**
   * Runs a query when it is its group's turn.
   *
   * @throws the reason of the caller's signal if it is aborted before the turn; the query's own error
   */
  run<T>(caller: SearchCaller, query: () => Promise<T>): Promise<T>
  /** Rejects every waiting query and every later one. */
  close(): void
}

interface Waiter {
  start: () => void
  fail: (error: unknown) => void
}

/** @param concurrency number of queries that run at the same time */
export function searchQueue(concurrency: number): SearchQueue {
  /** Waiting queries by group, in the order in which groups are served; those of one group in the order of their arrival. */
  const waiting = new Map(SEARCH_GROUPS.map((group) => [group, new Set<Waiter>()]))
  let running = 0
  let closed = false

  const waitForTurn = ({ group, signal }: SearchCaller): Promise<void> =>
    new Promise((start, fail) => {
      const waiter = { start, fail }
      const waiters = waiting.get(group)
      waiters?.add(waiter)
      signal?.addEventListener('abort', () => waiters?.delete(waiter) && fail(signal.reason), { once: true })
    })

  const takeFirst = (): Waiter | undefined => {
    for (const waiters of waiting.values()) {
      for (const waiter of waiters) {
        waiters.delete(waiter)
        return waiter
      }
    }
    return undefined
  }

  const failAllWaiting = (error: unknown): void => {
    for (let waiter = takeFirst(); waiter; waiter = takeFirst()) waiter.fail(error)
  }

  return {
    async run(caller, query) {
      if (closed) throw closedFault()
      caller.signal?.throwIfAborted()
      if (running === concurrency) await waitForTurn(caller)
      else running += 1
      try {
        return await query()
      } catch (error) {
        // Every other query would wait as long for the same error, for example a locked database.
        if (isRefusal<StorageRefusal>(error, 'storage_unavailable')) failAllWaiting(error)
        throw error
      } finally {
        const next = takeFirst()
        if (next) next.start()
        else running -= 1
      }
    },
    close() {
      closed = true
      failAllWaiting(closedFault())
    },
  }
}

function closedFault(): StorageFault {
  return new StorageFault('the search is closed')
}
