import { parseSearchText } from '../../domain/feed/search-words.ts'
import type { Unit, WordCounts } from '../../domain/feed/search-words.ts'
import { TREND_MAX_DAYS } from '../../domain/feed/search.ts'
import type {
  FeedSearchRefusal,
  IndexedItem,
  ItemTrend,
  TermTrend,
  TermTrendQuestion,
} from '../../domain/feed/search.ts'
import { discussionUrl, itemsOfKey, saveKey } from '../../domain/feed/source.ts'
import { Refusal, storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import { DAY_MS, dayOf, formatInstant, startOfDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { asJsonRows, selectJsonRows } from '../sqlite/rows.ts'
import type { Reader } from '../sqlite/rows.ts'

/** One of the two sets of index tables. */
export type IndexSet = 'a' | 'b'

/** The rules by which words are cut and pages told apart; grows with every change of them. */
export const INDEX_FORMAT = 1

/** Changes with every write to the index. */
export const INDEX_STEP = 'SELECT step FROM search_state'

const STATE = `
  SELECT step, active, format, next_number, build, CAST(json_array(after_source, after_source_id) AS BLOB) AS after
  FROM search_state`

export interface IndexState {
  step: number
  active: IndexSet
  format: number
  nextNumber: number
  /** The rebuild under way, and the event it took in last. */
  build: number | null
  after: [source: string, sourceId: string]
}

export async function readState(reader: Reader): Promise<IndexState> {
  const { rows } = await reader.execute(STATE)
  const row = rows[0]
  const after = row?.['after']
  if (!row || !(after instanceof ArrayBuffer))
    throw storageDamaged('the state of the search index is not there')
  return {
    step: Number(row['step']),
    active: row['active'] === 'b' ? 'b' : 'a',
    format: Number(row['format']),
    nextNumber: Number(row['next_number']),
    build: row['build'] === null ? null : Number(row['build']),
    after: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(after)) as [string, string],
  }
}

/**
 * The set that answers.
 *
 * @throws Refusal `storage_unavailable` when it was made by other rules: its words are not those asked for
 */
export async function readAnsweringState(reader: Reader): Promise<IndexState> {
  const state = await readState(reader)
  if (state.format !== INDEX_FORMAT) {
    throw storageUnavailable('the search index was made by another release: run dash reindex')
  }
  return state
}

/** Numbers of items take the lower bits of an id, its day the upper: together they fit a double. */
const NUMBERS = 2 ** 31

/** Days are counted from here, so that every year the product can write is positive. */
const DAY_ZERO = startOfDay('0000-01-01')

/** The id of an item: ids are in order of days. */
export function documentId(day: Day, number: number): number {
  return firstIdOf(day) + number
}

export function numberOf(id: number): number {
  return id % NUMBERS
}

/** Smaller than the id of every item of the day, and greater than that of any before. */
function firstIdOf(day: Day): number {
  return ((startOfDay(day) - DAY_ZERO) / DAY_MS) * NUMBERS
}

/** The greatest id an item of the day can have. */
function lastIdOf(day: Day): number {
  return firstIdOf(day) + NUMBERS - 1
}

function dayOfId(id: number): Day {
  return dayOfNumber(Math.floor(id / NUMBERS))
}

/** The number of an id's day, as an expression of SQL. */
const DAY_NUMBER_OF_ROWID = 'rowid >> 31'

function dayOfNumber(dayNumber: number): Day {
  return dayOf(dayNumber * DAY_MS + DAY_ZERO)
}

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

function itemNotFound(key: string): Refusal {
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

/** Which items a question is about. */
export interface Scope {
  sources: readonly string[]
  from: Day | null
  to: Day | null
}

export const EVERYTHING: Scope = { sources: [], from: null, to: null }

/** An item found, with its BM25: greater is better. */
export interface Found {
  id: number
  score: number
}

/** Words as FTS5 takes them: each one quoted, so that nothing in them is syntax. */
export function matching(units: readonly Unit[], operator: 'AND' | 'OR'): string {
  return units.map(phraseOf).join(` ${operator} `)
}

function phraseOf({ words, prefix }: Unit): string {
  return `"${words.join(' ').replaceAll('"', '""')}"${prefix ? ' *' : ''}`
}

/** The best items of one table of words of a set by BM25, equal ones by age, the newest first. */
export async function bestOf(
  reader: Reader,
  set: IndexSet,
  words: 'titles' | 'texts',
  expression: string,
  { sources, from, to }: Scope,
  limit: number,
): Promise<Found[]> {
  const table = `search_${words}_${set}`
  const ofSources = `AND (SELECT source FROM search_documents_${set} d WHERE d.id = t.rowid) IN (SELECT value FROM json_each(?4))`
  const sql = asJsonRows(
    'id, score',
    `SELECT t.rowid AS id, -bm25(${table}) AS score FROM ${table} t
    WHERE ${table} MATCH ?1 AND t.rowid BETWEEN ?2 AND ?3 ${sources.length > 0 ? ofSources : ''}
    ORDER BY score DESC, id DESC LIMIT ${limit}`,
  )
  const args = [expression, from === null ? 0 : firstIdOf(from), to === null ? LAST_ID : lastIdOf(to)]
  const all = sources.length > 0 ? [...args, JSON.stringify(sources)] : args
  const rows = await selectJsonRows(reader, sql, all, 'the search index')
  return (rows as [number, number][]).map(([id, score]) => ({ id, score }))
}

const LAST_ID = Number.MAX_SAFE_INTEGER

/** Places among the day's signals of the source, by points; found on their index. */
const ITEM_DAYS = asJsonRows(
  'day, title, points, comments, better, of',
  `SELECT s.day AS day, s.title AS title, s.points AS points, s.comments AS comments,
    (SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day AND o.points > s.points) AS better,
    (SELECT count(*) FROM signals o WHERE o.source = s.source AND o.day = s.day AND o.points IS NOT NULL) AS of
  FROM signals s WHERE s.source = ? AND s.source_id = ? ORDER BY s.day DESC LIMIT ${TREND_MAX_DAYS}`,
)

type ItemDay = [
  day: Day,
  title: string,
  points: number | null,
  comments: number | null,
  better: number,
  of: number,
]

/** Points and ranks of an item by day (docs/search.md), read from the signals themselves. */
export async function answerItemTrend(reader: Reader, key: string): Promise<ItemTrend> {
  for (const { source, sourceId } of itemsOfKey(key)) {
    const rows = (await selectJsonRows(reader, ITEM_DAYS, [source, sourceId], 'the feed')) as ItemDay[]
    const [latest] = rows
    if (!latest) continue
    const days = rows.toReversed().map(([day, , points, comments, better, of]) => ({
      day,
      points,
      comments,
      rank: points === null ? null : better + 1,
      of,
    }))
    return { key, title: latest[1], days }
  }
  throw itemNotFound(key)
}

/** Items that mention a term, by their day (docs/search.md). */
export async function answerTermTrend(
  reader: Reader,
  { term, from, to }: TermTrendQuestion,
): Promise<TermTrend> {
  const units = parseSearchText(term)
  if (units.length === 0) return { mentions: 0, days: [] }
  const { active } = await readAnsweringState(reader)
  const titles = `search_titles_${active}`
  const texts = `search_texts_${active}`
  const sql = asJsonRows(
    'day, mentions',
    `SELECT day, sum(n) AS mentions FROM (
      SELECT ${DAY_NUMBER_OF_ROWID} AS day, count(*) AS n FROM ${titles}
      WHERE ${titles} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 GROUP BY 1
      UNION ALL
      SELECT ${DAY_NUMBER_OF_ROWID} AS day, count(*) AS n FROM ${texts}
      WHERE ${texts} MATCH ?1 AND rowid BETWEEN ?2 AND ?3
        AND rowid NOT IN (SELECT rowid FROM ${titles} WHERE ${titles} MATCH ?1)
      GROUP BY 1
    ) GROUP BY day ORDER BY day DESC LIMIT ${TREND_MAX_DAYS}`,
  )
  const ids = [from === null ? 0 : firstIdOf(from), to === null ? Number.MAX_SAFE_INTEGER : lastIdOf(to)]
  const rows = await selectJsonRows(reader, sql, [matching(units, 'AND'), ...ids], 'the search index')
  const days = (rows as [number, number][])
    .map(([day, mentions]) => ({ day: dayOfNumber(day), mentions }))
    .toReversed()
  return { mentions: days.reduce((sum, { mentions }) => sum + mentions, 0), days }
}
