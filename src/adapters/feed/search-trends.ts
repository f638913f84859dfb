import { itemsOfKey } from '../../domain/feed/source.ts'
import { TREND_MAX_DAYS } from '../../domain/feed/search.ts'
import type { ItemTrend, TermTrend, TermTrendQuestion } from '../../domain/feed/search.ts'
import { parseSearchText } from '../../domain/feed/search-text.ts'
import type { Day } from '../../domain/time.ts'
import { asJsonRows, selectJsonRows } from '../libsql/json-rows.ts'
import type { Reader } from '../libsql/store-client.ts'
import { matching } from './search-match.ts'
import { itemNotFound } from './search-rows.ts'
import { DAY_NUMBER_OF_ROWID, dayOfNumber, firstIdOf, lastIdOf, readAnsweringState } from './search-state.ts'

/** Places among the day's signals of the source, by points; found on their index. */
const ITEM_DAYS = asJsonRows(
  'day, title, points, comments, better, of',
  `SELECT s.day AS day, s.title AS title, s.points AS points, s.comments AS comments,
    (SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day AND o.points > s.points) AS better,
    (SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day AND o.points IS NOT NULL) AS of
  FROM signals s WHERE s.source = ? AND s.source_id = ? ORDER BY s.day DESC LIMIT ${TREND_MAX_DAYS}`,
)

type ItemDay = [
  day: Day,
  title: string,
  points: number | null,
  comments: number | null,
  better: number,
  of: number,
]

/** Points and ranks of an item by day (docs/search.md), read from the signals themselves. */
export async function answerItemTrend(reader: Reader, key: string): Promise<ItemTrend> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const rows = (await selectJsonRows(reader, ITEM_DAYS, [source, sourceId], 'the feed')) as ItemDay[]
    const [latest] = rows
    if (!latest) continue
    const days = rows.toReversed().map(([day, , points, comments, better, of]) => ({
      day,
      points,
      comments,
      rank: points === null ? null : better + 1,
      of,
    }))
    return { key, title: latest[1], days }
  }
  throw itemNotFound(key)
}

/** Items that mention a term, by their day (docs/search.md). */
export async function answerTermTrend(
  reader: Reader,
  { term, from, to }: TermTrendQuestion,
): Promise<TermTrend> {
  const units = parseSearchText(term)
  if (units.length === 0) return { mentions: 0, days: [] }
  const { active } = await readAnsweringState(reader)
  const titles = `search_titles_${active}`
  const texts = `search_texts_${active}`
  const sql = asJsonRows(
    'day, mentions',
    `SELECT day, sum(n) AS mentions FROM (
      SELECT ${DAY_NUMBER_OF_ROWID} AS day, count(*) AS n FROM ${titles}
      WHERE ${titles} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 GROUP BY 1
      UNION ALL
      SELECT ${DAY_NUMBER_OF_ROWID} AS day, count(*) AS n FROM ${texts}
      WHERE ${texts} MATCH ?1 AND rowid BETWEEN ?2 AND ?3
        AND rowid NOT IN (SELECT rowid FROM ${titles} WHERE ${titles} MATCH ?1)
      GROUP BY 1
    ) GROUP BY day ORDER BY day DESC LIMIT ${TREND_MAX_DAYS}`,
  )
  const ids = [from === null ? 0 : firstIdOf(from), to === null ? Number.MAX_SAFE_INTEGER : lastIdOf(to)]
  const rows = await selectJsonRows(reader, sql, [matching(units, 'AND'), ...ids], 'the search index')
  const days = (rows as [number, number][])
    .map(([day, mentions]) => ({ day: dayOfNumber(day), mentions }))
    .toReversed()
  return { mentions: days.reduce((sum, { mentions }) => sum + mentions, 0), days }
}
