import { canonicalUrl } from '../../domain/feed/canonical-url.ts'
import { indexedWords } from '../../domain/feed/search/tokenize.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import { DAY_MS, dayOf, startOfDay } from '../../domain/time.ts'
import type { Day } from '../../domain/time.ts'
import type { FeedSearch, IndexWatch } from '../../domain/ports.ts'
import { storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import { columnsOf, jsonRows, listColumns, selectObjects, toJsonArrays, writesOf } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader, SqlTransaction, StoreClient } from '../sqlite/rows.ts'
import { retryWithFewerRows, selectForItems, toIndexedItem } from './items.ts'
import type { ItemRow } from './items.ts'
import type { Database } from '../sqlite/database.ts'

/** Documents of the search index: one per event, written in the transaction that writes the event. */

/**
 * Ids per day: the lower bits of an id hold the number of the item, the upper bits its day. Together they fit into
 * a double.
 */
const NUMBERS_PER_DAY = 2 ** 31

/** SQL expression for the number of an id's day. */
export const DAY_NUMBER_OF_ID = 'id >> 31'

/** Day 0, so that every day in a valid timestamp has a positive number. */
const DAY_ZERO = startOfDay('0000-01-01')

/** SQL expression for the start of an id's day. */
export const START_OF_ID = `(${DAY_NUMBER_OF_ID}) * ${DAY_MS} + ${DAY_ZERO}`

/** Returns an id below those of all items of the day and above those of all earlier days. */
export function firstIdOf(day: Day): number {
  return ((startOfDay(day) - DAY_ZERO) / DAY_MS) * NUMBERS_PER_DAY
}

/** Returns the greatest possible id of an item of the day. */
export function lastIdOf(day: Day): number {
  return firstIdOf(day) + NUMBERS_PER_DAY - 1
}

export function dayOfNumber(dayNumber: number): Day {
  return dayOf(dayNumber * DAY_MS + DAY_ZERO)
}

/** Number of characters of a text that are indexed. */
const TEXT_MAX_LENGTH = 100_000

/** Approximate bytes of the texts that are read at once. */
const TEXTS_BYTES = 2_000_000

/** An event to index, with the values of its latest signal. */
interface ChangedEvent extends ItemRow {
  /** Id of its document; null without one. */
  id: number | null
  textBytes: number
}

const CHANGED_COLUMNS: ObjectColumns<ChangedEvent> = {
  ...columnsOf('e', ['source', 'sourceId', 'firstDay', 'lastDay']),
  ...columnsOf('s', ['title', 'url', 'publishedAt', 'points', 'comments']),
  id: 'd.id',
  textBytes: 'coalesce(octet_length(a.text), 0)',
}

const WITH_DOCUMENTS = `
  JOIN signals s ON s.source = e.source AND s.source_id = e.source_id AND s.day = e.last_day
  LEFT JOIN search_documents d ON d.source = e.source AND d.source_id = e.source_id
  LEFT JOIN articles a ON a.source = e.source AND a.source_id = e.source_id`

const BY_KEYS =
  'json_each(?) k CROSS JOIN events e ON e.source = k.value ->> 0 AND e.source_id = k.value ->> 1'

/** An id depends on the time of publication, or on the first day. */
const NEEDS_DOCUMENT = `
  d.id IS NULL OR d.title <> s.title OR d.url IS NOT s.url OR d.published_at IS NOT s.published_at
  OR d.first_day <> e.first_day`

/** Updates documents whose words stay. */
const UPDATE_DOCUMENTS = `
  UPDATE search_documents AS d SET last_day = e.last_day, points = s.points, comments = s.comments
  FROM ${BY_KEYS} JOIN signals s ON s.source = e.source AND s.source_id = e.source_id AND s.day = e.last_day
  WHERE d.source = e.source AND d.source_id = e.source_id
    AND (d.last_day <> e.last_day OR d.points IS NOT s.points OR d.comments IS NOT s.comments)`

/**
 * Indexes the current values of events, in the transaction that has written them.
 *
 * @param hasTexts true if their texts have changed; else an event whose title, URL and day stay keeps its words
 */
