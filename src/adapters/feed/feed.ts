import type { InStatement } from '@libsql/client'
import type { ItemDetails, KeptAnswer } from '../../domain/feed/live-source.ts'
import type { ImportCounts, Signal } from '../../domain/feed/signal.ts'
import { saveKey } from '../../domain/feed/source.ts'
import type { FeedStore } from '../../domain/ports.ts'
import type { FeedFacts } from '../../domain/survey.ts'
import type { Instant } from '../../domain/time.ts'
import { lastCompleteDay, windowEnding } from '../../domain/year/ledger.ts'
import { windowProblem, withoutProvenance } from '../../domain/year/plan.ts'
import type { Database } from '../sqlite/database.ts'
import {
  asJsonRows,
  foldRows,
  importCounts,
  isTooLarge,
  selectJsonRows,
  toJsonArrays,
} from '../sqlite/rows.ts'
import type { Reader, StoreClient } from '../sqlite/rows.ts'
import { articles, singleItems } from './items.ts'
import { liveFeed } from './live-feed.ts'
import { verifiedTitles as verifiedTitlesTable } from './schema.ts'
import { latestDay, readEvents, readWindow, verifiedTitles } from './window.ts'

const KEPT = asJsonRows(
  'etag, last_modified, body, kept_at',
  'SELECT etag, last_modified, body, kept_at FROM kept_answers WHERE url = ?1 AND kept_at > ?2 AND kept_at <= ?3',
)

const KEEP = `
  INSERT INTO kept_answers (url, etag, last_modified, body, kept_at) VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (url) DO UPDATE SET
    etag = excluded.etag, last_modified = excluded.last_modified, body = excluded.body, kept_at = excluded.kept_at`

const PAUSED = 'SELECT paused_until FROM source_pauses WHERE host = ?'

const PAUSE = `
  INSERT INTO source_pauses (host, paused_until) VALUES (?, ?)
  ON CONFLICT (host) DO UPDATE SET paused_until = max(paused_until, excluded.paused_until)`

/** The part of the feed that remembers sources from one run to the next. */
export function sourceMemory(
  database: Database,
): Pick<FeedStore, 'keptAnswer' | 'keepAnswer' | 'pausedUntil' | 'pauseUntil'> {
  return {
    keptAnswer: (url, since, now) => database.use(({ client }) => keptAnswer(client, url, since, now)),
    keepAnswer: (url, { etag, lastModified, body, keptAt }, since) =>
      database.use(async ({ client }) => {
        await client.batch(
          [
            { sql: KEEP, args: [url, etag, lastModified, body, keptAt] },
            { sql: 'DELETE FROM kept_answers WHERE kept_at <= ?', args: [since] },
          ],
          'write',
        )
      }),
    pausedUntil: (host) =>
      database.use(async ({ client }) => {
        const { rows } = await client.execute({ sql: PAUSED, args: [host] })
        const until = rows[0]?.['paused_until']
        return until === undefined ? null : Number(until)
      }),
    pauseUntil: (host, until) =>
      database.use(async ({ client }) => {
        await client.execute({ sql: PAUSE, args: [host, until] })
      }),
  }
}

async function keptAnswer(
  client: StoreClient,
  url: string,
  since: Instant,
  now: Instant,
): Promise<KeptAnswer | null> {
  const rows = await selectJsonRows(client, KEPT, [url, since, now], 'the kept answers')
  const row = rows[0] as [string | null, string | null, string, Instant] | undefined
  if (!row) return null
  const [etag, lastModified, body, keptAt] = row
  return { etag, lastModified, body, keptAt }
}

/** The feed on libSQL: all that is kept in its database but the search index. */
export function libsqlFeed(database: Database): FeedStore {
  return {
    ...liveFeed(database),
    ...articles(database),
    ...singleItems(database),
    ...sourceMemory(database),
    importSignals: (signals) => database.use(({ client }) => importSignals(client, signals)),
    readWindow: (window) => database.use(({ client }) => readWindow(client, window)),
    verifiedTitles: (events) => database.use(({ client }) => verifiedTitles(client, events)),
    latestDay: (event, asOfDay) => database.use(({ client }) => latestDay(client, event, asOfDay)),
    details: (events) => database.use(({ client }) => readDetails(client, events)),
    saveDetails: (details) => database.use(({ client }) => saveDetails(client, details)),
    saveVerifiedTitle: (source, sourceId, { title, provenance }, verifiedAt) =>
      database.use(async ({ orm }) => {
        await orm
          .insert(verifiedTitlesTable)
          .values({ source, sourceId, title, provenance, verifiedAt })
          .onConflictDoUpdate({
            target: [verifiedTitlesTable.source, verifiedTitlesTable.sourceId],
            set: { title, provenance, verifiedAt },
          })
      }),
    ping: () =>
      database.use(async ({ client }) => {
        await client.execute('SELECT 1 FROM verified_titles LIMIT 1')
      }),
  }
}

/**
 * A batch travels as one JSON parameter: with `json_each` that is the fastest insert this driver has. Columns of a
 * JSON row: 0 source, 1 source id, 2 day, 3 title, 4 url, 5 points, 6 comments, 7 published at, 8 title provenance.
 */
const JSON_ROWS = `
  SELECT value ->> 0 AS source, value ->> 1 AS source_id, value ->> 2 AS day, value ->> 3 AS title, value ->> 4 AS url,
    value ->> 5 AS points, value ->> 6 AS comments, value ->> 7 AS published_at, value ->> 8 AS title_provenance
  FROM json_each(?)`

const VALUE_COLUMNS = ['title', 'url', 'points', 'comments', 'published_at', 'title_provenance']

