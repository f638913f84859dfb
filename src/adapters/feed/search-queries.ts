import { parseSearchText } from '../../domain/feed/search-words.ts'
import { TREND_MAX_DAYS } from '../../domain/feed/search.ts'
import type {
  ItemTrend,
  SearchPage,
  SearchQuery,
  SimilarItem,
  TermTrend,
  TermTrendQuery,
} from '../../domain/feed/search.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import { selectObjects } from '../sqlite/rows.ts'
import type { Reader, StoreClient } from '../sqlite/rows.ts'
import { DAY_NUMBER_OF_ID, dayOfNumber } from './search-documents.ts'
import { readAnsweringState } from './search-index.ts'
import { idRange, itemNotFound, matching, search, similar } from './search-ranking.ts'
import { REVISION } from './window.ts'

/** A query as it travels to the process that runs it. */
export type FeedQuery =
  | { ask: 'search'; query: SearchQuery }
  | { ask: 'similar'; key: string; limit: number }
  | { ask: 'item-trend'; key: string }
  | { ask: 'term-trend'; query: TermTrendQuery }

export type FeedResult = SearchPage | SimilarItem[] | ItemTrend | TermTrend

/** Changes with every write to the index. */
const INDEX_STEP = 'SELECT step FROM search_state'

/** Runs a query on one state of the index or, where it is about signals, of the signals. */
export function runQuery(client: StoreClient, asked: FeedQuery): Promise<FeedResult> {
  switch (asked.ask) {
    case 'search':
      return client.snapshot(INDEX_STEP, (reader) => search(reader, asked.query))
    case 'similar':
      return client.snapshot(INDEX_STEP, (reader) => similar(reader, asked.key, asked.limit))
    case 'item-trend':
      return client.snapshot(REVISION, (reader) => itemTrend(reader, asked.key))
    case 'term-trend':
      return client.snapshot(INDEX_STEP, (reader) => termTrend(reader, asked.query))
  }
}

/** Places among the day's signals of the source, by points; found on their index. */
const ITEM_DAYS = `
  SELECT s.day AS day, s.title AS title, s.points AS points, s.comments AS comments,
    (SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day AND o.points > s.points) AS better,
    (SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day AND o.points IS NOT NULL) AS "of"
  FROM signals s WHERE s.source = ? AND s.source_id = ? ORDER BY s.day DESC LIMIT ${TREND_MAX_DAYS}`

type ItemDay = Omit<ItemTrend['days'][number], 'rank'> & { title: string; better: number }
const ITEM_DAY = ['day', 'title', 'points', 'comments', 'better', 'of'] as const

/** Points and ranks of an item by day (docs/api.md), read from the signals themselves. */
async function itemTrend(reader: Reader, key: string): Promise<ItemTrend> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const days = await selectObjects<ItemDay>(reader, ITEM_DAY, ITEM_DAYS, [source, sourceId], 'the feed')
    const [latest] = days
    if (!latest) continue
    const trend = days.toReversed().map(({ day, points, comments, better, of }) => ({
      day,
      points,
      comments,
      rank: points === null ? null : better + 1,
      of,
    }))
    return { key, title: latest.title, days: trend }
  }
  throw itemNotFound(key)
}

/** Items that mention a term, by their day (docs/api.md). */
async function termTrend(reader: Reader, { term, from, to }: TermTrendQuery): Promise<TermTrend> {
  const units = parseSearchText(term)
  if (units.length === 0) return { mentions: 0, days: [] }
  const { active } = await readAnsweringState(reader)
  const [titles, texts] = [`search_titles_${active}`, `search_texts_${active}`]
  const inRange = 'MATCH ?1 AND rowid BETWEEN ?2 AND ?3'
  const query = `
    SELECT ${DAY_NUMBER_OF_ID} AS day, count(*) AS mentions FROM (
      SELECT rowid AS id FROM ${titles} WHERE ${titles} ${inRange}
      UNION ALL
      SELECT rowid AS id FROM ${texts} WHERE ${texts} ${inRange}
        AND rowid NOT IN (SELECT rowid FROM ${titles} WHERE ${titles} MATCH ?1)
    ) GROUP BY 1 ORDER BY 1 DESC LIMIT ${TREND_MAX_DAYS}`
  const args = [matching(units, 'AND'), ...idRange({ from, to })]
  const what = 'the search index'
  const rows = await selectObjects<Mentions>(reader, ['day', 'mentions'], query, args, what)
  const days = rows.toReversed().map(({ day, mentions }) => ({ day: dayOfNumber(day), mentions }))
  return { mentions: days.reduce((sum, { mentions }) => sum + mentions, 0), days }
}

interface Mentions {
  /** Number of the day. */
  day: number
  mentions: number
}
