import { PAGED_ITEMS_MAX } from '../../domain/feed/search/search.ts'
import type { SearchQuery } from '../../domain/feed/search/search.ts'
import type { WordCounts } from '../../domain/feed/search/title-similarity.ts'
import { asJsonRows, columnsOf, selectJsonRows, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader } from '../sqlite/rows.ts'
import type { ItemRow } from './items.ts'
import { firstIdOf, lastIdOf } from './search-documents.ts'

/** Documents of the search index, selected and ranked by SQLite's FTS5. */

/** Reads the number of titles that contain each word. */
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

/** A row of `search_documents`. */
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

/**
 * Returns a query that ranks a table of words by BM25 (greater is better), and equal scores by age, the newest
 * first.
 */
export function rankedQuery(table: 'search_titles' | 'search_texts', limit: number): string {
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

export const NO_FILTER: SearchFilter = {
  sources: [],
  minPoints: null,
  minComments: null,
  from: null,
  to: null,
}

/**
 * Selects items whose title matches, ranked by BM25, then those whose text matches: the scores of two tables are
 * not comparable. Equal scores are ordered by points, then by age, the newest first.
 */
export function findDocuments(
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
export function rankedArgs(expression: string, filter: SearchFilter): (string | number | null)[] {
  const { sources, minPoints, minComments } = filter
  return [expression, ...idRange(filter), JSON.stringify(sources), minPoints, minComments]
}

export function idRange({ from, to }: Pick<SearchFilter, 'from' | 'to'>): [first: number, last: number] {
  return [from === null ? 0 : firstIdOf(from), to === null ? Number.MAX_SAFE_INTEGER : lastIdOf(to)]
}
