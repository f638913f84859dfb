import type { ClockCheck } from '../../domain/clock-check.ts'
import type { KeptResponse } from '../../domain/feed/live-source.ts'
import type { FeedStore } from '../../domain/ports.ts'
import type { FeedFacts } from '../../domain/inspection.ts'
import type { Instant } from '../../domain/time.ts'
import { lastCompleteDay, windowEnding } from '../../domain/year/ledger.ts'
import type { VerifiedTitle } from '../../domain/year/rank.ts'
import { examineWindow, withoutProvenance } from '../../domain/year/window-check.ts'
import type { Database } from '../sqlite/database.ts'
import { columnsOf, selectObjects } from '../sqlite/rows.ts'
import type { SqlReader, StoreClient } from '../sqlite/rows.ts'
import { upsertRow } from '../sqlite/upsert.ts'
import { importSignals, saveArticles } from './import-rows.ts'
import {
  itemsNeedingText,
  readArticle,
  readDetails,
  readItem,
  readRevision,
  recordFailedAttempt,
  saveDetails,
  storedItems,
} from './items.ts'
import { liveEvents, newestSnapshot, saveSnapshot, snapshotFeed } from './live-feed.ts'
import {
  eventGroups,
  latestDay,
  newestNewsDay,
  readEvents,
  readWindow,
  readVerifiedTitles,
} from './window.ts'

/** Creates the feed on libSQL: everything in its database except the search index. */
export function libsqlFeed(database: Database): FeedStore {
  const withClient =
    <Args extends unknown[], T>(work: (client: StoreClient, ...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> =>
      database.use((client) => work(client, ...args))
  return {
    importSignals: withClient(importSignals),
    readWindow: withClient(readWindow),
    eventGroups: withClient(eventGroups),
    newestNewsDay: withClient(newestNewsDay),
    latestDay: withClient(latestDay),
    verifiedTitles: withClient(readVerifiedTitles),
    saveVerifiedTitle: withClient(saveVerifiedTitle),
    details: withClient(readDetails),
    saveDetails: withClient(saveDetails),
    liveEvents: withClient(liveEvents),
    saveSnapshot: withClient(saveSnapshot),
    newestSnapshot: withClient(newestSnapshot),
    snapshotFeed: withClient(snapshotFeed),
    saveArticles: withClient(saveArticles),
    article: withClient(readArticle),
    itemsNeedingText: withClient(itemsNeedingText),
    recordFailedAttempt: withClient(recordFailedAttempt),
    storedItems: withClient(storedItems),
    item: withClient(readItem),
    revision: withClient(readRevision),
    keptResponse: withClient(readKeptResponse),
    keepResponse: withClient(saveKeptResponse),
    pausedUntil: withClient(readPause),
    pauseUntil: withClient(pauseUntil),
    clockCheck: withClient(readClockCheck),
    saveClockCheck: withClient(saveClockCheck),
    ping: withClient(async (client) => void (await client.execute('SELECT 1 FROM verified_titles LIMIT 1'))),
  }
}

const UPSERT_TITLE = upsertRow(
  'verified_titles',
  ['source', 'source_id'],
  ['title', 'provenance', 'verified_at'],
)

async function saveVerifiedTitle(
  client: StoreClient,
  source: string,
  sourceId: string,
  { title, provenance }: VerifiedTitle,
  at: Instant,
): Promise<void> {
  await client.execute({ sql: UPSERT_TITLE, args: [source, sourceId, title, provenance, at] })
}

const UPSERT_KEPT = upsertRow('kept_answers', ['url'], ['etag', 'last_modified', 'body', 'kept_at'])

async function readKeptResponse(
  reader: SqlReader,
  url: string,
  since: Instant,
  now: Instant,
): Promise<KeptResponse | null> {
  const from = 'kept_answers WHERE url = ?1 AND kept_at > ?2 AND kept_at <= ?3'
  const columns = columnsOf('kept_answers', ['etag', 'lastModified', 'body', 'keptAt'])
  const args = [url, since, now]
  const [kept] = await selectObjects<KeptResponse>(reader, columns, from, args, 'the kept answers')
  return kept ?? null
}

async function saveKeptResponse(
  client: StoreClient,
  url: string,
  { etag, lastModified, body, keptAt }: KeptResponse,
  since: Instant,
): Promise<void> {
  await client.batch(
    [
      { sql: UPSERT_KEPT, args: [url, etag, lastModified, body, keptAt] },
      { sql: 'DELETE FROM kept_answers WHERE kept_at <= ?', args: [since] },
    ],
    'write',
  )
}

async function readPause(reader: SqlReader, host: string): Promise<Instant | null> {
  const { rows } = await reader.execute({
    sql: 'SELECT paused_until FROM source_pauses WHERE host = ?',
    args: [host],
  })
  const until = rows[0]?.['paused_until']
  return until === undefined ? null : Number(until)
}

const UPSERT_PAUSE = `
  INSERT INTO source_pauses (host, paused_until) VALUES (?, ?)
  ON CONFLICT (host) DO UPDATE SET paused_until = max(paused_until, excluded.paused_until)`

async function pauseUntil(client: StoreClient, host: string, until: Instant): Promise<void> {
  await client.execute({ sql: UPSERT_PAUSE, args: [host, until] })
}

async function readClockCheck(reader: SqlReader): Promise<ClockCheck | null> {
  const columns = columnsOf('clock_check', ['checkedAt', 'aheadMs', 'sources'])
  const [check] = await selectObjects<ClockCheck>(reader, columns, 'clock_check', [], 'the clock check')
  return check ?? null
}

const UPSERT_CLOCK_CHECK = upsertRow('clock_check', ['id'], ['checked_at', 'ahead_ms', 'sources'])

async function saveClockCheck(
  client: StoreClient,
  { checkedAt, aheadMs, sources }: ClockCheck,
): Promise<void> {
  await client.execute({ sql: UPSERT_CLOCK_CHECK, args: [1, checkedAt, aheadMs, sources] })
}

/** Reads the state of the feed for `dash doctor` and the metrics. */
export async function feedFacts(reader: SqlReader, now: Instant): Promise<FeedFacts> {
  const { rows } = await reader.execute('SELECT max(generated_at) FROM snapshots')
  const newest = rows[0]?.[0]
  return {
    snapshotAt: typeof newest === 'number' ? newest : null,
    publicationProblem: await publicationProblem(reader, now),
    clockCheck: await readClockCheck(reader),
  }
}

/** Returns the problem that would prevent `publish-year`. An empty feed is not a problem. */
async function publicationProblem(reader: SqlReader, now: Instant): Promise<string | null> {
  const window = windowEnding(lastCompleteDay(now))
  const events = await readEvents(reader, window)
  const titles = await readVerifiedTitles(reader, withoutProvenance(events))
  const { problem } = examineWindow({ window, events, observed: [], titles }, now)
  if (problem === null) return null
  const days = problem.rows.map((event) => latestDay(reader, event, window.asOfDay))
  return problem.message(await Promise.all(days))
}
