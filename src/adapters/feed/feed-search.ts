import { fairQueue } from '../../domain/fair-queue.ts'
import type { FairQueue, SlotBounds } from '../../domain/fair-queue.ts'
import { PAGES_CALLER, SEARCH_RETRY_AFTER_SECONDS } from '../../domain/feed/search.ts'
import type {
  FeedSearchRefusal,
  ItemTrend,
  SearchCaller,
  SearchPage,
  SimilarItem,
  TermTrend,
} from '../../domain/feed/search.ts'
import type { FeedSearch } from '../../domain/ports.ts'
import { Refusal, StorageFault } from '../../domain/refusal.ts'
import type { DatabaseLocation, StorageRefusal } from '../../domain/refusal.ts'
import type { Database } from '../sqlite/database.ts'
import { searchIndex } from './search-index.ts'
import { searchProcess } from './search-process.ts'
import { runQuery } from './search-queries.ts'
import type { FeedQuery, FeedResult } from './search-queries.ts'

export interface FeedSearchOptions {
  location: DatabaseLocation
  /** The feed's own database, which migrates what the process reads. */
  database: Database
  /** Bounds of open queries; those of the chat, of pages and of all others are counted separately. */
  bounds: SlotBounds
  /** Longest time of a query, from its turn on. */
  timeoutMs: number
  /** The program of the process; that of the build when it is absent. */
  script?: URL
}

/** How long the process waits for a writer, within the time of a query: in native calls, and by trying again. */
const PROCESS_BUSY = { nativeBusyMs: 200, retryMs: 1_000 }

/** Queries that a libSQL server runs for one search at a time. */
const SERVER_LANES = 4

/**
 * Queries about stored items, and their index. A file is read by a separate process, since its driver blocks the thread
 * that calls it; a server is queried from here (docs/decisions/0019-search-index.md). Callers are served in turn
 * (docs/decisions/0047-search-fairness.md).
 */
export function openFeedSearch(options: FeedSearchOptions): FeedSearch & { close: () => Promise<void> } {
  const { location, database, timeoutMs } = options
  const script = options.script ?? new URL('./search-worker.js', import.meta.url)
  const reading = location.url.startsWith('file:')
    ? searchProcess(script, { url: location.url, ...PROCESS_BUSY }, timeoutMs)
    : null
  const run = async (query: FeedQuery): Promise<FeedResult> => {
    if (!reading)
      return withinTime(
        timeoutMs,
        database.use(({ client }) => runQuery(client, query)),
      )
    await database.use(() => Promise.resolve())
    return reading.ask(query)
  }
  const turns = searchTurns(options.bounds, reading ? 1 : SERVER_LANES)
  return {
    ...searchIndex(database),
    by(caller) {
      const ask = (query: FeedQuery): Promise<FeedResult> => turns.take(caller, () => run(query))
      return {
        search: async (query) => (await ask({ ask: 'search', query })) as SearchPage,
        similar: async (key, limit) => (await ask({ ask: 'similar', key, limit })) as SimilarItem[],
        itemTrend: async (key) => (await ask({ ask: 'item-trend', key })) as ItemTrend,
        termTrend: async (query) => (await ask({ ask: 'term-trend', query })) as TermTrend,
      }
    },
    async close() {
      turns.close()
      await reading?.close()
    },
  }
}

/** Rows of a server, which cannot be stopped; late ones are not waited for. */
async function withinTime<T>(ms: number, reading: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StorageFault(`no whole answer within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([reading, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Runs the queries of many callers, few at a time (docs/decisions/0047-search-fairness.md). */
export interface SearchTurns {
  /**
   * Runs a query when it is its caller's turn.
   *
   * @throws Refusal `search_limit` or `search_busy` when there is no place for it; the reason of the caller's signal when
   *   that is aborted before its turn; what the query throws
   */
  take<T>(caller: SearchCaller, query: () => Promise<T>): Promise<T>
  /** Fails every query that waits, and every later one. */
  close(): void
}

interface Job {
  run: () => Promise<void>
  fail: (error: unknown) => void
}

/** @param lanes how many queries run at a time */
export function searchTurns(bounds: SlotBounds, lanes: number): SearchTurns {
  // None takes a place from another. The chat goes first; pages and clients take turns.
  const chat = fairQueue<Job>(bounds)
  const pages = fairQueue<Job>(bounds)
  const clients = fairQueue<Job>(bounds)
  let shared = [pages, clients]
  let running = 0
  let closed = false

  const next = (): Job | undefined => {
    const first = chat.next()
    if (first) return first
    shared = shared.toReversed()
    return shared[0]?.next() ?? shared[1]?.next()
  }

  const serve = (): void => {
    while (running < lanes) {
      const job = next()
      if (!job) return
      running += 1
      void job.run().finally(() => {
        running -= 1
        serve()
      })
    }
  }

  const failAllWaiting = (error: unknown): void => {
    for (let job = next(); job; job = next()) job.fail(error)
  }

  return {
    take: ({ address, isChat, signal }, query) =>
      new Promise((resolve, reject) => {
        if (closed) throw closedFault()
        signal?.throwIfAborted()
        const queue = isChat ? chat : address === PAGES_CALLER.address ? pages : clients
        const abandon = (): void => {
          if (queue.withdraw(address, job)) job.fail(signal?.reason)
        }
        const leave = (): void => {
          signal?.removeEventListener('abort', abandon)
          queue.leave(address)
        }
        const job: Job = {
          async run() {
            try {
              resolve(await query())
            } catch (error) {
              reject(error)
              // Every other query would find the same: a locked database, say, and wait for it as long.
              if (isUnavailable(error)) failAllWaiting(error)
            } finally {
              leave()
            }
          },
          fail(error) {
            leave()
            reject(error)
          },
        }
        enter(queue, address, job)
        signal?.addEventListener('abort', abandon, { once: true })
        serve()
      }),
    close() {
      closed = true
      failAllWaiting(closedFault())
    },
  }
}

function enter(queue: FairQueue<Job>, address: string, job: Job): void {
  const admission = queue.add(address, job)
  if (admission === 'admitted') return
  const [code, detail]: [FeedSearchRefusal, string] =
    admission === 'address_full'
      ? ['search_limit', 'this address or its network has too many open queries']
      : ['search_busy', 'as many queries are open as the search takes']
  throw new Refusal(code, detail, { members: { retryAfterSeconds: SEARCH_RETRY_AFTER_SECONDS } })
}

function isUnavailable(error: unknown): boolean {
  const code: StorageRefusal = 'storage_unavailable'
  return error instanceof Refusal && error.code === code
}

function closedFault(): StorageFault {
  return new StorageFault('the search is closed')
}
