import type { FeedEvent } from '../../domain/feed/columns.ts'
import { saveKey } from '../../domain/feed/source.ts'
import type { SourceObservation, VerifiedTitle, YearEvent } from '../../domain/year/rank.ts'
import type { Day } from '../../domain/time.ts'
import type { YearWindow } from '../../domain/year/ledger.ts'
import { asJsonRows, selectJsonRows, isTooLarge } from '../sqlite/rows.ts'
import type { Reader, StoreClient } from '../sqlite/rows.ts'

const PAGE = 4_000

/** Titles asked for at once; a server takes no parameter, and gives no cell, larger than 5 MiB. */
const TITLES_AT_ONCE = 2_000

/** Grows with every import that changed something. */
export const REVISION = 'SELECT number FROM revision'

/**
 * A page of the events a window can hold, found by their reach in time and read at the values of their latest
 * signal up to the as-of day. The page is cut on the index of events, so that the cost follows the events of the
 * window and not the signals ever stored; its last element is the position to continue from.
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

const OBSERVED_DAYS = asJsonRows(
  'source, day',
  'SELECT source, day FROM source_days WHERE day BETWEEN ?1 AND ?2 ORDER BY source, day',
)

/** Only an event seen before and after the window, but on neither side inside it, needs a look at its signals. */
const OBSERVED_EVENTS = asJsonRows(
  'source, n',
  `SELECT source, count(*) AS n FROM events e
  WHERE last_day >= ?1 AND first_day <= ?2 AND (
    first_day >= ?1 OR last_day <= ?2 OR EXISTS (
      SELECT 1 FROM signals s
      WHERE s.source = e.source AND s.source_id = e.source_id AND s.day BETWEEN ?1 AND ?2
    )
  )
  GROUP BY source ORDER BY source`,
)

/** One consistent reading of a window; see the port. */
export function readWindow(
  client: StoreClient,
  window: YearWindow,
): Promise<{ events: YearEvent[]; observed: SourceObservation[] }> {
  return client.snapshot(REVISION, async (reader) => {
    const events = await readEvents(reader, window)
    const range = [window.firstDay, window.asOfDay]
    const days = (await selectJsonRows(reader, OBSERVED_DAYS, range, 'the feed')) as [string, string][]
    const counts = (await selectJsonRows(reader, OBSERVED_EVENTS, range, 'the feed')) as [string, number][]
    const observed = counts.map(([source, count]) => ({
      source,
      days: days.flatMap(([owner, day]) => (owner === source ? [day] : [])),
      events: count,
    }))
    return { events, observed }
  })
}

/** Verified titles among the given events, by save key. */
export async function verifiedTitles(
  reader: Reader,
  events: readonly YearEvent[],
): Promise<Map<string, VerifiedTitle>> {
  const titles = new Map<string, VerifiedTitle>()
  for (let start = 0; start === 0 || start < events.length; start += TITLES_AT_ONCE) {
    const asked = events.slice(start, start + TITLES_AT_ONCE)
    const wanted = JSON.stringify(asked.map(({ source, sourceId }) => [source, sourceId]))
    const rows = (await selectJsonRows(reader, VERIFIED_TITLES, [wanted], 'the verified titles')) as [
      string,
      string,
      string,
      string,
    ][]
    for (const [source, id, title, provenance] of rows) titles.set(saveKey(source, id), { title, provenance })
  }
  return titles
}

/** Day of the signal whose values an event has on an as-of day; null when there is none. */
export async function latestDay(
  reader: Reader,
  { source, sourceId }: Pick<YearEvent, 'source' | 'sourceId'>,
  asOfDay: Day,
): Promise<Day | null> {
  const { rows } = await reader.execute({
    sql: 'SELECT max(day) FROM signals WHERE source = ? AND source_id = ? AND day <= ?',
    args: [source, sourceId, asOfDay],
  })
  const day = rows[0]?.[0]
  return typeof day === 'string' ? day : null
}

const VERIFIED_TITLES = asJsonRows(
  'source, source_id, title, provenance',
  `SELECT source, source_id, title, provenance
  FROM json_each(?) JOIN verified_titles ON source = value ->> 0 AND source_id = value ->> 1`,
)

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

/** Which events are read, and up to which day their signals count. */
export type EventRange = Pick<YearWindow, 'windowStart' | 'windowEnd' | 'asOfDay'>

/** Every event published in the range with known points; `windowEnd` is exclusive. */
export async function readEvents(reader: Reader, window: EventRange): Promise<FeedEvent[]> {
  const events: FeedEvent[] = []
  let after: [number, string, string] = [window.windowStart, '', '']
  let limit = PAGE
  for (;;) {
    const page = await readPage(reader, window, after, limit)
    if (page === 'too-large') {
      limit = Math.ceil(limit / 4)
      continue
    }
    for (const [, source, sourceId, title, url, points, comments, publishedAt, titleProvenance] of page) {
      if (points === null || publishedAt === null) continue
      if (publishedAt < window.windowStart || publishedAt >= window.windowEnd) continue
      events.push({ source, sourceId, title, url, points, comments, publishedAt, titleProvenance })
    }
    const last = page.at(-1)
    if (!last || page.length < limit) return events
    after = [last[0], last[1], last[2]]
  }
}

async function readPage(
  reader: Reader,
  window: EventRange,
  after: [number, string, string],
  limit: number,
): Promise<PageRow[] | 'too-large'> {
  const args = [...after, window.windowEnd, window.asOfDay, limit]
  try {
    return (await selectJsonRows(reader, EVENTS_PAGE, args, 'the feed')) as PageRow[]
  } catch (error) {
    if (limit > 1 && isTooLarge(error)) return 'too-large'
    throw error
  }
}
