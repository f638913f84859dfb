import { QUERY_MAX_WORDS } from '../../domain/feed/search.ts'
import type { SimilarItem } from '../../domain/feed/search.ts'
import { likeness, reasonsOf } from '../../domain/feed/similarity.ts'
import type { WordCounts } from '../../domain/feed/similarity.ts'
import { wordsOf } from '../../domain/feed/words.ts'
import type { Reader } from '../libsql/store-client.ts'
import { bestOf, EVERYTHING, matching } from './search-match.ts'
import { readCounts, readItemOfKey, readItems, readItemsOfPage } from './search-rows.ts'
import type { Stored } from './search-rows.ts'
import { readAnsweringState } from './search-state.ts'
import type { IndexState } from './search-state.ts'

/** Items whose titles are compared. */
const CANDIDATES = 200

/** Most items the words that find candidates may occur in, all together. */
const CANDIDATES_MAX_ITEMS = 8_000

/** Words of a title that are looked at. */
const TITLE_MAX_WORDS = 64

/** Items like another (docs/search.md): those of its page, then those whose titles share rare words with its own. */
export async function answerSimilar(reader: Reader, key: string, limit: number): Promise<SimilarItem[]> {
  const state = await readAnsweringState(reader)
  const asked = await readItemOfKey(reader, state.active, key)
  const words = [...new Set(wordsOf(asked.item.title))].slice(0, TITLE_MAX_WORDS)
  const counts = await readCounts(reader, state, words)
  const others = new Map<number, Stored>()
  if (asked.page !== null) {
    for (const stored of await readItemsOfPage(reader, state.active, asked.page, CANDIDATES)) {
      others.set(stored.id, stored)
    }
  }
  for (const [id, stored] of await candidates(reader, state, words, counts)) others.set(id, stored)
  others.delete(asked.id)
  return [...others.values()]
    .flatMap(({ id, page, item }) => {
      const alike = likeness(words, wordsOf(item.title), counts)
      const reasons = reasonsOf(alike, page !== null && page === asked.page, counts)
      if (reasons.length === 0) return []
      const score = Math.round(alike.score * 1_000) / 1_000
      return [{ id, similar: { ...item, reasons, score, sharedWords: alike.shared } }]
    })
    .sort(
      (a, b) =>
        Number(isSameDiscussion(b.similar)) - Number(isSameDiscussion(a.similar)) ||
        b.similar.score - a.similar.score ||
        (b.similar.points ?? 0) - (a.similar.points ?? 0) ||
        b.id - a.id,
    )
    .slice(0, limit)
    .map(({ similar }) => similar)
}

function isSameDiscussion({ reasons }: SimilarItem): boolean {
  return reasons.includes('same-discussion')
}

/** The best by BM25 among the items that hold one of the title's rarest words. */
async function candidates(
  reader: Reader,
  state: IndexState,
  words: readonly string[],
  { of }: WordCounts,
): Promise<Map<number, Stored>> {
  const rarestFirst = words.toSorted((a, b) => (of.get(a) ?? 0) - (of.get(b) ?? 0)).slice(0, QUERY_MAX_WORDS)
  let total = 0
  const rarest = rarestFirst.filter((word, index) => {
    total += of.get(word) ?? 0
    return index === 0 || total <= CANDIDATES_MAX_ITEMS
  })
  if (rarest.length === 0) return new Map()
  const units = rarest.map((word) => ({ words: [word], prefix: false, quoted: false }))
  const found = await bestOf(reader, state.active, 'titles', matching(units, 'OR'), EVERYTHING, CANDIDATES)
  return readItems(
    reader,
    state.active,
    found.map(({ id }) => id),
  )
}
