import { PAGED_ITEMS_MAX, QUERY_MAX_WORDS } from '../../domain/feed/search/search.ts'
import type { SearchQuery } from '../../domain/feed/search/search.ts'
import { KNOWN_POINTS } from '../../domain/feed/source.ts'
import type { WordCounts } from '../../domain/feed/search/title-similarity.ts'
import { asJsonRows, columnsOf, selectJsonRows, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader } from '../sqlite/rows.ts'
import type { ItemRow } from './items.ts'
import { START_OF_ID, firstIdOf, lastIdOf } from './search-documents.ts'
import { formsOf, withLastAsPrefix } from '../../domain/feed/search/search-terms.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { isPaired } from '../../domain/feed/search/tokenize.ts'

/** Documents of the search index, selected and ranked by SQLite's FTS5. */

export async function readCounts(
  reader: SqlReader,
  items: number,
  words: readonly string[],
): Promise<WordCounts> {
  const sql = asJsonRows(
    'term, doc',
    `SELECT term, doc FROM search_counts WHERE term IN (SELECT value FROM json_each(?))`,
  )
  const rows = await selectJsonRows(reader, sql, [JSON.stringify(words)], 'the search index')
  return { items: Math.max(1, items), of: new Map(rows as [string, number][]) }
}

export interface IndexedDocument extends ItemRow {
  id: number
  /** Canonical URL. */
  page: string | null
}

const DOCUMENT_COLUMNS: ObjectColumns<IndexedDocument> = {
  ...columnsOf('d', ['id', 'page', 'source', 'sourceId', 'title', 'url', 'points', 'comments']),
  ...columnsOf('d', ['firstDay', 'lastDay', 'publishedAt']),
}

