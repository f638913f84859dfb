import { createHash } from 'node:crypto'
import {
  PAGED_ITEMS_MAX,
  QUERY_MAX_LENGTH,
  QUERY_MAX_WORDS,
  TREND_MAX_DAYS,
} from '../../domain/feed/search/search.ts'
import type {
  FeedSearchRefusal,
  ItemTrend,
  Match,
  SearchHit,
  SearchPage,
  SearchQuery,
  SimilarItem,
  TermTrend,
  TermTrendQuery,
} from '../../domain/feed/search/search.ts'
import { parseSearchText, withoutJoined } from '../../domain/feed/search/search-terms.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { similarityReasons, titleSimilarity, weightOf } from '../../domain/feed/search/title-similarity.ts'
import type { WordCounts } from '../../domain/feed/search/title-similarity.ts'
import { indexedWords, tokenize } from '../../domain/feed/search/tokenize.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import { Refusal } from '../../domain/refusal.ts'
import { selectObjects } from '../sqlite/rows.ts'
import type { SqlReader, StoreClient } from '../sqlite/rows.ts'
import { itemNotFound, itemTrend, toIndexedItem } from './items.ts'
import {
  BM25,
  NO_FILTER,
  RANKED_MAX,
  countDocuments,
  expressionOfAll,
  expressionOfSome,
  findDocuments,
  idRange,
  rankedArgs,
  rankedQuery,
  rarestUnits,
  readCounts,
  selectDocuments,
  toMatchExpression,
  toWordUnits,
} from './ranked-documents.ts'
import type { IndexedDocument, RankedDocument } from './ranked-documents.ts'
import { DAY_NUMBER_OF_ID, dayOfNumber, readItemCount } from './search-documents.ts'
import { REVISION } from './window.ts'

/** A query as it is sent to the search process. */
export type FeedQuery =
  | { kind: 'search'; query: SearchQuery }
  | { kind: 'similar'; key: string; limit: number }
  | { kind: 'item-trend'; key: string }
  | { kind: 'term-trend'; query: TermTrendQuery }

export type FeedResult = SearchPage | SimilarItem[] | ItemTrend | TermTrend

/** Reads a number that changes with every write to the index. */
const INDEX_STEP = 'SELECT step FROM search_state'

/** Runs a query on one consistent state of the index, or of the signals for an item trend. */
export function runQuery(client: StoreClient, query: FeedQuery): Promise<FeedResult> {
  switch (query.kind) {
    case 'search':
      return client.snapshot(INDEX_STEP, (reader) => search(reader, query.query))
    case 'similar':
      return client.snapshot(INDEX_STEP, (reader) => similar(reader, query.key, query.limit))
    case 'item-trend':
      return client.snapshot(REVISION, (reader) => itemTrend(reader, query.key))
    case 'term-trend':
      return client.snapshot(INDEX_STEP, (reader) => termTrend(reader, query.query))
  }
}

async function termTrend(reader: SqlReader, { term, from, to }: TermTrendQuery): Promise<TermTrend> {
  const units = parseSearchText(term)
  if (units.length === 0) return { mentions: 0, days: [] }
  await readItemCount(reader)
  const inRange = 'MATCH ?1 AND rowid BETWEEN ?2 AND ?3'
  const columns = { day: DAY_NUMBER_OF_ID, mentions: 'count(*)' }
  const mentioning = `
    (
      SELECT rowid AS id FROM search_titles WHERE search_titles ${inRange}
      UNION ALL
      SELECT rowid AS id FROM search_texts WHERE search_texts ${inRange}
        AND rowid NOT IN (SELECT rowid FROM search_titles WHERE search_titles MATCH ?1)
    ) GROUP BY 1 ORDER BY 1 DESC LIMIT ${TREND_MAX_DAYS}`
  const args = [toMatchExpression(units, 'AND'), ...idRange({ from, to })]
  const label = 'the search index'
  const rows = await selectObjects<Mentions>(reader, columns, mentioning, args, label)
  const days = rows.toReversed().map(({ day, mentions }) => ({ day: dayOfNumber(day), mentions }))
  return { mentions: days.reduce((sum, { mentions }) => sum + mentions, 0), days }
}

