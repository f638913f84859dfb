import { saveKey, discussionUrl } from '../../domain/feed/source.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import type { FeedSearchRefusal, IndexedItem } from '../../domain/feed/search.ts'
import type { WordCounts } from '../../domain/feed/similarity.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { asJsonRows, selectJsonRows } from '../libsql/json-rows.ts'
import type { Reader } from '../libsql/store-client.ts'
import { dayOfId } from './search-state.ts'
import type { IndexSet, IndexState } from './search-state.ts'

const CELLS = 'id, source, source_id, title, url, page, first_day, last_day, published_at, points, comments'
const COLUMNS = CELLS.split(', ')
  .map((name) => `d.${name} AS ${name}`)
  .join(', ')

type Row = [
  id: number,
  source: string,
  sourceId: string,
  title: string,
  url: string | null,
  page: string | null,
  firstDay: Day,
  lastDay: Day,
  publishedAt: Instant | null,
  points: number | null,
  comments: number | null,
]

/** An item with its place in the index. */
export interface Stored {
  id: number
  page: string | null
  item: IndexedItem
}

/** Items by their ids; one that is not there is left out. */
export async function readItems(
  reader: Reader,
  set: IndexSet,
  ids: readonly number[],
): Promise<Map<number, Stored>> {
  if (ids.length === 0) return new Map()
  const query = `SELECT ${COLUMNS} FROM json_each(?) JOIN search_documents_${set} d ON d.id = value`
  const rows = await select(reader, query, [JSON.stringify(ids)])
  return new Map(rows.map((stored) => [stored.id, stored]))
}

/** Items of one page, those with the most points first. */
export async function readItemsOfPage(
  reader: Reader,
  set: IndexSet,
  page: string,
  limit: number,
): Promise<Stored[]> {
  const query = `SELECT ${COLUMNS} FROM search_documents_${set} d WHERE page = ? ORDER BY points DESC, id DESC LIMIT ?`
  return select(reader, query, [page, limit])
}

/** @throws Refusal `item_not_found` */
export async function readItemOfKey(reader: Reader, set: IndexSet, key: string): Promise<Stored> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const query = `SELECT ${COLUMNS} FROM search_documents_${set} d WHERE source = ? AND source_id = ?`
    const [found] = await select(reader, query, [source, sourceId])
    if (found) return found
  }
  throw itemNotFound(key)
}

export function itemNotFound(key: string): Refusal {
  return new Refusal<FeedSearchRefusal>(
    'item_not_found',
    `no item ${JSON.stringify(key.slice(0, 132))} is stored`,
  )
}

async function select(reader: Reader, query: string, args: (string | number)[]): Promise<Stored[]> {
  const rows = await selectJsonRows(reader, asJsonRows(CELLS, query), args, 'the search index')
  return (rows as Row[]).map(toStored)
}

function toStored([
  id,
  source,
  sourceId,
  title,
  url,
  page,
  firstDay,
  lastDay,
  at,
  points,
  comments,
]: Row): Stored {
  return {
    id,
    page,
    item: {
      key: saveKey(source, sourceId),
      source,
      sourceId,
      title,
      url,
      discussionUrl: discussionUrl(source, sourceId),
      day: dayOfId(id),
      publishedAt: at === null ? null : formatInstant(at),
      firstDay,
      lastDay,
      points,
      comments,
    },
  }
}

/** In how many titles each of some words stands. */
export async function readCounts(
  reader: Reader,
  { active, nextNumber }: IndexState,
  words: readonly string[],
): Promise<WordCounts> {
  const sql = asJsonRows(
    'term, doc',
    `SELECT term, doc FROM search_counts_${active} WHERE term IN (SELECT value FROM json_each(?))`,
  )
  const rows = await selectJsonRows(reader, sql, [JSON.stringify(words)], 'the search index')
  // Numbers are never given twice, and items never leave: the last number is how many there are.
  return { items: Math.max(1, nextNumber - 1), of: new Map(rows as [string, number][]) }
}
