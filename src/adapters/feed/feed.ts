import type { InStatement } from '@libsql/client'
import type { ClockCheck } from '../../domain/clock-check.ts'
import type { KeptResponse } from '../../domain/feed/live-source.ts'
import type { FeedStore } from '../../domain/ports.ts'
import type { FeedFacts } from '../../domain/inspection.ts'
import type { Instant } from '../../domain/time.ts'
import { lastCompleteDay, windowEnding } from '../../domain/year/ledger.ts'
import type { VerifiedTitle } from '../../domain/year/rank.ts'
import { examineWindow, withoutProvenance } from '../../domain/year/window-check.ts'
import type { Article } from '../../domain/feed/article.ts'
import type { ImportCounts, Signal } from '../../domain/feed/signal.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import type { Database } from '../sqlite/database.ts'
import {
  columnsOf,
  foldRows,
  importCounts,
  insertRow,
  jsonRows,
  listColumns,
  selectObjects,
  snakeCase,
  toJsonArrays,
  upsert,
  upsertRow,
} from '../sqlite/rows.ts'
import type { SqlReader, StoreClient } from '../sqlite/rows.ts'
import {
  ITEM_KEYS,
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
  readVerifiedTitles,
  readWindow,
} from './window.ts'
import { hasCurrentIndex, indexEvents } from './search-documents.ts'

