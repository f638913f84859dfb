import { createHash } from 'node:crypto'
import {
  MATCHES,
  PAGED_ITEMS_MAX,
  QUERY_MAX_LENGTH,
  QUERY_MAX_WORDS,
} from '../../domain/feed/search/search.ts'
import type {
  FeedSearchRefusal,
  Match,
  SearchHit,
  SearchPage,
  SearchQuery,
  SimilarItem,
} from '../../domain/feed/search/search.ts'
import { formsOf, parseSearchText, withLastAsPrefix } from '../../domain/feed/search/search-terms.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import { similarityReasons, titleSimilarity, weightOf } from '../../domain/feed/search/title-similarity.ts'
import type { WordCounts } from '../../domain/feed/search/title-similarity.ts'
import { indexedWords, isPaired, tokenize } from '../../domain/feed/search/tokenize.ts'
import { Refusal } from '../../domain/refusal.ts'
import { asJsonRows, columnsOf, selectJsonRows, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader } from '../sqlite/rows.ts'
import { toIndexedItem } from './items.ts'
import type { ItemRow } from './items.ts'
import { firstIdOf, lastIdOf } from './search-documents.ts'
import { readItemCount } from './search-index.ts'

/** Searches and similar items, ranked by SQLite's FTS5 (docs/decisions/0020-search-ranking.md). */

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

/** @param hasEarlierHits true if an earlier group has items; otherwise quoted phrases are split too */
function expressionFor(
  match: Match,
  units: readonly QueryTerm[],
  counts: WordCounts,
  hasEarlierHits: boolean,
): string | null {
  if (match === 'all') return toMatchExpression(units, 'AND')
  if (match === 'prefix') {
    const prefixed = withLastAsPrefix(units)
    return prefixed && toMatchExpression(prefixed, 'AND')
  }
  const parts = distinctUnits(units.flatMap((unit) => (unit.quoted && hasEarlierHits ? [unit] : split(unit))))
  const quoted = parts.filter((unit) => unit.quoted)
  const loose = rarestUnits(
    parts.filter((unit) => !unit.quoted),
    counts,
  )
  if (parts.length < 2 || loose.length === 0) return null
  const some = `(${toMatchExpression(loose, 'OR')})`
  return quoted.length === 0 ? some : `${toMatchExpression(quoted, 'AND')} AND ${some}`
}

/** Splits a unit into its words; a run of pairs that was typed without quotation marks stays one unit. */
function split({ words, prefix, quoted }: QueryTerm): QueryTerm[] {
  if (!quoted && words.some(isPaired)) return [{ words, prefix, quoted }]
  return toWordUnits(words).map((unit, index) => ({ ...unit, prefix: prefix && index === words.length - 1 }))
}

function distinctUnits(units: readonly QueryTerm[]): QueryTerm[] {
  return [...new Map(units.map((unit) => [JSON.stringify([unit.words, unit.prefix]), unit])).values()]
}

function toWordUnits(words: readonly string[]): QueryTerm[] {
  return words.map((word) => ({ words: [word], prefix: false, quoted: false }))
}

/** Returns an FTS5 expression for units: each unit is quoted, so that it contains no syntax. */
export function toMatchExpression(units: readonly QueryTerm[], operator: 'AND' | 'OR'): string {
  const phrases = units.map((unit) =>
    formsOf(unit).map(
      ({ words, prefix }) => `"${words.join(' ').replaceAll('"', '""')}"${prefix ? ' *' : ''}`,
    ),
  )
  return phrases.map((forms) => (forms.length > 1 ? `(${forms.join(' OR ')})` : forms)).join(` ${operator} `)
}

/** Maximum total number of titles with alternative words: common words would exceed the time of a query. */
const ALTERNATIVES_MAX = 8_000