export async function indexEvents(
  tx: SqlTransaction,
  events: readonly ItemRef[],
  hasTexts: boolean,
): Promise<void> {
  if (events.length === 0) return
  const from = `${BY_KEYS} ${WITH_DOCUMENTS} WHERE ${hasTexts ? 'true' : NEEDS_DOCUMENT}`
  const changed = await selectForItems(tx, CHANGED_COLUMNS, from, events, 'the feed')
  await writeDocuments(tx, changed)
  const toKey = ({ source, sourceId }: ItemRef): string => JSON.stringify([source, sourceId])
  const written = new Set(changed.map(toKey))
  const keys = events.map(toKey).filter((key) => !written.has(key))
  if (hasTexts || keys.length === 0) return
  await tx.batch(toJsonArrays(keys).flatMap((json) => [{ sql: UPDATE_DOCUMENTS, args: [json] }, COUNT_STEP]))
}

/** Increments the step of the index if the statement just before changed a document. */
const COUNT_STEP = 'UPDATE search_state SET step = step + 1 WHERE changes() > 0'

/**
 * Indexes the next events without a document, in the order of their keys.
 *
 * @returns the last of them and their number; null if there is none after `after`
 */
async function indexMissing(
  tx: SqlTransaction,
  after: ItemRef,
  limit: number,
): Promise<{ last: ItemRef; indexed: number } | null> {
  const from = `events e ${WITH_DOCUMENTS} WHERE (e.source, e.source_id) > (?, ?) AND d.id IS NULL
    ORDER BY e.source, e.source_id LIMIT ?`
  const args = [after.source, after.sourceId, limit]
  const missing = await selectObjects(tx, CHANGED_COLUMNS, from, args, 'the feed')
  const last = missing.at(-1)
  if (!last) return null
  await writeDocuments(tx, missing)
  return { last, indexed: missing.length }
}

const COLUMNS = [
  'source',
  'sourceId',
  'title',
  'url',
  'page',
  'firstDay',
  'lastDay',
  'publishedAt',
  'points',
  'comments',
] as const
const INSERT_DOCUMENTS = `
  INSERT INTO search_documents (id, ${listColumns(COLUMNS)}) ${jsonRows(['id', ...COLUMNS])}`

/** Writes documents of events in the order of their ids. An event keeps its number; a new one gets the next number. */
async function writeDocuments(tx: SqlTransaction, events: readonly ChangedEvent[]): Promise<void> {
  if (events.length === 0) return
  const { rows } = await tx.execute('SELECT next_number FROM search_state')
  let nextNumber = Number(rows[0]?.['next_number'])
  const documents = events.map((event) => {
    const number = event.id === null ? nextNumber++ : event.id % NUMBERS_PER_DAY
    const page = event.url === null ? null : canonicalUrl(event.url)
    const titleWords = indexedWords(event.title).join(' ')
    return {
      ...event,
      page,
      titleWords,
      replaced: event.id,
      id: firstIdOf(toIndexedItem(event).day) + number,
    }
  })
  documents.sort((a, b) => a.id - b.id)
  const replaced = JSON.stringify(documents.flatMap((document) => document.replaced ?? []))
  const tables = replaced === '[]' ? [] : ['search_titles', 'search_texts', 'search_documents']
  await tx.batch([
    ...tables.map((table) => ({
      sql: `DELETE FROM ${table} WHERE rowid IN (SELECT value FROM json_each(?))`,
      args: [replaced],
    })),
    ...writesOf(
      INSERT_DOCUMENTS,
      documents.map((document) => [document.id, ...COLUMNS.map((name) => document[name])]),
    ),
    ...writesOf(
      insertWords('search_titles'),
      documents.map(({ id, titleWords }) => [id, titleWords]),
    ),
    { sql: 'UPDATE search_state SET step = step + 1, next_number = ?', args: [nextNumber] },
  ])
  await writeTexts(
    tx,
    documents.filter(({ textBytes }) => textBytes > 0),
  )
}

interface TitleOfText extends ItemRef {
  id: number
  titleWords: string
  textBytes: number
}

/** Indexes the texts of documents, with the words of their titles. */
async function writeTexts(tx: SqlTransaction, documents: readonly TitleOfText[]): Promise<void> {
  for (let start = 0, end = 0; start < documents.length; start = end) {
    let bytes = 0
    while (end < documents.length && (end === start || bytes < TEXTS_BYTES))
      bytes += documents[end++]?.textBytes ?? 0
    const part = documents.slice(start, end)
    const keys = JSON.stringify(part.map(({ source, sourceId }, at) => [source, sourceId, at]))
    const texts = await selectObjects<{ at: number; text: string }>(
      tx,
      TEXT_COLUMNS,
      FROM_TEXTS,
      [keys],
      'the texts',
    )
    const rows = texts.flatMap(({ at, text }) => {
      const { id, titleWords } = part[at] ?? {}
      const words = indexedWords(text).join(' ')
      return words === '' ? [] : [[id, `${titleWords} ${words}`]]
    })
    const statements = writesOf(insertWords('search_texts'), rows)
    if (statements.length > 0) await tx.batch(statements)
  }
}

