import type { FeedEvent } from '../../domain/feed/columns.ts'
import { NEWS_SOURCES, saveKey } from '../../domain/feed/source.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import type { EventGroup } from '../../domain/year/left-out.ts'
import type { SourceObservation, VerifiedTitle, YearEvent } from '../../domain/year/rank.ts'
import type { Day } from '../../domain/time.ts'
import type { YearWindow } from '../../domain/year/ledger.ts'
import { asJsonRows, columnsOf, selectJsonRows, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader, StoreClient } from '../sqlite/rows.ts'
import { retryWithFewerRows, selectForItems } from './items.ts'

const PAGE_EVENTS = 4_000

/** Reads a number that grows with every import that changes something. */
export const REVISION = 'SELECT number FROM revision'

/**
 * Selects a page of the events that a window can contain, by their date range, with the values of their latest
 * signal up to the as-of day. The page is cut on the index of events, so the cost depends on the events of the
 * window and not on all signals ever stored. Its last row is the position to continue from.
 */
const EVENTS_PAGE = asJsonRows(
  'latest, source, source_id, title, url, points, comments, published_at, title_provenance',
  `WITH page AS (
    SELECT source, source_id, latest_published_at FROM events
    WHERE (latest_published_at, source, source_id) > (?1, ?2, ?3) AND earliest_published_at < ?4
    ORDER BY latest_published_at, source, source_id LIMIT ?6
  )
  SELECT page.latest_published_at AS latest, page.source AS source, page.source_id AS source_id,
    s.title AS title, s.url AS url, s.points AS points, s.comments AS comments,
    s.published_at AS published_at, s.title_provenance AS title_provenance
  FROM page LEFT JOIN signals s
    ON s.source = page.source AND s.source_id = page.source_id
    AND s.day = (
      SELECT day FROM signals d WHERE d.source = page.source AND d.source_id = page.source_id AND d.day <= ?5
      ORDER BY day DESC LIMIT 1
    )
  ORDER BY page.latest_published_at, page.source, page.source_id`,
)

const FROM_OBSERVED_DAYS = 'source_days WHERE day BETWEEN ?1 AND ?2 ORDER BY source, day'

/** Signals are only read for an event whose first and last days enclose the window. */
const IS_OBSERVED = `
  last_day >= ?1 AND first_day <= ?2 AND (
    first_day >= ?1 OR last_day <= ?2 OR EXISTS (
      SELECT 1 FROM signals s
      WHERE s.source = e.source AND s.source_id = e.source_id AND s.day BETWEEN ?1 AND ?2
    )
  )`

const FROM_OBSERVED_EVENTS = `events e WHERE ${IS_OBSERVED} GROUP BY source ORDER BY source`

/** Groups the observed events by the missing values of their latest signal up to the as-of day. */
const FROM_EVENT_GROUPS = `
  events e JOIN signals latest
    ON latest.source = e.source AND latest.source_id = e.source_id
    AND latest.day = (
      SELECT max(day) FROM signals d
      WHERE d.source = e.source AND d.source_id = e.source_id AND d.day <= ?2
    )
  WHERE ${IS_OBSERVED}
  GROUP BY e.source, latest.points IS NULL, latest.title_provenance IS NULL,
    CASE WHEN latest.published_at >= ?3 AND latest.published_at < ?4 THEN 1 WHEN latest.published_at IS NULL THEN 2 END
  ORDER BY e.source`

export function readWindow(
  client: StoreClient,
  window: YearWindow,
): Promise<{ events: YearEvent[]; observed: SourceObservation[] }> {
  return client.snapshot(REVISION, async (reader) => {
    const events = await readEvents(reader, window)
    const select = <T>(columns: ObjectColumns<T>, from: string): Promise<T[]> =>
      selectObjects<T>(reader, columns, from, [window.firstDay, window.asOfDay], 'the feed')
    const days = await select<{ source: string; day: Day }>(
      { source: 'source', day: 'day' },
      FROM_OBSERVED_DAYS,
    )
    const counts = await select<{ source: string; events: number }>(
      { source: 'source', events: 'count(*)' },
      FROM_OBSERVED_EVENTS,
    )
    const observed = counts.map(({ source, events: count }) => ({
      source,
      days: days.filter((each) => each.source === source).map(({ day }) => day),
      events: count,
    }))
    return { events, observed }
  })
}