/** Returns the units with the rarest words up to {@link ALTERNATIVES_MAX} titles in total, and at least one. */
function rarestUnits(units: readonly QueryTerm[], { of }: WordCounts): QueryTerm[] {
  const counted = units
    .map((unit) => ({ unit, titles: Math.max(0, ...unit.words.map((word) => of.get(word) ?? 0)) }))
    .filter(({ unit, titles }) => titles > 0 || unit.prefix)
    .sort((a, b) => a.titles - b.titles)
    .slice(0, QUERY_MAX_WORDS)
  let total = 0
  return counted.flatMap(({ unit, titles }, index) => {
    total += titles
    return index === 0 || total <= ALTERNATIVES_MAX ? [unit] : []
  })
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

/** Reads the number of titles that contain each word. */
async function readCounts(reader: SqlReader, items: number, words: readonly string[]): Promise<WordCounts> {
  const sql = asJsonRows(
    'term, doc',
    `SELECT term, doc FROM search_counts WHERE term IN (SELECT value FROM json_each(?))`,
  )
  const rows = await selectJsonRows(reader, sql, [JSON.stringify(words)], 'the search index')
  return { items: Math.max(1, items), of: new Map(rows as [string, number][]) }
}

/** A row of `search_documents`. */
interface IndexedDocument extends ItemRow {
  id: number
  /** Canonical URL. */
  page: string | null
}

const DOCUMENT_COLUMNS: ObjectColumns<IndexedDocument> = {
  ...columnsOf('d', ['id', 'page', 'source', 'sourceId', 'title', 'url', 'points', 'comments']),
  ...columnsOf('d', ['firstDay', 'lastDay', 'publishedAt']),
}

/** @param from see {@link selectObjects}; documents have the alias `d` */
function selectDocuments(
  reader: SqlReader,
  from: string,
  args: (string | number | null)[],
): Promise<IndexedDocument[]> {
  return selectObjects(reader, DOCUMENT_COLUMNS, from, args, 'the search index')
}

/**
 * Number of ranked items per table, the same for every page: with fewer for the first page, the order of equal
 * scores would differ between pages. One more than all pages together shows whether there is another item.
 */
const RANKED_MAX = PAGED_ITEMS_MAX + 1

/**
 * Returns a query that ranks a table of words by BM25 (greater is better), and equal scores by age, the newest
 * first.
 */
function rankedQuery(table: 'search_titles' | 'search_texts', limit: number): string {
  return `
    SELECT rowid AS id, -bm25(${table}) AS score FROM ${table}
    WHERE ${table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 AND ((?4 = '[]' AND ?5 IS NULL AND ?6 IS NULL) OR EXISTS (
      SELECT 1 FROM search_documents o WHERE o.id = ${table}.rowid
        AND (?4 = '[]' OR o.source IN (SELECT value FROM json_each(?4)))
        AND (?5 IS NULL OR coalesce(o.points, 0) >= ?5) AND (?6 IS NULL OR coalesce(o.comments, 0) >= ?6)
    ))
    ORDER BY score DESC, id DESC LIMIT ${limit}`
}

type SearchFilter = Pick<SearchQuery, 'sources' | 'minPoints' | 'minComments' | 'from' | 'to'>

const NO_FILTER: SearchFilter = { sources: [], minPoints: null, minComments: null, from: null, to: null }

/**
 * Selects items whose title matches, ranked by BM25, then those whose text matches: the scores of two tables are
 * not comparable. Equal scores are ordered by points, then by age, the newest first.
 */
function findDocuments(
  reader: SqlReader,
  filter: SearchFilter,
  options: { expression: string; depth: number; excludedIds: readonly number[]; limit: number },
): Promise<IndexedDocument[]> {
  const { expression, depth, excludedIds, limit } = options
  const found = `(
    WITH titles AS (${rankedQuery('search_titles', depth)}), texts AS (${rankedQuery('search_texts', depth)})
    SELECT id, score, 0 AS place FROM titles
    UNION ALL SELECT id, score, 1 AS place FROM texts WHERE id NOT IN (SELECT id FROM titles)
  )`
  return selectDocuments(
    reader,
    `${found} f JOIN search_documents d ON d.id = f.id
    WHERE f.id NOT IN (SELECT value FROM json_each(?7))
    ORDER BY f.place, f.score DESC, coalesce(d.points, 0) DESC, d.id DESC LIMIT ${limit}`,
    [...rankedArgs(expression, filter), JSON.stringify(excludedIds)],
  )
}

/** Returns the parameters 1 to 6 of {@link rankedQuery}. */
function rankedArgs(expression: string, filter: SearchFilter): (string | number | null)[] {
  const { sources, minPoints, minComments } = filter
  return [expression, ...idRange(filter), JSON.stringify(sources), minPoints, minComments]
}

export function idRange({ from, to }: Pick<SearchFilter, 'from' | 'to'>): [first: number, last: number] {
  return [from === null ? 0 : firstIdOf(from), to === null ? Number.MAX_SAFE_INTEGER : lastIdOf(to)]
}

/** Maximum number of items compared, for the same page and for shared words each. */
const CANDIDATES = 200

/** Number of words of a title that are compared. */
const TITLE_MAX_WORDS = 64

/** Finds items similar to another (docs/api.md): those of the same page, then those whose titles share rare words. */
export async function similar(reader: SqlReader, key: string, limit: number): Promise<SimilarItem[]> {
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

export function itemNotFound(key: string): Refusal<FeedSearchRefusal> {
  return new Refusal('item_not_found', `no item ${JSON.stringify(key.slice(0, 132))} is stored`)
}

async function readSamePage(reader: SqlReader, { page }: IndexedDocument): Promise<IndexedDocument[]> {
  if (page === null) return []
  const where = `search_documents d WHERE d.page = ? ORDER BY d.points DESC, d.id DESC LIMIT ${CANDIDATES}`
  return selectDocuments(reader, where, [page])
}

/** Selects the best items by BM25 whose titles contain any of the words. */
async function readSimilarTitles(reader: SqlReader, words: readonly QueryTerm[]): Promise<IndexedDocument[]> {
  if (words.length === 0) return []
  const found = `(${rankedQuery('search_titles', CANDIDATES)})`
  const args = rankedArgs(toMatchExpression(words, 'OR'), NO_FILTER)
  return selectDocuments(reader, `${found} f JOIN search_documents d ON d.id = f.id`, args)
}
