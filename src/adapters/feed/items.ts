import { URL_MAX_LENGTH } from '../../domain/feed/article.ts'
import type { Article, ArticleQuery, FailedAttempt, ItemWithoutText } from '../../domain/feed/article.ts'
import type { ItemDetails } from '../../domain/feed/live-source.ts'
import { TREND_MAX_DAYS, dayOfItem } from '../../domain/feed/search/search.ts'
import type {
  FeedSearchRefusal,
  IndexedItem,
  ItemTrend,
  StoredItem,
} from '../../domain/feed/search/search.ts'
import { TITLE_MAX_LENGTH, discussionUrl, itemsOfKey, saveKey } from '../../domain/feed/source.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { columnsOf, isTooLarge, selectObjects, upsert, upsertRow, writesOf } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader, StoreClient } from '../sqlite/rows.ts'

/** A row of a query: an item with the values of its latest signal. */
export interface ItemRow {
  source: string
  sourceId: string
  title: string
  url: string | null
  points: number | null
  comments: number | null
  publishedAt: Instant | null
  firstDay: Day
  lastDay: Day
}

export function toIndexedItem(row: ItemRow): IndexedItem {
  const { source, sourceId, title, url, firstDay, lastDay, points, comments } = row
  const publishedAt = row.publishedAt === null ? null : formatInstant(row.publishedAt)
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
  }
}

const DETAILED_COLUMNS: ObjectColumns<DetailedRow> = {
  ...columnsOf('s', ['source', 'sourceId', 'url', 'points', 'comments', 'publishedAt']),
  title: 'coalesce(v.title, s.title)',
  firstDay: 'e.first_day',
  lastDay: 's.day',
  ...columnsOf('d', ['author', 'description']),
  tags: "coalesce(d.tags, '[]')",
}

const FROM_ITEM = `
  signals s
  JOIN events e ON e.source = s.source AND e.source_id = s.source_id
  LEFT JOIN verified_titles v
    ON v.source = s.source AND v.source_id = s.source_id AND s.title_provenance IS NULL
      AND length(v.title) <= ${TITLE_MAX_LENGTH}
  LEFT JOIN item_details d ON d.source = s.source AND d.source_id = s.source_id
  WHERE s.source = ?1 AND s.source_id = ?2 ORDER BY s.day DESC LIMIT 1`

interface DetailedRow extends ItemRow {
  author: string | null
  /** JSON array of texts. */
  tags: string
  description: string | null
}

function parseTags(text: string): string[] {
  try {
    return JSON.parse(text) as string[]
  } catch (cause) {
    throw storageDamaged('the tags of an item are not JSON', cause)
  }
}

export async function readItem(reader: SqlReader, key: string): Promise<StoredItem | null> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const args = [source, sourceId]
    const [row] = await selectObjects(reader, DETAILED_COLUMNS, FROM_ITEM, args, 'the feed')
    if (!row) continue
    const { author, tags, description } = row
    return { ...toIndexedItem(row), author, tags: parseTags(tags), description }
  }
  return null
}

/** The number grows with every change of signals, the step with every change of the index, including texts. */
const STORED_REVISION = `
  SELECT (SELECT number FROM revision) AS number, (SELECT step FROM search_state) AS step`

export async function readRevision(reader: SqlReader): Promise<string> {
  const { rows } = await reader.execute(STORED_REVISION)
  const [row] = rows
  return `${Number(row?.['number'])}.${Number(row?.['step'])}`
}

/** Returns the keys of items as a JSON parameter, each as an array of source and source id. */
function toItemKeys(items: readonly ItemRef[]): string {
  return JSON.stringify(items.map(({ source, sourceId }) => [source, sourceId]))
}

/** Number of items per statement: a server accepts no parameter and returns no cell larger than 5 MiB. */
const BATCH_ITEMS = 1_000

/**
 * Runs a query whose parameter is made by {@link toItemKeys}, in as many statements as necessary, and at least
 * once.
 */
export async function selectForItems<T>(
  reader: SqlReader,
  columns: ObjectColumns<T>,
  from: string,
  items: readonly ItemRef[],
  label: string,
): Promise<T[]> {
  const found: T[] = []
  for (let [start, limit] = [0, BATCH_ITEMS]; start === 0 || start < items.length; start += limit) {
    const read = await retryWithFewerRows(limit, (fewer) =>
      selectObjects<T>(reader, columns, from, [toItemKeys(items.slice(start, start + fewer))], label),
    )
    found.push(...read.result)
    limit = read.limit
  }
  return found
}

/** Runs a step, and retries it with a quarter of the rows while a server's response is too large. */
export async function retryWithFewerRows<T>(
  limit: number,
  step: (limit: number) => Promise<T>,
): Promise<{ result: T; limit: number }> {
  try {
    return { result: await step(limit), limit }
  } catch (error) {
    if (limit === 1 || !isTooLarge(error)) throw error
    return retryWithFewerRows(Math.ceil(limit / 4), step)
  }
}

const FROM_STORED = `
  json_each(?1) AS w CROSS JOIN events AS e ON e.source = w.value ->> 0 AND e.source_id = w.value ->> 1`

export function storedItems(reader: SqlReader, items: readonly ItemRef[]): Promise<ItemRef[]> {
  const columns = columnsOf('e', ['source', 'sourceId'])
  return selectForItems<ItemRef>(reader, columns, FROM_STORED, items, 'the feed')
}

