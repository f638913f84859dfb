import type {
  SearchPage,
  SearchQuestion,
  SimilarItem,
  ItemTrend,
  TermTrend,
  TermTrendQuestion,
} from '../../domain/feed/search.ts'
import type { StoreClient } from '../libsql/store-client.ts'
import { answerSearch } from './search-answer.ts'
import { answerSimilar } from './search-similar.ts'
import { INDEX_STEP } from './search-state.ts'
import { answerItemTrend, answerTermTrend } from './search-trends.ts'

/** A question as it travels to the process that answers it. */
export type Question =
  | { ask: 'search'; question: SearchQuestion }
  | { ask: 'similar'; key: string; limit: number }
  | { ask: 'item-trend'; key: string }
  | { ask: 'term-trend'; question: TermTrendQuestion }

export type Answer = SearchPage | SimilarItem[] | ItemTrend | TermTrend

/** Grows with every import that changed something. */
const SIGNALS_REVISION = 'SELECT number FROM revision'

/** Answers a question from one state of the index or, where it is about signals, of the signals. */
export function answer(client: StoreClient, question: Question): Promise<Answer> {
  switch (question.ask) {
    case 'search':
      return client.snapshot(INDEX_STEP, (reader) => answerSearch(reader, question.question))
    case 'similar':
      return client.snapshot(INDEX_STEP, (reader) => answerSimilar(reader, question.key, question.limit))
    case 'item-trend':
      return client.snapshot(SIGNALS_REVISION, (reader) => answerItemTrend(reader, question.key))
    case 'term-trend':
      return client.snapshot(INDEX_STEP, (reader) => answerTermTrend(reader, question.question))
  }
}
