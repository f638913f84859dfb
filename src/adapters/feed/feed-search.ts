import type {
  FeedSearchRefusal,
  ItemTrend,
  SearchPage,
  SimilarItem,
  TermTrend,
} from '../../domain/feed/search.ts'
import type { FeedSearch } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { DatabaseLocation } from '../../domain/storage.ts'
import type { Database } from '../libsql/database.ts'
import { answer } from './search-questions.ts'
import type { Answer, Question } from './search-questions.ts'
import { searchProcess } from './search-process.ts'

export interface FeedSearchOptions {
  location: DatabaseLocation
  /** The feed's own database, which migrates what the process reads. */
  database: Database
  /** Most questions that are open at once; one more is refused. */
  questionsMax: number
  /** Longest a question may wait, and longest it may take then. */
  timeoutMs: number
  /** The program of the process; that of the build when it is absent. */
  script?: URL
}

/** How long the process waits for a writer: by native calls, which stop nobody else, and by trying again. */
const PROCESS_BUSY = { nativeBusyMs: 200, retryMs: 3_000 }

/**
 * Questions about stored items. A file is read by a process of its own, since its driver keeps whoever calls it from all
 * other work; a server is asked from here (docs/decisions/0019-the-search-index.md).
 */
export function openFeedSearch(options: FeedSearchOptions): FeedSearch & { close: () => Promise<void> } {
  const { location, database, questionsMax, timeoutMs } = options
  const script = options.script ?? new URL('./search-worker.js', import.meta.url)
  const reading = location.url.startsWith('file:')
    ? searchProcess(script, { url: location.url, ...PROCESS_BUSY }, timeoutMs)
    : null
  let open = 0

  const ask = async (question: Question): Promise<Answer> => {
    if (open >= questionsMax) {
      throw new Refusal<FeedSearchRefusal>('search_busy', `${questionsMax} questions are open already`)
    }
    open += 1
    try {
      if (!reading) return await database.use(({ client }) => answer(client, question))
      await database.use(() => Promise.resolve())
      return await reading.ask(question)
    } finally {
      open -= 1
    }
  }

  return {
    search: async (question) => (await ask({ ask: 'search', question })) as SearchPage,
    similar: async (key, limit) => (await ask({ ask: 'similar', key, limit })) as SimilarItem[],
    itemTrend: async (key) => (await ask({ ask: 'item-trend', key })) as ItemTrend,
    termTrend: async (question) => (await ask({ ask: 'term-trend', question })) as TermTrend,
    close: async () => reading?.close(),
  }
}