const TEXT_COLUMNS = { at: 'k.value ->> 2', text: `substr(a.text, 1, ${TEXT_MAX_LENGTH})` }
const FROM_TEXTS = `
  json_each(?) k CROSS JOIN articles a ON a.source = k.value ->> 0 AND a.source_id = k.value ->> 1 ORDER BY k.key`

function insertWords(table: string): string {
  return `INSERT INTO ${table} (rowid, words) ${jsonRows(['rowid', 'words'])}`
}

/** The search index on libSQL as a whole (docs/decisions/0019-search-index.md); imports write its documents. */
export function searchIndex(database: Database): Omit<FeedSearch, 'by'> {
  return {
    repair: async (watch) => ((await hasCurrentIndex(database)) ? 0 : rebuild(database, watch)),
    rebuild: (watch) => rebuild(database, watch),
  }
}

/** Version of the rules that split words and identify pages; increment it with every change of them. */
const INDEX_FORMAT = 12

interface IndexState {
  format: number
  /** 0 before and during a rebuild. */
  complete: number
  nextNumber: number
}

const STATE_COLUMNS: ObjectColumns<IndexState> = columnsOf('search_state', [
  'format',
  'complete',
  'nextNumber',
])

async function readState(reader: SqlReader): Promise<IndexState> {
  const label = 'the state of the search index'
  const [state] = await selectObjects(reader, STATE_COLUMNS, 'search_state', [], label)
  if (!state) throw storageDamaged(`${label} is missing`)
  return state
}

export async function hasCurrentIndex(reader: SqlReader): Promise<boolean> {
  return isCurrent(await readState(reader))
}

function isCurrent({ format, complete }: IndexState): boolean {
  return format === INDEX_FORMAT && complete === 1
}

/**
 * Reads the number of indexed items: numbers are never reused and items never deleted.
 *
 * @throws Refusal `storage_unavailable` if the index is incomplete, or its words would not match
 */
export async function readItemCount(reader: SqlReader): Promise<number> {
  const state = await readState(reader)
  if (!isCurrent(state)) {
    throw storageUnavailable('the search index is being rebuilt, or has to be: run dash reindex')
  }
  return state.nextNumber - 1
}

const STEP_EVENTS = 4_000

const FIRST = { source: '', sourceId: '' }

/**
 * Indexes events without a document step by step. A rebuild that was interrupted is continued, and one of another process
 * shared. The index is complete when a whole pass has found nothing.
 */
async function rebuild(client: StoreClient, { onProgress, signal }: IndexWatch): Promise<number> {
  await client.transact(beginRebuild)
  let total = 0
  for (let after = FIRST; ;) {
    signal.throwIfAborted()
    const step = (limit: number): ReturnType<typeof indexMissing> =>
      client.transact(async (tx) => {
        const found = await indexMissing(tx, after, limit)
        if (!found && after === FIRST) await tx.execute(COMPLETE)
        return found
      })
    const { result } = await retryWithFewerRows(STEP_EVENTS, step)
    if (!result && after === FIRST) return total
    after = result?.last ?? FIRST
    total += result?.indexed ?? 0
    onProgress(total)
    // The file driver is synchronous; let the event loop handle signals.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const COMPLETE = 'UPDATE search_state SET step = step + 1, complete = 1'

/** Deletes all documents, unless a rebuild by the same rules has not ended. */
async function beginRebuild(tx: SqlTransaction): Promise<void> {
  const { format, complete } = await readState(tx)
  if (format === INDEX_FORMAT && complete === 0) return
  await tx.batch([
    {
      sql: 'UPDATE search_state SET step = step + 1, format = ?, complete = 0, next_number = 1',
      args: [INDEX_FORMAT],
    },
    'DELETE FROM search_documents',
    "INSERT INTO search_titles (search_titles) VALUES ('delete-all')",
    "INSERT INTO search_texts (search_texts) VALUES ('delete-all')",
  ])
}