export function eventGroups(reader: SqlReader, window: YearWindow): Promise<EventGroup[]> {
  const { firstDay, asOfDay, windowStart, windowEnd } = window
  const columns: ObjectColumns<EventGroup> = {
    source: 'e.source',
    points: 'max(latest.points)',
    publishedAt: 'max(latest.published_at)',
    titleProvenance: 'max(latest.title_provenance)',
    events: 'count(*)',
  }
  const args = [firstDay, asOfDay, windowStart, windowEnd]
  return selectObjects<EventGroup>(reader, columns, FROM_EVENT_GROUPS, args, 'the feed')
}

export async function newestNewsDay(reader: SqlReader, upTo: Day): Promise<Day | null> {
  const from = 'source_days WHERE source IN (SELECT value FROM json_each(?)) AND day <= ?'
  const args = [JSON.stringify(NEWS_SOURCES), upTo]
  const [newest] = await selectObjects<{ day: Day | null }>(
    reader,
    { day: 'max(day)' },
    from,
    args,
    'the feed',
  )
  return newest?.day ?? null
}

export async function readVerifiedTitles(
  reader: SqlReader,
  events: readonly ItemRef[],
): Promise<Map<string, VerifiedTitle>> {
  const from = 'json_each(?) JOIN verified_titles ON source = value ->> 0 AND source_id = value ->> 1'
  const columns = columnsOf('verified_titles', ['source', 'sourceId', 'title', 'provenance'])
  const label = 'the verified titles'
  const rows = await selectForItems<ItemRef & VerifiedTitle>(reader, columns, from, events, label)
  return new Map(
    rows.map(({ source, sourceId, title, provenance }) => [saveKey(source, sourceId), { title, provenance }]),
  )
}

export async function latestDay(
  reader: SqlReader,
  { source, sourceId }: ItemRef,
  asOfDay: Day,
): Promise<Day | null> {
  const { rows } = await reader.execute({
    sql: 'SELECT max(day) FROM signals WHERE source = ? AND source_id = ? AND day <= ?',
    args: [source, sourceId, asOfDay],
  })
  const day = rows[0]?.[0]
  return typeof day === 'string' ? day : null
}

type PageRow = [
  latestPublishedAt: number,
  source: string,
  sourceId: string,
  title: string,
  url: string | null,
  points: number | null,
  comments: number | null,
  publishedAt: number | null,
  titleProvenance: string | null,
]

/** Range of the events to read, and the last day of the signals that count. */
export type EventRange = Pick<YearWindow, 'windowStart' | 'windowEnd' | 'asOfDay'>

/** Reads every event published in the range with known points; `windowEnd` is exclusive. */
export async function readEvents(reader: SqlReader, window: EventRange): Promise<FeedEvent[]> {
  const events: FeedEvent[] = []
  let after: [number, string, string] = [window.windowStart, '', '']
  for (let limit = PAGE_EVENTS; ;) {
    const read = await retryWithFewerRows(limit, (fewer) => readPage(reader, window, after, fewer))
    const page = read.result
    for (const [, source, sourceId, title, url, points, comments, publishedAt, titleProvenance] of page) {
      if (points === null || publishedAt === null) continue
      if (publishedAt < window.windowStart || publishedAt >= window.windowEnd) continue
      events.push({ source, sourceId, title, url, points, comments, publishedAt, titleProvenance })
    }
    limit = read.limit
    const last = page.at(-1)
    if (!last || page.length < limit) return events
    after = [last[0], last[1], last[2]]
  }
}

async function readPage(
  reader: SqlReader,
  { windowEnd, asOfDay }: EventRange,
  after: [number, string, string],
  limit: number,
): Promise<PageRow[]> {
  const args = [...after, windowEnd, asOfDay, limit]
  return (await selectJsonRows(reader, EVENTS_PAGE, args, 'the feed')) as PageRow[]
}
