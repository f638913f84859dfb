import { createHash } from 'node:crypto'
import {
  MATCHES,
  PAGED_ITEMS_MAX,
  QUERY_MAX_LENGTH,
  QUERY_MAX_WORDS,
} from '../../domain/feed/search/search.ts'
import type {
  FeedSearchRefusal,
  SearchHit,
  SearchPage,
  SearchQuery,
} from '../../domain/feed/search/search.ts'
import { parseSearchText } from '../../domain/feed/search/search-terms.ts'
import { weightOf } from '../../domain/feed/search/title-similarity.ts'
import type { WordCounts } from '../../domain/feed/search/title-similarity.ts'
import { indexedWords, tokenize } from '../../domain/feed/search/tokenize.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { SqlReader } from '../sqlite/rows.ts'
import { toIndexedItem } from './items.ts'
import { expressionFor, toMatchExpression } from './match-expressions.ts'
import {
  RANKED_MAX,
  findDocuments,
  rankedArgs,
  rankedQuery,
  readCounts,
  selectDocuments,
} from './ranked-documents.ts'
import type { IndexedDocument } from './ranked-documents.ts'
import { readItemCount } from './search-index.ts'

/** Searches, ranked by SQLite's FTS5 (docs/decisions/0020-search-ranking.md). */

/** Maximum number of items in the third group, those with some of the words. */
const PARTIAL_MAX = 200

/** Maximum number of items that come first because the query is their title. */
const TITLES_MAX = 100

/** Minimum share of the words' total weight in the title of such an item. */
const PARTIAL_MIN_SHARE = 0.5

/**
 * Searches items: first those with the text as their title, then those with every word, then those with the last word
 * as a prefix, then those with some words (docs/api.md).
 */
export async function search(reader: SqlReader, query: SearchQuery): Promise<SearchPage> {
  const offset = parseCursor(query)
  const pageEnd = Math.min(offset + query.limit, PAGED_ITEMS_MAX)
  const units = parseSearchText(query.query)
  const words = units.flatMap((unit) => unit.words)
  const counts = await readCounts(reader, await readItemCount(reader), words)
  const hits = new Map<number, SearchHit>()
  for (const row of await findTitle(reader, query)) {
    hits.set(row.id, { ...toIndexedItem(row), match: 'all' })
  }
  for (const match of MATCHES) {
    // One more item than the page needs shows whether there is another page.
    if (hits.size > pageEnd || units.length === 0) break
    const expression = expressionFor(match, units, counts, hits.size > 0)
    if (expression === null) continue
    const [limit, depth] =
      match === 'some' ? [PARTIAL_MAX, PARTIAL_MAX + hits.size] : [pageEnd + 1, RANKED_MAX]
    const excludedIds = [...hits.keys()]
    const found = await findDocuments(reader, query, { expression, depth, excludedIds, limit })
    const kept = match === 'some' ? selectHeaviest(found, words, counts) : found
    for (const row of kept) hits.set(row.id, { ...toIndexedItem(row), match })
  }
  const isLast = hits.size <= pageEnd || pageEnd === PAGED_ITEMS_MAX
  const cursor = isLast ? null : `${digestOf(query)}.${pageEnd}`
  return { items: [...hits.values()].slice(offset, pageEnd), cursor }
}

/** Selects items whose title is the text of the query, those with the same signs first. */
async function findTitle(reader: SqlReader, query: SearchQuery): Promise<IndexedDocument[]> {
  const text = query.query.slice(0, QUERY_MAX_LENGTH)
  const words = tokenize(text).slice(0, QUERY_MAX_WORDS)
  if (words.length === 0) return []
  const expression = `^ ${toMatchExpression([{ words, prefix: false, quoted: true }], 'AND')}`
  const found = await selectDocuments(
    reader,
    `(${rankedQuery('search_titles', TITLES_MAX)}) f JOIN search_documents d ON d.id = f.id
    ORDER BY f.score DESC, coalesce(d.points, 0) DESC, d.id DESC`,
    rankedArgs(expression, query),
  )
  const name = tokenize(text).join(' ')
  const titled = found.filter(({ title }) => tokenize(title).join(' ') === name)
  const isTyped = ({ title }: IndexedDocument): boolean => title.trim() === text.trim()
  return titled.sort((a, b) => Number(isTyped(b)) - Number(isTyped(a)))
}

/** Returns the position in the ranking at which a page begins. */
function parseCursor(query: SearchQuery): number {
  if (query.cursor === null) return 0
  const [, digest, offset] = /^([\w-]{16})\.(\d{1,4})$/.exec(query.cursor) ?? []
  if (digest !== digestOf(query) || Number(offset) >= PAGED_ITEMS_MAX) {
    throw new Refusal<FeedSearchRefusal>('invalid_cursor', 'the cursor belongs to another query')
  }
  return Number(offset)
}

function digestOf({ query, sources, minPoints, minComments, from, to }: SearchQuery): string {
  const text = JSON.stringify([query, sources, minPoints, minComments, from, to])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}

/**
 * Selects items whose titles contain at least half of the words' weight, the heaviest first. A word that occurs in
 * no title counts as mistyped and is ignored.
 */
function selectHeaviest(
  rows: readonly IndexedDocument[],
  words: readonly string[],
  counts: WordCounts,
): IndexedDocument[] {
  const known = words.filter((word) => counts.of.has(word))
  const minWeight = weightOf(known, counts) * PARTIAL_MIN_SHARE
  const weighed = rows.map((row) => {
    const titleWords = new Set(indexedWords(row.title))
    const shared = known.filter((word) => titleWords.has(word))
    return { row, weight: weightOf(shared, counts) }
  })
  return weighed
    .filter(({ weight }) => weight > 0 && weight >= minWeight)
    .sort((a, b) => b.weight - a.weight)
    .map(({ row }) => row)
}
