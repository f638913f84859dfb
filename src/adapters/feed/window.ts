import type { InStatement } from '@libsql/client'
import { z } from 'zod'
import type { FeedEvent } from '../../domain/feed/columns.ts'
import { NEWS_SOURCES, saveKey, isTitleTooLong } from '../../domain/feed/source.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import type { EventGroup } from '../../domain/year/left-out.ts'
import type { SourceObservation, VerifiedTitle, YearEvent } from '../../domain/year/rank.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { YearWindow } from '../../domain/year/ledger.ts'
import { isSha256Hex } from '../../domain/digest.ts'
import { LIVE_SORTS, LONGEST_PERIOD_MS } from '../../domain/feed/live-sort.ts'
import { isInstantOf } from '../../domain/feed/snapshot.ts'
import type { SealedSnapshot, Snapshot, SnapshotFeed, SnapshotSaving } from '../../domain/feed/snapshot.ts'
import { OBJECT_MAX_BYTES, storageDamaged } from '../../domain/refusal.ts'
import { dayOf } from '../../domain/time.ts'
import { asJsonRows, columnsOf, selectJsonRows, selectObjects, decodeJsonRows } from '../sqlite/rows.ts'
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

/** The snapshots of the live periods, and the events they are ranked from. */

export function liveEvents(client: StoreClient, now: Instant): Promise<FeedEvent[]> {
  return client.snapshot(REVISION, async (reader) => {
    const range = { windowStart: now - LONGEST_PERIOD_MS, windowEnd: now + 1, asOfDay: dayOf(now) }
    const events = await readEvents(reader, range)
    const titles = await readVerifiedTitles(
      reader,
      events.filter(({ titleProvenance }) => titleProvenance === null),
    )
    return events.map((event) => {
      const verified = titles.get(saveKey(event.source, event.sourceId))
      if (event.titleProvenance !== null || !verified || isTitleTooLong(verified.title)) return event
      return { ...event, title: verified.title, titleProvenance: verified.provenance }
    })
  })
}

/** Number of snapshots kept, including the newest. */
const KEPT_SNAPSHOTS = 10

/** Bytes of a payload per row. */
const PART_BYTES = 1024 * 1024

/** Inserts a snapshot only if it is the latest; otherwise its parts are deleted as unreferenced. */
const INSERT_SNAPSHOT = `
  INSERT INTO snapshots (id, generated_at, feeds)
  SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM snapshots WHERE generated_at >= ?2)
  ON CONFLICT DO NOTHING`

const INSERT_PART =
  'INSERT INTO snapshot_feeds (snapshot_id, sort, part, payload) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING'

const DELETE_LATER = 'DELETE FROM snapshots WHERE generated_at > ?'

const DELETE_OLD = `
  DELETE FROM snapshots
  WHERE id NOT IN (SELECT id FROM snapshots ORDER BY generated_at DESC, id DESC LIMIT ${KEPT_SNAPSHOTS})`

const DELETE_PARTS = 'DELETE FROM snapshot_feeds WHERE snapshot_id NOT IN (SELECT id FROM snapshots)'

const NEWEST = asJsonRows(
  'id, generated_at, feeds',
  'SELECT id, generated_at, feeds FROM snapshots ORDER BY generated_at DESC, id DESC LIMIT 1',
)

type NewestRow = [id: string, generatedAt: number, feeds: string]

const SELECT_PART = 'SELECT payload FROM snapshot_feeds WHERE snapshot_id = ? AND sort = ? AND part = ?'

export async function saveSnapshot(
  client: StoreClient,
  { snapshot, payloads }: SealedSnapshot,
  { discardLater }: { discardLater: boolean },
): Promise<SnapshotSaving> {
  const { id, generatedAt, feeds } = snapshot
  const feedsJson = JSON.stringify(feeds.map(({ sort, sha256, byteSize }) => [sort, sha256, byteSize]))
  const deletions: InStatement[] = discardLater ? [{ sql: DELETE_LATER, args: [generatedAt] }] : []
  const results = await client.batch(
    [
      ...deletions,
      { sql: INSERT_SNAPSHOT, args: [id, generatedAt, feedsJson] },
      ...[...payloads].flatMap(([sort, bytes]) => insertParts(id, sort, bytes)),
      DELETE_OLD,
      DELETE_PARTS,
      NEWEST,
    ],
    'write',
  )
  const newest = decodeJsonRows(results.at(-1)?.rows[0]?.[0], 'the newest snapshot') as NewestRow[]
  for (const [newestId, newestAt] of newest) {
    const time = isInstantOf(newestId, newestAt) ? newestAt : null
    if (newestId !== id || time === null) return { saved: false, newest: { id: newestId, generatedAt: time } }
  }
  const discarded = discardLater ? (results[0]?.rowsAffected ?? 0) : 0
  return { saved: true, removed: discarded + (results.at(-3)?.rowsAffected ?? 0) }
}

function insertParts(id: string, sort: string, bytes: Uint8Array): InStatement[] {
  const count = Math.ceil(bytes.byteLength / PART_BYTES)
  return Array.from({ length: count }, (_, part) => ({
    sql: INSERT_PART,
    args: [id, sort, part, bytes.slice(part * PART_BYTES, (part + 1) * PART_BYTES)],
  }))
}

const describedFeeds = z
  .array(z.tuple([z.enum(LIVE_SORTS), z.string().refine(isSha256Hex), z.int().min(1).max(OBJECT_MAX_BYTES)]))
  .refine((feeds) => LIVE_SORTS.every((sort) => feeds.filter(([listed]) => listed === sort).length === 1))

/**
 * Reads the snapshot with the latest instant; null if there is none.
 *
 * @throws Refusal `storage_damaged` if its row is invalid
 */
export async function newestSnapshot(reader: SqlReader): Promise<Snapshot | null> {
  const rows = (await selectJsonRows(reader, NEWEST, [], 'the newest snapshot')) as NewestRow[]
  const [row] = rows
  if (!row) return null
  const [id, generatedAt, feedsJson] = row
  if (!isInstantOf(id, generatedAt))
    throw storageDamaged(`the stored time of snapshot ${id} does not match its id: ${generatedAt}`)
  return { id, generatedAt, feeds: parseFeeds(id, feedsJson) }
}

function parseFeeds(id: string, feedsJson: string): SnapshotFeed[] {
  try {
    const feeds = describedFeeds.parse(JSON.parse(feedsJson))
    return feeds.map(([sort, sha256, byteSize]) => ({ sort, sha256, byteSize }))
  } catch (cause) {
    throw storageDamaged(`the row of snapshot ${id} does not match its feeds`, cause)
  }
}

export async function snapshotFeed(
  reader: SqlReader,
  id: string,
  { sort, byteSize }: SnapshotFeed,
): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = []
  for (let part = 0; part * PART_BYTES < byteSize; part += 1) {
    const { rows } = await reader.execute({ sql: SELECT_PART, args: [id, sort, part] })
    const payload = rows[0]?.[0]
    if (!(payload instanceof ArrayBuffer)) return null
    parts.push(new Uint8Array(payload))
  }
  return parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts)
}