export async function readArticle(
  reader: SqlReader,
  source: string,
  sourceId: string,
): Promise<Article | null> {
  const columns = columnsOf('articles', ['source', 'sourceId', 'text', 'provenance', 'fetchedAt'])
  const from = 'articles WHERE source = ?1 AND source_id = ?2'
  const args = [source, sourceId]
  const [article] = await selectObjects<Article>(reader, columns, from, args, 'the article texts')
  return article ?? null
}

/** The `+` makes the planner use the index of days first, instead of scanning all events of a source. */
const FROM_WANTED = `
  (
    SELECT e.source AS source, e.source_id AS source_id, s.url AS url, coalesce(t.tries, 0) AS tries,
      row_number() OVER (PARTITION BY e.source ORDER BY s.points DESC, e.source_id) AS source_rank
    FROM events e
      JOIN json_each(?1) w ON w.value ->> 0 = +e.source
      JOIN signals s ON s.source = e.source AND s.source_id = e.source_id AND s.day = e.last_day
      LEFT JOIN article_tries t ON t.source = e.source AND t.source_id = e.source_id
    WHERE e.last_day >= ?2 AND s.points >= w.value ->> 1
      AND (t.source IS NULL OR t.next_try_at <= ?3)
      AND NOT EXISTS (SELECT 1 FROM articles a WHERE a.source = e.source AND a.source_id = e.source_id)
  ) AS found ORDER BY source_rank, source LIMIT ?4`

const WANTED_COLUMNS: ObjectColumns<ItemWithoutText> = {
  ...columnsOf('found', ['source', 'sourceId', 'tries']),
  url: `CASE WHEN length(url) <= ${URL_MAX_LENGTH} THEN url END`,
}

export function itemsNeedingText(
  reader: SqlReader,
  { minPoints, seenSince, at, limit }: ArticleQuery,
): Promise<ItemWithoutText[]> {
  const args = [JSON.stringify(Object.entries(minPoints)), seenSince, at, limit]
  return selectObjects(reader, WANTED_COLUMNS, FROM_WANTED, args, 'the feed')
}

export const ITEM_KEYS = ['source', 'sourceId'] as const

export async function recordFailedAttempt(client: StoreClient, failed: FailedAttempt): Promise<void> {
  const { source, sourceId, tries, reason, triedAt, nextTryAt } = failed
  const attempt = { source, sourceId, tries, reason, triedAt, nextTryAt }
  await client.execute(upsertRow('article_tries', ITEM_KEYS, attempt))
}

const UPSERT_DETAILS = upsert(
  'item_details',
  ITEM_KEYS,
  ['author', 'tags', 'description', 'collectedAt'],
  'excluded.collected_at >= collected_at',
)

export async function saveDetails(client: StoreClient, details: readonly ItemDetails[]): Promise<void> {
  const rows = details.map((item) => {
    const { source, sourceId, author, tags, description, collectedAt } = item
    return [source, sourceId, author, JSON.stringify(tags), description, collectedAt]
  })
  const statements = writesOf(UPSERT_DETAILS, rows)
  if (statements.length > 0) await client.batch(statements)
}

export async function readDetails(
  reader: SqlReader,
  items: readonly ItemRef[],
): Promise<Map<string, ItemDetails>> {
  const from = 'json_each(?) JOIN item_details ON source = value ->> 0 AND source_id = value ->> 1'
  const names = ['source', 'sourceId', 'author', 'tags', 'description', 'collectedAt'] as const
  const columns = columnsOf('item_details', names)
  type Row = Omit<ItemDetails, 'tags'> & { tags: string }
  const rows = await selectForItems<Row>(reader, columns, from, items, 'the details of items')
  return new Map(
    rows.map((row) => [saveKey(row.source, row.sourceId), { ...row, tags: parseTags(row.tags) }]),
  )
}

interface ItemDay extends Omit<ItemTrend['days'][number], 'rank'> {
  title: string
  url: string | null
  publishedAt: Instant | null
  better: number
}

/** Ranks the item among the day's signals of its source by points, using their index. */
const SAME_DAY = 'SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day'
const ITEM_DAY_COLUMNS: ObjectColumns<ItemDay> = {
  ...columnsOf('s', ['day', 'title', 'url', 'points', 'comments', 'publishedAt']),
  better: `(${SAME_DAY} AND o.points > s.points)`,
  of: `(${SAME_DAY} AND o.points IS NOT NULL)`,
}

const FROM_ITEM_DAYS = `
  signals s WHERE s.source = ? AND s.source_id = ? ORDER BY s.day DESC LIMIT ${TREND_MAX_DAYS}`

export async function itemTrend(reader: SqlReader, key: string): Promise<ItemTrend> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const args = [source, sourceId]
    const days = await selectObjects(reader, ITEM_DAY_COLUMNS, FROM_ITEM_DAYS, args, 'the feed')
    const [latest] = days
    if (!latest) continue
    const trend = days.toReversed().map(({ day, points, comments, better, of }) => ({
      day,
      points,
      comments,
      rank: points === null ? null : better + 1,
      of,
    }))
    const { title, url, publishedAt } = latest
    return {
      key,
      title,
      url,
      publishedAt: publishedAt === null ? null : formatInstant(publishedAt),
      days: trend,
    }
  }
  throw itemNotFound(key)
}

export function itemNotFound(key: string): Refusal<FeedSearchRefusal> {
  return new Refusal('item_not_found', `no item ${JSON.stringify(key.slice(0, 132))} is stored`)
}