interface Mentions {
  /** Number of the day. */
  day: number
  mentions: number
}

/** Items similar to another (docs/decisions/0020-search-ranking.md). */

/** Maximum number of items compared, for the same page and for shared words each. */
const CANDIDATES = 200

/** Number of words of a title that are compared. */
const TITLE_MAX_WORDS = 64

/** Finds items similar to another (docs/api.md): those of the same page, then those whose titles share rare words. */
async function similar(reader: SqlReader, key: string, limit: number): Promise<SimilarItem[]> {
  const items = await readItemCount(reader)
  const target = await readDocument(reader, key)
  const words = [...new Set(tokenize(target.title))].slice(0, TITLE_MAX_WORDS)
  const counts = await readCounts(reader, items, words)
  const candidates = [
    ...(await readSamePage(reader, target)),
    ...(await readSimilarTitles(reader, rarestUnits(toWordUnits(words), counts))),
  ]
  const others = new Map(candidates.map((row) => [row.id, row]))
  others.delete(target.id)
  const compared = [...others.values()].flatMap((row) => {
    const similarity = titleSimilarity(words, tokenize(row.title), counts)
    const isSamePage = row.page !== null && row.page === target.page
    const reasons = similarityReasons(similarity, isSamePage, counts)
    const score = Math.round(similarity.score * 1_000) / 1_000
    return reasons.length > 0 ? [{ row, isSamePage, reasons, score, sharedWords: similarity.shared }] : []
  })
  return compared
    .sort(
      (a, b) =>
        Number(b.isSamePage) - Number(a.isSamePage) ||
        b.score - a.score ||
        (b.row.points ?? 0) - (a.row.points ?? 0) ||
        b.row.id - a.row.id,
    )
    .slice(0, limit)
    .map(({ row, reasons, score, sharedWords }) => ({ ...toIndexedItem(row), reasons, score, sharedWords }))
}

/** @throws Refusal `item_not_found` */
async function readDocument(reader: SqlReader, key: string): Promise<IndexedDocument> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const where = `search_documents d WHERE d.source = ? AND d.source_id = ?`
    const [found] = await selectDocuments(reader, where, [source, sourceId])
    if (found) return found
  }
  throw itemNotFound(key)
}

async function readSamePage(reader: SqlReader, { page }: IndexedDocument): Promise<IndexedDocument[]> {
  if (page === null) return []
  const where = `search_documents d WHERE d.page = ? ORDER BY d.points DESC, d.id DESC LIMIT ${CANDIDATES}`
  return selectDocuments(reader, where, [page])
}

/** Selects the best items by BM25 whose titles contain any of the words. */
async function readSimilarTitles(reader: SqlReader, words: readonly QueryTerm[]): Promise<IndexedDocument[]> {
  if (words.length === 0) return []
  const found = `(${rankedQuery('search_titles', BM25, CANDIDATES)})`
  const args = rankedArgs(toMatchExpression(words, 'OR'), NO_FILTER)
  return selectDocuments(reader, `${found} f JOIN search_documents d ON d.id = f.id`, args)
}

/** Searches, ranked by SQLite's FTS5 (docs/decisions/0020-search-ranking.md). */

/** Maximum number of items in the last group, those with some of the words. */
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

async function search(reader: SqlReader, query: SearchQuery): Promise<SearchPage> {
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
 * Ranks items: first those with the text as their title, then those with every word, then those that have two of the words
 * as one, then those with the last word as a prefix, then those with some words.
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
  // A rare spelling as one word would outrank the usual one.
  const groups = [
    ['all', withoutJoined(units) ?? []],
    ['all', units],
    ['prefix', units],
  ] as const
  for (const [match, terms] of groups) {
    const expression = expressionOfAll(match, terms)
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
