import { dayOfItem } from '../../domain/feed/search.ts'
import type { StoredItem } from '../../domain/feed/search.ts'
import { TITLE_MAX_LENGTH, discussionUrl, itemsOfKey, saveKey } from '../../domain/feed/source.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import type { FeedStore } from '../../domain/ports.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import type { Database } from '../sqlite/database.ts'
import { asJsonRows, selectJsonRows } from '../sqlite/rows.ts'
import type { Reader } from '../sqlite/store-client.ts'

/** The part of the feed that reads single items. */
export function items(database: Database): Pick<FeedStore, 'item' | 'revision'> {
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
