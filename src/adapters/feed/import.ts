import type { InStatement } from '@libsql/client'
import type { Signal } from '../../domain/feed/signal.ts'
import type { ImportCounts } from '../../domain/ports.ts'
import type { StoreClient } from '../libsql/store-client.ts'
import { foldRows, importCounts, toJsonArrays } from './json-batches.ts'

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
export async function importSignals(client: StoreClient, batch: readonly Signal[]): Promise<ImportCounts> {
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
