import { TREND_MAX_DAYS } from '../../domain/feed/search/search.ts'
import type {
  FeedSearchRefusal,
  ItemTrend,
  SearchPage,
  SearchQuery,
  SimilarItem,
  TermTrend,
  TermTrendQuery,
} from '../../domain/feed/search/search.ts'
import { parseSearchText } from '../../domain/feed/search/search-terms.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { columnsOf, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader, StoreClient } from '../sqlite/rows.ts'
import {
  rarestUnits,
  toMatchExpression,
  toWordUnits,
  BM25,
  NO_FILTER,
  idRange,
  rankedArgs,
  rankedQuery,
  readCounts,
  selectDocuments,
} from './ranked-documents.ts'
import { DAY_NUMBER_OF_ID, dayOfNumber, readItemCount } from './search-documents.ts'
import { search } from './search-ranking.ts'
import { REVISION } from './window.ts'
import type { QueryTerm } from '../../domain/feed/search/search-terms.ts'
import { similarityReasons, titleSimilarity } from '../../domain/feed/search/title-similarity.ts'
import { tokenize } from '../../domain/feed/search/tokenize.ts'
import { Refusal } from '../../domain/refusal.ts'
import { toIndexedItem } from './items.ts'
import type { IndexedDocument } from './ranked-documents.ts'

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

interface ItemDay extends Omit<ItemTrend['days'][number], 'rank'> {
  title: string
  url: string | null
  publishedAt: Instant | null
  better: number
}

/** Ranks the item among the day's signals of its source by points, using their index. */
const SAME_DAY = 'SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day'
const ITEM_DAY_COLUMNS: ObjectColumns<ItemDay> = {
  ...columnsOf('s', ['day', 'title', 'url', 'points', 'comments', 'publishedAt']),
  better: `(${SAME_DAY} AND o.points > s.points)`,
  of: `(${SAME_DAY} AND o.points IS NOT NULL)`,
}

const FROM_ITEM_DAYS = `
  signals s WHERE s.source = ? AND s.source_id = ? ORDER BY s.day DESC LIMIT ${TREND_MAX_DAYS}`

/** Reads points and ranks of an item by day (docs/api.md) from the signals. */
async function itemTrend(reader: SqlReader, key: string): Promise<ItemTrend> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const args = [source, sourceId]
    const days = await selectObjects(reader, ITEM_DAY_COLUMNS, FROM_ITEM_DAYS, args, 'the feed')
    const [latest] = days
    if (!latest) continue
    const trend = days.toReversed().map(({ day, points, comments, better, of }) => ({
      day,
      points,
      comments,
      rank: points === null ? null : better + 1,
      of,
    }))
    const { title, url, publishedAt } = latest
    return {
      key,
      title,
      url,
      publishedAt: publishedAt === null ? null : formatInstant(publishedAt),
      days: trend,
    }
  }
  throw itemNotFound(key)
}

/** Counts the items that mention a term, by day (docs/api.md). */
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

function itemNotFound(key: string): Refusal<FeedSearchRefusal> {
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
  const found = `(${rankedQuery('search_titles', BM25, CANDIDATES)})`
  const args = rankedArgs(toMatchExpression(words, 'OR'), NO_FILTER)
  return selectDocuments(reader, `${found} f JOIN search_documents d ON d.id = f.id`, args)
}