/** Creates the feed on libSQL: everything in its database except the search index. */
export function libsqlFeed(database: Database): FeedStore {
  const withClient =
    <Args extends unknown[], T>(work: (client: StoreClient, ...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> =>
      work(database, ...args)
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

async function saveVerifiedTitle(
  client: StoreClient,
  source: string,
  sourceId: string,
  { title, provenance }: VerifiedTitle,
  verifiedAt: Instant,
): Promise<void> {
  const row = { source, sourceId, title, provenance, verifiedAt }
  await client.execute(upsertRow('verified_titles', ITEM_KEYS, row))
}

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
  await client.batch([
    upsertRow('kept_answers', ['url'], { url, etag, lastModified, body, keptAt }),
    { sql: 'DELETE FROM kept_answers WHERE kept_at <= ?', args: [since] },
  ])
}

async function readPause(reader: SqlReader, host: string): Promise<Instant | null> {
  const { rows } = await reader.execute({
    sql: 'SELECT paused_until FROM source_pauses WHERE host = ?',
    args: [host],
  })
  const until = rows[0]?.['paused_until']
  return until === undefined ? null : Number(until)
}

const KEEP_LATER_PAUSE =
  'ON CONFLICT (host) DO UPDATE SET paused_until = max(paused_until, excluded.paused_until)'

async function pauseUntil(client: StoreClient, host: string, until: Instant): Promise<void> {
  await client.execute(insertRow('source_pauses', { host, pausedUntil: until }, KEEP_LATER_PAUSE))
}

async function readClockCheck(reader: SqlReader): Promise<ClockCheck | null> {
  const columns = columnsOf('clock_check', ['checkedAt', 'aheadMs', 'sources'])
  const [check] = await selectObjects<ClockCheck>(reader, columns, 'clock_check', [], 'the clock check')
  return check ?? null
}

async function saveClockCheck(
  client: StoreClient,
  { checkedAt, aheadMs, sources }: ClockCheck,
): Promise<void> {
  await client.execute(upsertRow('clock_check', ['id'], { id: 1, checkedAt, aheadMs, sources }))
}

/** Reads the state of the feed for `dash doctor` and the metrics. */
export async function feedFacts(reader: SqlReader, now: Instant): Promise<FeedFacts> {
  const { rows } = await reader.execute('SELECT max(generated_at) FROM snapshots')
  const newest = rows[0]?.[0]
  return {
    snapshotAt: typeof newest === 'number' ? newest : null,
    publicationProblem: await publicationProblem(reader, now),
    isIndexed: await hasCurrentIndex(reader),
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

/**
 * Imports of signals and articles (docs/importing.md). A batch is one JSON parameter with an array of the table's
 * columns per row: with `json_each` this is the fastest insert of this driver.
 */

/** A table whose columns are named like properties of `T`. */
interface ImportedTable<T> {
  name: string
  keys: readonly (keyof T & string)[]
  values: readonly (keyof T & string)[]
  hasTexts: boolean
  /** Returns statements that follow each upsert, for the same rows. */
  after: (json: string) => InStatement[]
}

function anyDiffers(values: readonly string[], first: string, second: string): string {
  const columns = values.map(snakeCase)
  return columns.map((column) => `${first}.${column} IS NOT ${second}.${column}`).join(' OR ')
}

/**
 * Stores a batch in one write transaction, and indexes the events that it changed. A later row with the same keys
 * replaces the values, within a batch and across batches. Each row counts as if it were imported alone.
 */
async function importRows<T>(
  client: StoreClient,
  { name, keys, values, after, hasTexts }: ImportedTable<T>,
  batch: readonly T[],
): Promise<ImportCounts> {
  const columns = [...keys, ...values]
  const toJson = (item: T, names: typeof keys): string => JSON.stringify(names.map((each) => item[each]))
  const folded = foldRows(batch.map((item) => [toJson(item, keys), toJson(item, columns)] as const))
  const countStored = `
    SELECT count(*) AS stored, coalesce(sum(${anyDiffers(values, 'old', 'new')}), 0) AS changed
    FROM (${jsonRows(columns)}) AS new JOIN ${name} AS old USING (${listColumns(keys)})`
  const changed = 'RETURNING json_array(source, source_id) AS event'
  const store = `${upsert(name, keys, values, anyDiffers(values, name, 'excluded'))} ${changed}`
  const lookups = toJsonArrays(folded.first.values()).map((json) => ({ sql: countStored, args: [json] }))
  const writes = toJsonArrays(folded.last.values()).flatMap((json) => [
    { sql: store, args: [json] },
    ...after(json),
  ])
  const results = await client.transact(async (tx) => {
    const stored = await tx.batch([...lookups, ...writes])
    const events = stored.flatMap(({ rows: found }) => found.flatMap((row) => row['event'] ?? []))
    await indexEvents(tx, [...new Set(events.map(String))].map(parseItemRef), hasTexts)
    return stored
  })
  const found = results.slice(0, lookups.length).flatMap((result) => result.rows)
  const sumOf = (column: string): number => found.reduce((sum, row) => sum + Number(row[column]), 0)
  return importCounts(folded, sumOf('stored'), sumOf('changed'))
}

function parseItemRef(json: string): ItemRef {
  const [source, sourceId] = JSON.parse(json) as [string, string]
  return { source, sourceId }
}

const SIGNAL_KEYS = [...ITEM_KEYS, 'day'] as const
const SIGNAL_VALUES = ['title', 'url', 'points', 'comments', 'publishedAt', 'titleProvenance'] as const
const SIGNAL_ROWS = jsonRows([...SIGNAL_KEYS, ...SIGNAL_VALUES])

/**
 * Increments the revision only if the upsert just before it changed a row: days and date ranges of events follow
 * from the rows.
 */
const COUNT_REVISION = 'UPDATE revision SET number = number + 1 WHERE changes() > 0'

/** The date range of an event only widens: a replaced value may leave it too wide, never too narrow. */
const UPSERT_EVENTS = `
  INSERT INTO events (source, source_id, first_day, last_day, earliest_published_at, latest_published_at)
  SELECT source, source_id, min(day), max(day), min(published_at), max(published_at)
  FROM (${SIGNAL_ROWS}) WHERE true GROUP BY source, source_id
  ON CONFLICT (source, source_id) DO UPDATE SET
    first_day = min(first_day, excluded.first_day),
    last_day = max(last_day, excluded.last_day),
    earliest_published_at = coalesce(min(earliest_published_at, excluded.earliest_published_at),
      earliest_published_at, excluded.earliest_published_at),
    latest_published_at = coalesce(max(latest_published_at, excluded.latest_published_at),
      latest_published_at, excluded.latest_published_at)
  WHERE first_day > excluded.first_day OR last_day < excluded.last_day
    OR excluded.earliest_published_at < coalesce(earliest_published_at, excluded.earliest_published_at + 1)
    OR excluded.latest_published_at > coalesce(latest_published_at, excluded.latest_published_at - 1)`

const INSERT_DAYS = `
  INSERT OR IGNORE INTO source_days (day, source) SELECT DISTINCT day, source FROM (${SIGNAL_ROWS})`

const SIGNALS: ImportedTable<Signal> = {
  name: 'signals',
  keys: SIGNAL_KEYS,
  values: SIGNAL_VALUES,
  hasTexts: false,
  after: (json) => [COUNT_REVISION, { sql: UPSERT_EVENTS, args: [json] }, { sql: INSERT_DAYS, args: [json] }],
}

export function importSignals(client: StoreClient, batch: readonly Signal[]): Promise<ImportCounts> {
  return importRows(client, SIGNALS, batch)
}

const FORGET_TRIES = `
  DELETE FROM article_tries
  WHERE (source, source_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`

const ARTICLES: ImportedTable<Article> = {
  name: 'articles',
  keys: ITEM_KEYS,
  values: ['text', 'provenance', 'fetchedAt'],
  hasTexts: true,
  after: (json) => [{ sql: FORGET_TRIES, args: [json] }],
}

export function saveArticles(client: StoreClient, batch: readonly Article[]): Promise<ImportCounts> {
  return importRows(client, ARTICLES, batch)
}