/** @param from see {@link selectObjects}; documents have the alias `d` */
export function selectDocuments(
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
export const RANKED_MAX = PAGED_ITEMS_MAX + 1

/** Order of documents: by age, by points, or by BM25 and some weight of the points; infinite for the points alone. */
type DocumentOrder = 'newest' | 'points' | { pointsWeight: number }

export const BM25: DocumentOrder = { pointsWeight: 0 }

type WordTable = 'search_titles' | 'search_texts'

/** Facts of the document of a row, from an index that holds them alone: the documents themselves are far larger. */
function factsOf(table: WordTable): string {
  return `search_documents o INDEXED BY search_documents_facts WHERE o.id = ${table}.rowid`
}

/** Points of an item against those that one item in a hundred of its source reaches. */
const FAME = `coalesce(sqrt(max(0, o.points) / CASE o.source
  ${KNOWN_POINTS.map(([source, points]) => `WHEN '${source}' THEN ${points}.0`).join(' ')} END), 0)`

/** Returns the expression by which rows are ordered, the greatest first. */
function scoreOf(table: WordTable, order: DocumentOrder): string {
  if (order === 'newest') return `(SELECT coalesce(o.published_at, ${START_OF_ID}) FROM ${factsOf(table)})`
  if (order === 'points') return `(SELECT o.points FROM ${factsOf(table)})`
  const { pointsWeight } = order
  if (pointsWeight === Infinity) return `(SELECT ${FAME} FROM ${factsOf(table)})`
  const factor = pointsWeight === 0 ? 1 : `(SELECT 1 + ${pointsWeight} * ${FAME} FROM ${factsOf(table)})`
  return `-bm25(${table}) * ${factor}`
}

function matching(table: WordTable): string {
  return `
    ${table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 AND ((?4 = '[]' AND ?5 IS NULL AND ?6 IS NULL) OR EXISTS (
      SELECT 1 FROM ${factsOf(table)}
        AND (?4 = '[]' OR o.source IN (SELECT value FROM json_each(?4)))
        AND (?5 IS NULL OR coalesce(o.points, 0) >= ?5) AND (?6 IS NULL OR coalesce(o.comments, 0) >= ?6)
    ))`
}

/** Returns a query for the first rows of a table of words in an order, and those of equal scores newest first. */
export function rankedQuery(table: WordTable, order: DocumentOrder, limit: number): string {
  return `
    SELECT rowid AS id, ${scoreOf(table, order)} AS score FROM ${table} WHERE ${matching(table)}
    ORDER BY score DESC, id DESC LIMIT ${limit}`
}

type SearchFilter = Pick<SearchQuery, 'sources' | 'minPoints' | 'minComments' | 'from' | 'to'>

export const NO_FILTER: SearchFilter = {
  sources: [],
  minPoints: null,
  minComments: null,
  from: null,
  to: null,
}

/** A document as it is ordered. */
export interface RankedDocument extends IndexedDocument {
  /** null for unknown points. */
  score: number | null
}

/**
 * Selects the first items whose title or text matches. By relevance, those whose title matches come first: the scores of two
 * tables are not comparable.
 */
export function findDocuments(
  reader: SqlReader,
  filter: SearchFilter,
  options: {
    expression: string
    order: DocumentOrder
    depth: number
    excludedIds: readonly number[]
    limit: number
  },
): Promise<RankedDocument[]> {
  const { expression, order, depth, excludedIds, limit } = options
  const ranking = `ORDER BY ${typeof order === 'string' ? '' : 'f.place, '}f.score DESC, f.id DESC`
  const found = `(
    WITH titles AS (${rankedQuery('search_titles', order, depth)}),
      texts AS (${rankedQuery('search_texts', order, depth)})
    SELECT * FROM (
      SELECT id, score, 0 AS place FROM titles
      UNION ALL SELECT id, score, 1 AS place FROM texts WHERE id NOT IN (SELECT id FROM titles)
    ) f WHERE f.id NOT IN (SELECT value FROM json_each(?7)) ${ranking} LIMIT ${limit}
  )`
  return selectObjects<RankedDocument>(
    reader,
    { ...DOCUMENT_COLUMNS, score: 'f.score' },
    `${found} f JOIN search_documents d ON d.id = f.id ${ranking}`,
    [...rankedArgs(expression, filter), JSON.stringify(excludedIds)],
    'the search index',
  )
}

/** Counts the items whose title or text matches; null if there are more than the pages of a search reach. */
export async function countDocuments(
  reader: SqlReader,
  filter: SearchFilter,
  expression: string,
): Promise<number | null> {
  const first = (table: WordTable): string =>
    `SELECT * FROM (SELECT rowid AS id FROM ${table} WHERE ${matching(table)} LIMIT ${RANKED_MAX})`
  const sql = asJsonRows(
    'items',
    `SELECT count(*) AS items FROM (${first('search_titles')} UNION ${first('search_texts')})`,
  )
  const [row] = await selectJsonRows(reader, sql, rankedArgs(expression, filter), 'the search index')
  const items = Number(row?.[0])
  return items > PAGED_ITEMS_MAX ? null : items
}

/** Returns the parameters 1 to 6 of {@link rankedQuery}. */
export function rankedArgs(expression: string, filter: SearchFilter): (string | number | null)[] {
  const { sources, minPoints, minComments } = filter
  return [expression, ...idRange(filter), JSON.stringify(sources), minPoints, minComments]
}

export function idRange({ from, to }: Pick<SearchFilter, 'from' | 'to'>): [first: number, last: number] {
  return [from === null ? 0 : firstIdOf(from), to === null ? Number.MAX_SAFE_INTEGER : lastIdOf(to)]
}

/** Expressions of SQLite's FTS5 for search words. */

/** Returns the expression of every word, or of every word with the last one as a prefix; null if there is none. */
export function expressionOfAll(match: 'all' | 'prefix', units: readonly QueryTerm[]): string | null {
  const matched = match === 'all' ? units : (withLastAsPrefix(units) ?? [])
  return matched.length === 0 ? null : toMatchExpression(matched, 'AND')
}

/**
 * Returns the expression of some of the words; null if there is none.
 *
 * @param hasEarlierHits true if items with all words were found; otherwise quoted phrases are split too
 */
export function expressionOfSome(
  units: readonly QueryTerm[],
  counts: WordCounts,
  hasEarlierHits: boolean,
): string | null {
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

export function toWordUnits(words: readonly string[]): QueryTerm[] {
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
export function rarestUnits(units: readonly QueryTerm[], { of }: WordCounts): QueryTerm[] {
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
