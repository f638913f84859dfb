import type { InStatement } from '@libsql/client'
import { URL_MAX_LENGTH } from '../../domain/feed/article.ts'
import type { Article, ArticleWish, FailedTry, WantedItem } from '../../domain/feed/article.ts'
import { dayOfItem } from '../../domain/feed/search.ts'
import type { StoredItem } from '../../domain/feed/search.ts'
import type { ImportCounts } from '../../domain/feed/signal.ts'
import { TITLE_MAX_LENGTH, discussionUrl, itemsOfKey, saveKey } from '../../domain/feed/source.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import type { FeedStore } from '../../domain/ports.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { Database } from '../sqlite/database.ts'
import { asJsonRows, foldRows, importCounts, selectJsonRows, toJsonArrays } from '../sqlite/rows.ts'
import type { Reader, StoreClient } from '../sqlite/rows.ts'

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

/** The part of the feed that reads single items. */
export function singleItems(database: Database): Pick<FeedStore, 'item' | 'revision'> {
  return {
    item: (key) => database.use(({ client }) => readItem(client, key)),
    revision: () => database.use(({ client }) => readRevision(client)),
  }
}

const ITEM = asJsonRows(
  'title, url, points, comments, published_at, first_day, last_day, author, json(tags), description',
  `SELECT coalesce(v.title, s.title) AS title, s.url AS url, s.points AS points, s.comments AS comments,
    s.published_at AS published_at, e.first_day AS first_day, s.day AS last_day,
    d.author AS author, d.tags AS tags, d.description AS description
  FROM signals s
  JOIN events e ON e.source = s.source AND e.source_id = s.source_id
  LEFT JOIN verified_titles v
    ON v.source = s.source AND v.source_id = s.source_id AND s.title_provenance IS NULL
      AND length(v.title) <= ${TITLE_MAX_LENGTH}
  LEFT JOIN item_details d ON d.source = s.source AND d.source_id = s.source_id
  WHERE s.source = ?1 AND s.source_id = ?2 ORDER BY s.day DESC LIMIT 1`,
)

type ItemRow = [
  title: string,
  url: string | null,
  points: number | null,
  comments: number | null,
  publishedAt: Instant | null,
  firstDay: Day,
  lastDay: Day,
  author: string | null,
  tags: string[] | null,
  description: string | null,
]

async function readItem(reader: Reader, key: string): Promise<StoredItem | null> {
  for (const ref of itemsOfKey(key)) {
    const rows = await selectJsonRows(reader, ITEM, [ref.source, ref.sourceId], 'the feed')
    const [row] = rows as ItemRow[]
    if (row) return toItem(ref, row)
  }
  return null
}

function toItem({ source, sourceId }: ItemRef, row: ItemRow): StoredItem {
  const [title, url, points, comments, at, firstDay, lastDay, author, tags, description] = row
  const publishedAt = at === null ? null : formatInstant(at)
  return {
    key: saveKey(source, sourceId),
    source,
    sourceId,
    title,
    url,
    discussionUrl: discussionUrl(source, sourceId),
    day: dayOfItem(publishedAt, firstDay),
    publishedAt,
    firstDay,
    lastDay,
    points,
    comments,
    author,
    tags: tags ?? [],
    description,
  }
}

/** The number grows with every change of signals, the step with every change of the index, texts included. */
const STORED_REVISION = `
  SELECT (SELECT number FROM revision) AS number, (SELECT step FROM search_state) AS step,
    EXISTS (SELECT 1 FROM search_pending) AS pending`

async function readRevision(reader: Reader): Promise<string | null> {
  const { rows } = await reader.execute(STORED_REVISION)
  const [row] = rows
  return row && Number(row['pending']) === 0 ? `${Number(row['number'])}.${Number(row['step'])}` : null
}
