import type { Client } from '@libsql/client'
import { saveKey } from '../../domain/feed/source.ts'
import type { SourceObservation } from '../../domain/year/coverage.ts'
import type { VerifiedTitle, YearEvent } from '../../domain/year/rank.ts'
import type { YearWindow } from '../../domain/year/window.ts'
import { selectJsonRows } from '../libsql/json-rows.ts'

const PAGE = 4_000

/**
 * A page of the events a window can hold, found by their reach in time and read at the values of their latest
 * signal up to the as-of day. The page is cut on the index of events, so that the cost follows the events of the
 * window and not the signals ever stored; its last element is the position to continue from.
 */
const EVENTS_PAGE = `
  WITH page AS (
    SELECT source, source_id, latest_published_at FROM events
    WHERE (latest_published_at, source, source_id) > (?1, ?2, ?3) AND earliest_published_at < ?4
    ORDER BY latest_published_at, source, source_id LIMIT ${PAGE}
  )
  SELECT CAST(json_group_array(json_array(
    page.latest_published_at, page.source, page.source_id,
    s.title, s.url, s.points, s.comments, s.published_at, s.title_provenance
  ) ORDER BY page.latest_published_at, page.source, page.source_id) AS BLOB)
  FROM page LEFT JOIN signals s
    ON s.source = page.source AND s.source_id = page.source_id
    AND s.day = (
      SELECT day FROM signals d WHERE d.source = page.source AND d.source_id = page.source_id AND d.day <= ?5
      ORDER BY day DESC LIMIT 1
    )`

const OBSERVED_DAYS = `
  SELECT CAST(json_group_array(json_array(source, day) ORDER BY source, day) AS BLOB)
  FROM source_days WHERE day BETWEEN ?1 AND ?2`

/** Only an event seen before and after the window, but on neither side inside it, needs a look at its signals. */
const OBSERVED_EVENTS = `
  SELECT CAST(json_group_array(json_array(source, n) ORDER BY source) AS BLOB) FROM (
    SELECT source, count(*) AS n FROM events e
    WHERE last_day >= ?1 AND first_day <= ?2 AND (
      first_day >= ?1 OR last_day <= ?2 OR EXISTS (
        SELECT 1 FROM signals s
        WHERE s.source = e.source AND s.source_id = e.source_id AND s.day BETWEEN ?1 AND ?2
      )
    )
    GROUP BY source
  )`

/** One consistent reading of a window; see the port. */
export async function readWindow(
  client: Client,
  window: YearWindow,
): Promise<{ events: YearEvent[]; observed: SourceObservation[] }> {
  const transaction = await client.transaction('read')
  try {
    const events = await readEvents(transaction, window)
    const range = [window.firstDay, window.asOfDay]
    const days = (await selectJsonRows(transaction, OBSERVED_DAYS, range, 'the feed')) as [string, string][]
    const counts = (await selectJsonRows(transaction, OBSERVED_EVENTS, range, 'the feed')) as [
      string,
      number,
    ][]
    const observed = counts.map(([source, count]) => ({
      source,
      days: days.flatMap(([owner, day]) => (owner === source ? [day] : [])),
      events: count,
    }))
    return { events, observed }
  } finally {
    transaction.close()
  }
}

/** Verified titles among the given events, by save key. */
export async function verifiedTitles(
  client: Client,
  events: readonly YearEvent[],
): Promise<Map<string, VerifiedTitle>> {
  const wanted = JSON.stringify(events.map(({ source, sourceId }) => [source, sourceId]))
  const rows = (await selectJsonRows(
    client,
    `SELECT CAST(json_group_array(json_array(source, source_id, title, provenance)) AS BLOB)
     FROM json_each(?) JOIN verified_titles ON source = value ->> 0 AND source_id = value ->> 1`,
    [wanted],
    'the verified titles',
  )) as [string, string, string, string][]
  return new Map(rows.map(([source, id, title, provenance]) => [saveKey(source, id), { title, provenance }]))
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

async function readEvents(client: Pick<Client, 'execute'>, window: YearWindow): Promise<YearEvent[]> {
  const events: YearEvent[] = []
  let after: [number, string, string] = [window.windowStart, '', '']
  for (;;) {
    const args = [...after, window.windowEnd, window.asOfDay]
    const page = (await selectJsonRows(client, EVENTS_PAGE, args, 'the feed')) as PageRow[]
    for (const [, source, sourceId, title, url, points, comments, publishedAt, titleProvenance] of page) {
      if (points === null || publishedAt === null) continue
      if (publishedAt < window.windowStart || publishedAt >= window.windowEnd) continue
      events.push({ source, sourceId, title, url, points, comments, publishedAt, titleProvenance })
    }
    const last = page.at(-1)
    if (!last || page.length < PAGE) return events
    after = [last[0], last[1], last[2]]
  }
}
