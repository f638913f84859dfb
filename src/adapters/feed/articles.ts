import type { InStatement } from '@libsql/client'
import { URL_MAX_LENGTH } from '../../domain/feed/article.ts'
import type { Article, ArticleWish, FailedTry, WantedItem } from '../../domain/feed/article.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import type { ImportCounts } from '../../domain/feed/signal.ts'
import type { FeedStore } from '../../domain/ports.ts'
import type { Database } from '../sqlite/database.ts'
import { asJsonRows, foldRows, importCounts, selectJsonRows, toJsonArrays } from '../sqlite/rows.ts'
import type { Reader, StoreClient } from '../sqlite/store-client.ts'

type Articles = Pick<
  FeedStore,
  'saveArticles' | 'storedItems' | 'article' | 'itemsWantingText' | 'recordFailedTry'
>

/** The part of the feed that keeps the texts of items. */
export function articles(database: Database): Articles {
  return {
    saveArticles: (batch) => database.use(({ client }) => saveArticles(client, batch)),
    storedItems: (items) => database.use(({ client }) => storedItems(client, items)),
    article: (source, sourceId) => database.use(({ client }) => readArticle(client, source, sourceId)),
    itemsWantingText: (wish) => database.use(({ client }) => itemsWantingText(client, wish)),
    recordFailedTry: (failed) =>
      database.use(async ({ client }) => {
        await client.execute({ sql: UPSERT_TRY, args: tryArgs(failed) })
      }),
  }
}

/** Columns of a JSON row: 0 source, 1 source id, 2 text, 3 provenance, 4 fetched at. */
const JSON_ROWS = `
  SELECT value ->> 0 AS source, value ->> 1 AS source_id, value ->> 2 AS text, value ->> 3 AS provenance,
    value ->> 4 AS fetched_at
  FROM json_each(?)`

const VALUE_COLUMNS = ['text', 'provenance', 'fetched_at']

const COUNT_STORED = `
  SELECT count(*) AS stored,
    coalesce(sum(${VALUE_COLUMNS.map((column) => `old.${column} IS NOT new.${column}`).join(' OR ')}), 0) AS changed
  FROM (${JSON_ROWS}) AS new JOIN articles AS old USING (source, source_id)`

const UPSERT_ARTICLES = `
  INSERT INTO articles (source, source_id, ${VALUE_COLUMNS.join(', ')})
  ${JSON_ROWS} WHERE true
  ON CONFLICT (source, source_id) DO UPDATE SET
    ${VALUE_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}
  WHERE ${VALUE_COLUMNS.map((column) => `articles.${column} IS NOT excluded.${column}`).join(' OR ')}`

const FORGET_TRIES = `
  DELETE FROM article_tries
  WHERE (source, source_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`

async function saveArticles(client: StoreClient, batch: readonly Article[]): Promise<ImportCounts> {
  const folded = foldRows(
    batch.map(({ source, sourceId, text, provenance, fetchedAt }) => [
      JSON.stringify([source, sourceId]),
      JSON.stringify([source, sourceId, text, provenance, fetchedAt]),
    ]),
  )
  const lookups = toJsonArrays(folded.first.values()).map((json): InStatement => ({
    sql: COUNT_STORED,
    args: [json],
  }))
  const writes = toJsonArrays(folded.last.values()).flatMap((json): InStatement[] => [
    { sql: UPSERT_ARTICLES, args: [json] },
    { sql: FORGET_TRIES, args: [json] },
  ])
  const results = await client.batch([...lookups, ...writes], 'write')
  const found = results.slice(0, lookups.length).flatMap(({ rows }) => rows)
  const stored = found.reduce((sum, row) => sum + Number(row['stored']), 0)
  const changed = found.reduce((sum, row) => sum + Number(row['changed']), 0)
  return importCounts(folded, stored, changed)
}

const STORED = asJsonRows(
  'source, source_id',
  `SELECT e.source, e.source_id FROM json_each(?1) AS w
    CROSS JOIN events AS e ON e.source = w.value ->> 0 AND e.source_id = w.value ->> 1`,
)

async function storedItems(reader: Reader, items: readonly ItemRef[]): Promise<ItemRef[]> {
  const json = JSON.stringify(items.map(({ source, sourceId }) => [source, sourceId]))
  const rows = (await selectJsonRows(reader, STORED, [json], 'the feed')) as [string, string][]
  return rows.map(([source, sourceId]) => ({ source, sourceId }))
}

const ARTICLE = asJsonRows(
  'text, provenance, fetched_at',
  'SELECT text, provenance, fetched_at FROM articles WHERE source = ?1 AND source_id = ?2',
)

async function readArticle(reader: Reader, source: string, sourceId: string): Promise<Article | null> {
  const rows = await selectJsonRows(reader, ARTICLE, [source, sourceId], 'the article texts')
  const [row] = rows as [text: string, provenance: string, fetchedAt: number][]
  if (!row) return null
  const [text, provenance, fetchedAt] = row
  return { source, sourceId, text, provenance, fetchedAt }
}

/**
 * The days come first, on their index: `+` keeps the planner from walking all events of a source instead.
 */
const WANTED = asJsonRows(
  'source, source_id, url, tries',
  `WITH found AS (
    SELECT e.source AS source, e.source_id AS source_id, s.url AS url, coalesce(t.tries, 0) AS tries,
      row_number() OVER (PARTITION BY e.source ORDER BY s.points DESC, e.source_id) AS place
    FROM events e
      JOIN json_each(?1) w ON w.value ->> 0 = +e.source
      JOIN signals s ON s.source = e.source AND s.source_id = e.source_id AND s.day = e.last_day
      LEFT JOIN article_tries t ON t.source = e.source AND t.source_id = e.source_id
    WHERE e.last_day >= ?2 AND s.points >= w.value ->> 1
      AND (t.source IS NULL OR t.next_try_at <= ?3)
      AND NOT EXISTS (SELECT 1 FROM articles a WHERE a.source = e.source AND a.source_id = e.source_id)
  )
  SELECT source, source_id, CASE WHEN length(url) <= ${URL_MAX_LENGTH} THEN url END AS url, tries
  FROM found ORDER BY place, source LIMIT ?4`,
)

async function itemsWantingText(
  reader: Reader,
  { minPoints, seenSince, at, limit }: ArticleWish,
): Promise<WantedItem[]> {
  const args = [JSON.stringify(Object.entries(minPoints)), seenSince, at, limit]
  const rows = await selectJsonRows(reader, WANTED, args, 'the feed')
  return (rows as [string, string, string | null, number][]).map(([source, sourceId, url, tries]) => ({
    source,
    sourceId,
    url,
    tries,
  }))
}

const UPSERT_TRY = `
  INSERT INTO article_tries (source, source_id, tries, reason, tried_at, next_try_at) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (source, source_id) DO UPDATE SET
    tries = excluded.tries, reason = excluded.reason, tried_at = excluded.tried_at, next_try_at = excluded.next_try_at`

function tryArgs({
  source,
  sourceId,
  tries,
  reason,
  triedAt,
  nextTryAt,
}: FailedTry): (string | number | null)[] {
  return [source, sourceId, tries, reason, triedAt, nextTryAt]
}
