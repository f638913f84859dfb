import type { PlaceBounds } from '../../domain/fair-queue.ts'
import type { ItemTrend, SearchPage, SimilarItem, TermTrend } from '../../domain/feed/search.ts'
import type { SharedFeedSearch } from '../../domain/ports.ts'
import type { DatabaseLocation } from '../../domain/storage.ts'
import type { Database } from '../libsql/database.ts'
import { withTimeLimit } from '../time-limit.ts'
import { answer } from './search-questions.ts'
import type { Answer, Question } from './search-questions.ts'
import { searchProcess } from './search-process.ts'
import { searchTurns } from './search-turns.ts'

export interface FeedSearchOptions {
  location: DatabaseLocation
  /** The feed's own database, which migrates what the process reads. */
  database: Database
  /** Bounds of open queries; those of the chat and all others are counted separately. */
  bounds: PlaceBounds
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
 * Queries about stored items. A file is read by a separate process, since its driver blocks the thread that calls it; a
 * server is asked from here (docs/decisions/0019-the-search-index.md). Callers are served in turn
 * (docs/decisions/0047-turns-of-the-search.md).
 */
export function openFeedSearch(
  options: FeedSearchOptions,
): SharedFeedSearch & { close: () => Promise<void> } {
  const { location, database, timeoutMs } = options
  const script = options.script ?? new URL('./search-worker.js', import.meta.url)
  const reading = location.url.startsWith('file:')
    ? searchProcess(script, { url: location.url, ...PROCESS_BUSY }, timeoutMs)
    : null
  const run = async (question: Question): Promise<Answer> => {
    if (!reading)
      return await withoutWaiting(
        timeoutMs,
        database.use(({ client }) => answer(client, question)),
      )
    await database.use(() => Promise.resolve())
    return await reading.ask(question)
  }
  const turns = searchTurns(options.bounds, reading ? 1 : SERVER_LANES)
  return {
    by(caller) {
      const ask = (question: Question): Promise<Answer> => turns.take(caller, () => run(question))
      return {
        search: async (question) => (await ask({ ask: 'search', question })) as SearchPage,
        similar: async (key, limit) => (await ask({ ask: 'similar', key, limit })) as SimilarItem[],
        itemTrend: async (key) => (await ask({ ask: 'item-trend', key })) as ItemTrend,
        termTrend: async (question) => (await ask({ ask: 'term-trend', question })) as TermTrend,
      }
    },
    async close() {
      turns.close()
      await reading?.close()
    },
  }
}

/** What is read within `ms`; a server cannot be stopped, but its late rows are not waited for. */
function withoutWaiting<T>(ms: number, reading: Promise<T>): Promise<T> {
  return withTimeLimit(
    ms,
    new AbortController().signal,
    (limited) =>
      new Promise((resolve, reject) => {
        limited.addEventListener('abort', () => reject(limited.reason as Error), { once: true })
        reading.then(resolve, reject)
      }),
  )
}
