import { createHash } from 'node:crypto'
import type { InStatement } from '@libsql/client'
import { canonicalUrl } from '../../domain/feed/canonical-url.ts'
import { indexedWords } from '../../domain/feed/search/tokenize.ts'
import type { ItemRef } from '../../domain/feed/source.ts'
import { DAY_MS, dayOf, startOfDay } from '../../domain/time.ts'
import type { Day } from '../../domain/time.ts'
import { columnsOf, selectObjects, toJsonArrays } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader } from '../sqlite/rows.ts'
import { upsert } from './import-rows.ts'
import { toIndexedItem } from './items.ts'
import type { ItemRow } from './items.ts'

/** One of the two sets of index tables. */
export type IndexSet = 'a' | 'b'

/**
 * Ids per day: the lower bits of an id hold the number of the item, the upper bits its day. Together they fit into
 * a double.
 */
const NUMBERS_PER_DAY = 2 ** 31

/** SQL expression for the number of an id's day. */
export const DAY_NUMBER_OF_ID = 'id >> 31'

/** Day 0, so that every day in a valid timestamp has a positive number. */
const DAY_ZERO = startOfDay('0000-01-01')

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

/** An event with the values of its latest signal and its text; events without a signal are omitted. */
interface IndexedEvent extends ItemRow {
  text: string | null
}

const EVENT_COLUMNS: ObjectColumns<IndexedEvent> = {
  ...columnsOf('e', ['source', 'sourceId', 'firstDay', 'lastDay']),
  ...columnsOf('s', ['title', 'url', 'publishedAt', 'points', 'comments']),
  text: `substr(a.text, 1, ${TEXT_MAX_LENGTH})`,
}

const FROM_EVENTS = `
  json_each(?) k
  JOIN events e ON e.source = k.value ->> 0 AND e.source_id = k.value ->> 1
  JOIN signals s ON s.source = e.source AND s.source_id = e.source_id AND s.day = e.last_day
  LEFT JOIN articles a ON a.source = e.source AND a.source_id = e.source_id`

/** Reads events by their keys, a JSON parameter. */
export function readIndexedEvents(reader: SqlReader, keys: string): Promise<IndexedEvent[]> {
  return selectObjects(reader, EVENT_COLUMNS, FROM_EVENTS, [keys], 'the feed')
}

/** A stored document of a set: its id and the digest of its words. */
interface StoredDocument {
  source: string
  sourceId: string
  id: number
  words: string
}

type StoredDocuments = ReadonlyMap<string, StoredDocument>

export async function readStoredDocuments(
  reader: SqlReader,
  set: IndexSet,
  keys: string,
): Promise<StoredDocuments> {
  const columns = columnsOf('d', ['source', 'sourceId', 'id', 'words'])
  const from = `json_each(?) k
    JOIN search_documents_${set} d ON d.source = k.value ->> 0 AND d.source_id = k.value ->> 1`
  const rows = await selectObjects<StoredDocument>(reader, columns, from, [keys], 'the search index')
  return new Map(rows.map((row) => [documentKey(row), row]))
}

function documentKey({ source, sourceId }: ItemRef): string {
  return `${source}\n${sourceId}`
}

const COLUMNS = 'source source_id title url page first_day last_day published_at points comments words'.split(
  ' ',
)

/** A document to store: its row and the indexed words. */
interface IndexDocument {
  id: number
  key: string
  row: unknown[]
  titleWords: string
  /** Words of title and text; null without a text. */
  textWords: string | null
  /** Digest of the words of title and text. */
  wordsDigest: string
}

/**
 * Converts events to documents, in the order of their ids.
 *
 * @param stored documents of the events in each set: an event keeps its number; a new one gets the next number
 */
export function toDocuments(
  events: readonly IndexedEvent[],
  stored: readonly StoredDocuments[],
  firstNumber: number,
): { documents: IndexDocument[]; nextNumber: number } {
  let nextNumber = firstNumber
  const documents = events.map((event) => {
    const previous = stored.map((each) => each.get(documentKey(event))).find((found) => found !== undefined)
    return toDocument(event, previous ? previous.id % NUMBERS_PER_DAY : nextNumber++)
  })
  return { documents: documents.sort((a, b) => a.id - b.id), nextNumber }
}

function toDocument(event: IndexedEvent, number: number): IndexDocument {
  const { source, sourceId, title, url, firstDay, lastDay, publishedAt, points, comments } = event
  const id = firstIdOf(toIndexedItem(event).day) + number
  const titleWords = indexedWords(title).join(' ')
  const text = indexedWords(event.text ?? '').join(' ')
  const wordsDigest = createHash('sha256').update(`${titleWords}\n${text}`).digest('base64url')
  const page = url === null ? null : canonicalUrl(url)
  return {
    id,
    key: documentKey(event),
    row: [
      id,
      source,
      sourceId,
      title,
      url,
      page,
      firstDay,
      lastDay,
      publishedAt,
      points,
      comments,
      wordsDigest,
    ],
    titleWords,
    textWords: text === '' ? null : `${titleWords} ${text}`,
    wordsDigest,
  }
}

/** Returns statements that store documents in a set, replacing earlier documents of the same events. */
export function writeDocuments(
  set: IndexSet,
  documents: readonly IndexDocument[],
  stored: StoredDocuments,
): InStatement[] {
  const changed = documents.filter(({ id, key, wordsDigest }) => {
    const previous = stored.get(key)
    return previous?.id !== id || previous.words !== wordsDigest
  })
  const replaced = changed.flatMap(({ key }) => stored.get(key)?.id ?? []).sort((a, b) => a - b)
  const tables = ['titles', 'texts', 'documents'].map((table) => `search_${table}_${set}`)
  const deletions = tables.map((table) => ({
    sql: `DELETE FROM ${table} WHERE rowid IN (SELECT value FROM json_each(?))`,
    args: [JSON.stringify(replaced)],
  }))
  const texts = changed.flatMap(({ id, textWords }) => (textWords === null ? [] : [[id, textWords]]))
  return [
    ...(replaced.length > 0 ? deletions : []),
    ...inserts(
      upsert(`search_documents_${set}`, ['id'], COLUMNS),
      documents.map(({ row }) => row),
    ),
    ...inserts(
      insertWords(`search_titles_${set}`),
      changed.map(({ id, titleWords }) => [id, titleWords]),
    ),
    ...inserts(insertWords(`search_texts_${set}`), texts),
  ]
}

function insertWords(table: string): string {
  return `INSERT INTO ${table} (rowid, words) SELECT value ->> 0, value ->> 1 FROM json_each(?)`
}

function inserts(sql: string, rows: readonly unknown[][]): InStatement[] {
  if (rows.length === 0) return []
  return toJsonArrays(rows.map((row) => JSON.stringify(row))).map((json) => ({ sql, args: [json] }))
}

/** Returns statements that delete all documents of a set. */
export function clearSet(set: IndexSet): string[] {
  return [
    `DELETE FROM search_documents_${set}`,
    ...['titles', 'texts'].map(
      (words) => `INSERT INTO search_${words}_${set} (search_${words}_${set}) VALUES ('delete-all')`,
    ),
  ]
}