const differs = VALUE_COLUMNS.map((column) => `signals.${column} IS NOT excluded.${column}`).join(' OR ')
const differsFromStored = VALUE_COLUMNS.map((column) => `old.${column} IS NOT new.${column}`).join(' OR ')

const COUNT_STORED = `
  SELECT count(*) AS stored, coalesce(sum(${differsFromStored}), 0) AS changed
  FROM (${JSON_ROWS}) AS new JOIN signals AS old USING (source, source_id, day)`

const UPSERT_SIGNALS = `
  INSERT INTO signals (source, source_id, day, ${VALUE_COLUMNS.join(', ')})
  ${JSON_ROWS} WHERE true
  ON CONFLICT (source, source_id, day) DO UPDATE SET
    ${VALUE_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}
  WHERE ${differs}`

/** The reach of an event only ever widens: a replaced value may leave it too wide, never too narrow. */
const UPSERT_EVENTS = `
  INSERT INTO events (source, source_id, first_day, last_day, earliest_published_at, latest_published_at)
  SELECT source, source_id, min(day), max(day), min(published_at), max(published_at)
  FROM (${JSON_ROWS}) WHERE true GROUP BY source, source_id
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
  INSERT OR IGNORE INTO source_days (day, source) SELECT DISTINCT day, source FROM (${JSON_ROWS})`

/** Counts only when the upsert just before it changed a row: days and reaches of events follow from those. */
const COUNT_REVISION = 'UPDATE revision SET number = number + 1 WHERE changes() > 0'

/**
 * Stores a batch in one write transaction. A later row of the same (source, sourceId, day) replaces the values, within
 * the batch as across batches (docs/importing.md); each row counts as if it came alone.
 */
async function importSignals(client: StoreClient, batch: readonly Signal[]): Promise<ImportCounts> {
  const folded = foldRows(batch.map((signal) => [keyOf(signal), rowOf(signal)]))
  const lookups = toJsonArrays(folded.first.values()).map((json): InStatement => ({
    sql: COUNT_STORED,
    args: [json],
  }))
  const writes = toJsonArrays(folded.last.values()).flatMap((json): InStatement[] => [
    { sql: UPSERT_SIGNALS, args: [json] },
    COUNT_REVISION,
    { sql: UPSERT_EVENTS, args: [json] },
    { sql: INSERT_DAYS, args: [json] },
  ])
  const results = await client.batch([...lookups, ...writes], 'write')
  const found = results.slice(0, lookups.length).flatMap(({ rows }) => rows)
  const stored = found.reduce((sum, row) => sum + Number(row['stored']), 0)
  const changed = found.reduce((sum, row) => sum + Number(row['changed']), 0)
  return importCounts(folded, stored, changed)
}

function keyOf({ source, sourceId, day }: Signal): string {
  return JSON.stringify([source, sourceId, day])
}

function rowOf(signal: Signal): string {
  const { source, sourceId, day, title, url, points, comments, publishedAt, titleProvenance } = signal
  return JSON.stringify([source, sourceId, day, title, url, points, comments, publishedAt, titleProvenance])
}

const UPSERT_DETAILS = `
  INSERT INTO item_details (source, source_id, author, tags, description, collected_at)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
  FROM json_each(?) WHERE true
  ON CONFLICT (source, source_id) DO UPDATE SET
    author = excluded.author, tags = excluded.tags, description = excluded.description,
    collected_at = excluded.collected_at
  WHERE excluded.collected_at >= collected_at`

/** Items stored by one statement; a server takes no parameter larger than 5 MiB. */
const AT_ONCE = 1_000

/** Stores what sources say of items in one transaction; see the port. */
async function saveDetails(client: StoreClient, details: readonly ItemDetails[]): Promise<void> {
  const statements = []
  for (let start = 0; start < details.length; start += AT_ONCE) {
    const rows = details
      .slice(start, start + AT_ONCE)
      .map(({ source, sourceId, author, tags, description, collectedAt }) => [
        source,
        sourceId,
        author,
        JSON.stringify(tags),
        description,
        collectedAt,
      ])
    statements.push({ sql: UPSERT_DETAILS, args: [JSON.stringify(rows)] })
  }
  if (statements.length > 0) await client.batch(statements, 'write')
}

const DETAILS = asJsonRows(
  'source, source_id, author, json(tags), description, collected_at',
  `SELECT source, source_id, author, tags, description, collected_at
  FROM json_each(?) JOIN item_details ON source = value ->> 0 AND source_id = value ->> 1`,
)

type DetailsRow = [string, string, string | null, string[], string | null, number]

/** What sources say of the given events, by save key. */
async function readDetails(
  reader: Reader,
  events: readonly { source: string; sourceId: string }[],
): Promise<Map<string, ItemDetails>> {
  const found = new Map<string, ItemDetails>()
  let atOnce = AT_ONCE
  for (let start = 0; start < events.length;) {
    const asked = events.slice(start, start + atOnce)
    const rows = await readSome(reader, asked)
    if (rows === 'too-large') {
      atOnce = Math.ceil(atOnce / 4)
      continue
    }
    for (const [source, sourceId, author, tags, description, collectedAt] of rows) {
      const details = { source, sourceId, author, tags, description, collectedAt }
      found.set(saveKey(source, sourceId), details)
    }
    start += asked.length
  }
  return found
}

async function readSome(
  reader: Reader,
  asked: readonly { source: string; sourceId: string }[],
): Promise<DetailsRow[] | 'too-large'> {
  const wanted = JSON.stringify(asked.map(({ source, sourceId }) => [source, sourceId]))
  try {
    return (await selectJsonRows(reader, DETAILS, [wanted], 'the details of items')) as DetailsRow[]
  } catch (error) {
    if (asked.length > 1 && isTooLarge(error)) return 'too-large'
    throw error
  }
}

/** What an operator asks of the feed. */
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
