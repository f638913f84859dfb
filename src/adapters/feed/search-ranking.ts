import { createHash } from 'node:crypto'
import { PAGED_ITEMS_MAX, QUERY_MAX_LENGTH, QUERY_MAX_WORDS } from '../../domain/feed/search/search.ts'
import type {
  FeedSearchRefusal,
  Match,
  SearchHit,
  SearchPage,
  SearchQuery,
} from '../../domain/feed/search/search.ts'
import { parseSearchText } from '../../domain/feed/search/search-terms.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { weightOf } from '../../domain/feed/search/title-similarity.ts'
import type { WordCounts } from '../../domain/feed/search/title-similarity.ts'
import { indexedWords, tokenize } from '../../domain/feed/search/tokenize.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { SqlReader } from '../sqlite/rows.ts'
import { toIndexedItem } from './items.ts'
import {
  expressionOfAll,
  expressionOfSome,
  toMatchExpression,
  BM25,
  RANKED_MAX,
  countDocuments,
  findDocuments,
  rankedArgs,
  rankedQuery,
  readCounts,
  selectDocuments,
} from './ranked-documents.ts'
import type { IndexedDocument, RankedDocument } from './ranked-documents.ts'
import { readItemCount } from './search-documents.ts'

/** Searches, ranked by SQLite's FTS5 (docs/decisions/0020-search-ranking.md). */

/** Maximum number of items in the third group, those with some of the words. */
const PARTIAL_MAX = 200

/** Minimum share of the words' total weight in the title of such an item. */
const PARTIAL_MIN_SHARE = 0.5

/** Maximum number of items that come first because the query is their title. */
const TITLES_MAX = 100

/** Weight of the points for some words: more of them name their item, so it falls with the square of their number. */
const POINTS_WEIGHT = 1.5

/** Weight of the points in a query. The titles with one word differ by length alone, which says nothing about the story. */
function pointsWeightOf(words: readonly string[]): number {
  return words.length === 1 ? Infinity : POINTS_WEIGHT / words.length ** 2
}

/** Searches items by relevance, age or points (docs/api.md). */
export async function search(reader: SqlReader, query: SearchQuery): Promise<SearchPage> {
  const offset = parseCursor(query)
  const pageEnd = Math.min(offset + query.limit, PAGED_ITEMS_MAX)
  const units = parseSearchText(query.query)
  const itemCount = await readItemCount(reader)
  const request = { reader, query, units, pageEnd }
  const hits =
    query.sort === 'relevance'
      ? await rankByRelevance(request, await readCounts(reader, itemCount, wordsOf(units)))
      : await rankBy(request, query.sort)
  const isLast = hits.length <= pageEnd || pageEnd === PAGED_ITEMS_MAX
  const expression = expressionOfAll('prefix', units) ?? expressionOfAll('all', units)
  return {
    items: hits.slice(offset, pageEnd),
    cursor: isLast ? null : `${digestOf(query)}.${pageEnd}`,
    total: expression === null ? 0 : await countDocuments(reader, query, expression),
  }
}

interface SearchRequest {
  reader: SqlReader
  query: SearchQuery
  units: readonly QueryTerm[]
  /** Position after the page. One more item is ranked, if there is one: it shows whether there is another page. */
  pageEnd: number
}

function wordsOf(units: readonly QueryTerm[]): string[] {
  return units.flatMap((unit) => unit.words)
}

/**
 * Ranks items: first those with the text as their title, then those with every word, then those with the last word as a
 * prefix, then those with some words.
 */
async function rankByRelevance(
  { reader, query, units, pageEnd }: SearchRequest,
  counts: WordCounts,
): Promise<SearchHit[]> {
  const order = { pointsWeight: pointsWeightOf(wordsOf(units)) }
  const hits = new Map<number, SearchHit>()
  for (const row of await findTitle(reader, query)) {
    hits.set(row.id, { ...toIndexedItem(row), match: 'all' })
  }
  for (const match of ['all', 'prefix'] as const) {
    const expression = expressionOfAll(match, units)
    if (hits.size > pageEnd || expression === null) continue
    const ranking = { order, limit: pageEnd + 1, depth: RANKED_MAX }
    const excludedIds = [...hits.keys()]
    const found = await findDocuments(reader, query, { ...ranking, expression, excludedIds })
    for (const row of found) hits.set(row.id, { ...toIndexedItem(row), match })
  }
  const expression = expressionOfSome(units, counts, hits.size > 0)
  if (hits.size > pageEnd || expression === null) return [...hits.values()]
  const ranking = { order, limit: PARTIAL_MAX, depth: PARTIAL_MAX + hits.size }
  const excludedIds = [...hits.keys()]
  const found = await findDocuments(reader, query, { ...ranking, expression, excludedIds })
  const some = selectHeaviest(found, wordsOf(units), counts)
  return [...hits.values(), ...some.map((row) => ({ ...toIndexedItem(row), match: 'some' as const }))]
}

/** Orders the items with every word, the last one also as a prefix, by age or points. */
async function rankBy(
  { reader, query, units, pageEnd }: SearchRequest,
  order: 'newest' | 'points',
): Promise<SearchHit[]> {
  const ranking = { order, limit: pageEnd + 1, depth: pageEnd + 1, excludedIds: [] }
  const hits = new Map<number, { row: RankedDocument; match: Match }>()
  for (const match of ['prefix', 'all'] as const) {
    const expression = expressionOfAll(match, units)
    if (expression === null) continue
    // An item with every word is also in the larger group, and as far in front in its own.
    const found = await findDocuments(reader, query, { ...ranking, expression })
    for (const row of found) hits.set(row.id, { row, match })
  }
  return [...hits.values()]
    .sort((a, b) => (b.row.score ?? -Infinity) - (a.row.score ?? -Infinity) || b.row.id - a.row.id)
    .map(({ row, match }) => ({ ...toIndexedItem(row), match }))
}

/** Selects items whose title is the text of the query, those with the same signs first. */
async function findTitle(reader: SqlReader, query: SearchQuery): Promise<IndexedDocument[]> {
  const text = query.query.slice(0, QUERY_MAX_LENGTH)
  const words = tokenize(text).slice(0, QUERY_MAX_WORDS)
  if (words.length === 0) return []
  const expression = `^ ${toMatchExpression([{ words, prefix: false, quoted: true }], 'AND')}`
  const found = await selectDocuments(
    reader,
    `(${rankedQuery('search_titles', BM25, TITLES_MAX)}) f JOIN search_documents d ON d.id = f.id
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

function digestOf({ query, sources, minPoints, minComments, from, to, sort }: SearchQuery): string {
  const text = JSON.stringify([query, sources, minPoints, minComments, from, to, sort])
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
