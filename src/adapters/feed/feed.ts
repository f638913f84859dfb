import type { KeptResponse } from '../../domain/feed/live-source.ts'
import type { FeedStore } from '../../domain/ports.ts'
import type { FeedFacts } from '../../domain/inspection.ts'
import type { Instant } from '../../domain/time.ts'
import { lastCompleteDay, windowEnding } from '../../domain/year/ledger.ts'
import { windowProblem, withoutProvenance } from '../../domain/year/plan.ts'
import type { VerifiedTitle } from '../../domain/year/rank.ts'
import type { Database } from '../sqlite/database.ts'
import { selectObjects } from '../sqlite/rows.ts'
import type { Reader, StoreClient } from '../sqlite/rows.ts'
import { importSignals, saveArticles, upsertRow } from './import-rows.ts'
import {
  itemsWantingText,
  readArticle,
  readDetails,
  readItem,
  readRevision,
  recordFailedTry,
  saveDetails,
  storedItems,
} from './items.ts'
import { liveEvents, newestSnapshot, saveSnapshot, snapshotFeed } from './live-feed.ts'
import { latestDay, readEvents, readWindow, verifiedTitles } from './window.ts'

/** The feed on libSQL: everything in its database but the search index. */
export function libsqlFeed(database: Database): FeedStore {
  const on =
    <Args extends unknown[], T>(work: (client: StoreClient, ...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> =>
      database.use(({ client }) => work(client, ...args))
  return {
    importSignals: on(importSignals),
    readWindow: on(readWindow),
    latestDay: on(latestDay),
    verifiedTitles: on(verifiedTitles),
    saveVerifiedTitle: on(saveVerifiedTitle),
    details: on(readDetails),
    saveDetails: on(saveDetails),
    liveEvents: on(liveEvents),
    saveSnapshot: on(saveSnapshot),
    newestSnapshot: on(newestSnapshot),
    snapshotFeed: on(snapshotFeed),
    saveArticles: on(saveArticles),
    article: on(readArticle),
    itemsWantingText: on(itemsWantingText),
    recordFailedTry: on(recordFailedTry),
    storedItems: on(storedItems),
    item: on(readItem),
    revision: on(readRevision),
    keptResponse: on(readKeptAnswer),
    keepResponse: on(keepAnswer),
    pausedUntil: on(readPause),
    pauseUntil: on(pauseUntil),
    ping: on(async (client) => void (await client.execute('SELECT 1 FROM verified_titles LIMIT 1'))),
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

const KEPT = `
  SELECT etag, last_modified AS lastModified, body, kept_at AS keptAt FROM kept_answers
  WHERE url = ?1 AND kept_at > ?2 AND kept_at <= ?3`

const KEEP = upsertRow('kept_answers', ['url'], ['etag', 'last_modified', 'body', 'kept_at'])

async function readKeptAnswer(
  reader: Reader,
  url: string,
  since: Instant,
  now: Instant,
): Promise<KeptResponse | null> {
  const members = ['etag', 'lastModified', 'body', 'keptAt'] as const
  const [kept] = await selectObjects<KeptResponse>(
    reader,
    members,
    KEPT,
    [url, since, now],
    'the kept answers',
  )
  return kept ?? null
}

async function keepAnswer(
  client: StoreClient,
  url: string,
  { etag, lastModified, body, keptAt }: KeptResponse,
  since: Instant,
): Promise<void> {
  await client.batch(
    [
      { sql: KEEP, args: [url, etag, lastModified, body, keptAt] },
      { sql: 'DELETE FROM kept_answers WHERE kept_at <= ?', args: [since] },
    ],
    'write',
  )
}

async function readPause(reader: Reader, host: string): Promise<Instant | null> {
  const { rows } = await reader.execute({
    sql: 'SELECT paused_until FROM source_pauses WHERE host = ?',
    args: [host],
  })
  const until = rows[0]?.['paused_until']
  return until === undefined ? null : Number(until)
}

const PAUSE = `
  INSERT INTO source_pauses (host, paused_until) VALUES (?, ?)
  ON CONFLICT (host) DO UPDATE SET paused_until = max(paused_until, excluded.paused_until)`

async function pauseUntil(client: StoreClient, host: string, until: Instant): Promise<void> {
  await client.execute({ sql: PAUSE, args: [host, until] })
}

/** The state of the feed for `dash doctor` and the metrics. */
export async function feedFacts(reader: Reader, now: Instant): Promise<FeedFacts> {
  const { rows } = await reader.execute('SELECT max(generated_at) FROM snapshots')
  const newest = rows[0]?.[0]
  return {
    snapshotAt: typeof newest === 'number' ? newest : null,
    publicationProblem: await publicationProblem(reader, now),
  }
}

/** As `publish-year` finds it. That nothing was imported yet is no problem of the rows. */
async function publicationProblem(reader: Reader, now: Instant): Promise<string | null> {
  const window = windowEnding(lastCompleteDay(now))
  const events = await readEvents(reader, window)
  const titles = await verifiedTitles(reader, withoutProvenance(events))
  const problem = windowProblem({ window, events, observed: [] }, titles, { allowEmpty: true, now })
  if (problem === null) return null
  const days = problem.rows.map((event) => latestDay(reader, event, window.asOfDay))
  return problem.message(await Promise.all(days))
}
