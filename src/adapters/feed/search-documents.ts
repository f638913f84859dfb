import { createHash } from 'node:crypto'
import type { InStatement } from '@libsql/client'
import { canonicalUrl, wordsOf } from '../../domain/feed/search-words.ts'
import { dayOf } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { asJsonRows, selectJsonRows, toJsonArrays } from '../sqlite/rows.ts'
import type { Reader } from '../sqlite/rows.ts'
import { documentId, numberOf } from './search-rows.ts'
import type { IndexSet } from './search-rows.ts'

/** Longest beginning of a text that is indexed, in characters. */
const TEXT_MAX_LENGTH = 100_000

export type EventKey = readonly [source: string, sourceId: string]

/** An event as the index takes it in. */
interface IndexedEvent {
  source: string
  sourceId: string
  title: string
  url: string | null
  firstDay: Day
  lastDay: Day
  publishedAt: Instant | null
  points: number | null
  comments: number | null
  text: string | null
}

type EventRow = [
  source: string,
  sourceId: string,
  title: string,
  url: string | null,
  firstDay: Day,
  lastDay: Day,
  publishedAt: Instant | null,
  points: number | null,
  comments: number | null,
  text: string | null,
]

const EVENTS = asJsonRows(
  'source, source_id, title, url, first_day, last_day, published_at, points, comments, text',
  `SELECT e.source AS source, e.source_id AS source_id, s.title AS title, s.url AS url, e.first_day AS first_day,
    e.last_day AS last_day, s.published_at AS published_at, s.points AS points, s.comments AS comments,
    substr(a.text, 1, ${TEXT_MAX_LENGTH}) AS text
  FROM json_each(?) k
  JOIN events e ON e.source = k.value ->> 0 AND e.source_id = k.value ->> 1
  JOIN signals s ON s.source = e.source AND s.source_id = e.source_id AND s.day = e.last_day
  LEFT JOIN articles a ON a.source = e.source AND a.source_id = e.source_id`,
)

/** Events at the values of their latest signal, with their text. One that has no signal is left out. */
export async function readEvents(reader: Reader, keys: readonly EventKey[]): Promise<IndexedEvent[]> {
  const rows = (await selectJsonRows(reader, EVENTS, [JSON.stringify(keys)], 'the feed')) as EventRow[]
  return rows.map(
    ([source, sourceId, title, url, firstDay, lastDay, publishedAt, points, comments, text]) => ({
      source,
      sourceId,
      title,
      url,
      firstDay,
      lastDay,
      publishedAt,
      points,
      comments,
      text,
    }),
  )
}

/** What a set holds of an event: its place and the digest of its words. */
export type Existing = ReadonlyMap<string, { id: number; words: string }>

/** What a set holds of some events. */
export async function readExisting(
  reader: Reader,
  set: IndexSet,
  keys: readonly EventKey[],
): Promise<Existing> {
  const sql = asJsonRows(
    'source, source_id, id, words',
    `SELECT d.source AS source, d.source_id AS source_id, d.id AS id, d.words AS words
    FROM json_each(?) k JOIN search_documents_${set} d ON d.source = k.value ->> 0 AND d.source_id = k.value ->> 1`,
  )
  const rows = await selectJsonRows(reader, sql, [JSON.stringify(keys)], 'the search index')
  return new Map(
    (rows as [string, string, number, string][]).map(([source, sourceId, id, words]) => [
      nameOf(source, sourceId),
      { id, words },
    ]),
  )
}

/** A row of a set, and the words it is found by. */
export interface IndexDocument {
  id: number
  event: IndexedEvent
  titleWords: string
  /** Title and text; null when there is no text. */
  textWords: string | null
  /** Digest of both. */
  words: string
}

/**
 * Events as rows of the index, in order of their ids.
 *
 * @param known the numbers events have already, by set; an event without one gets the next
 */
export function documentsOf(
  events: readonly IndexedEvent[],
  known: readonly Existing[],
  firstNumber: number,
): { documents: IndexDocument[]; nextNumber: number } {
  let nextNumber = firstNumber
  const documents = events.map((event): IndexDocument => {
    const name = nameOf(event.source, event.sourceId)
    const before = known.map((existing) => existing.get(name)).find((found) => found !== undefined)
    const number = before ? numberOf(before.id) : nextNumber++
    const day = event.publishedAt === null ? event.firstDay : dayOf(event.publishedAt)
    const titleWords = wordsOf(event.title).join(' ')
    const text = event.text === null ? '' : wordsOf(event.text).join(' ')
    const textWords = text === '' ? null : `${titleWords} ${text}`
    const words = createHash('sha256').update(`${titleWords}\n${text}`).digest('base64url')
    return { id: documentId(day, number), event, titleWords, textWords, words }
  })
  return { documents: documents.sort((a, b) => a.id - b.id), nextNumber }
}

/** Puts documents into a set, in the place of what it holds of their events. */
export function writeDocuments(
  set: IndexSet,
  documents: readonly IndexDocument[],
  existing: Existing,
): InStatement[] {
  const before = (document: IndexDocument) =>
    existing.get(nameOf(document.event.source, document.event.sourceId))
  const refreshed = documents.filter((document) => {
    const found = before(document)
    return found?.id !== document.id || found.words !== document.words
  })
  const replaced = refreshed.flatMap((document) => before(document)?.id ?? []).sort((a, b) => a - b)
  const statements: InStatement[] = []
  if (replaced.length > 0) {
    const args = [JSON.stringify(replaced)]
    statements.push(
      { sql: `DELETE FROM search_titles_${set} WHERE rowid IN (SELECT value FROM json_each(?))`, args },
      { sql: `DELETE FROM search_texts_${set} WHERE rowid IN (SELECT value FROM json_each(?))`, args },
      { sql: `DELETE FROM search_documents_${set} WHERE id IN (SELECT value FROM json_each(?))`, args },
    )
  }
  const add = (sql: string, rows: readonly unknown[][]): void => {
    if (rows.length === 0) return
    for (const json of toJsonArrays(rows.map((row) => JSON.stringify(row))))
      statements.push({ sql, args: [json] })
  }
  add(upsertDocuments(set), documents.map(rowOf))
  add(
    insertWords(`search_titles_${set}`),
    refreshed.map(({ id, titleWords }) => [id, titleWords]),
  )
  add(
    insertWords(`search_texts_${set}`),
    refreshed.flatMap(({ id, textWords }) => (textWords === null ? [] : [[id, textWords]])),
  )
  return statements
}

/** Takes everything out of a set. */
export function emptySet(set: IndexSet): string[] {
  return [
    `DELETE FROM search_documents_${set}`,
    `INSERT INTO search_titles_${set} (search_titles_${set}) VALUES ('delete-all')`,
    `INSERT INTO search_texts_${set} (search_texts_${set}) VALUES ('delete-all')`,
  ]
}

const COLUMNS = [
  'id',
  'source',
  'source_id',
  'title',
  'url',
  'page',
  'first_day',
  'last_day',
  'published_at',
  'points',
  'comments',
  'words',
]

const upsertDocuments = (set: IndexSet): string => `
  INSERT INTO search_documents_${set} (${COLUMNS.join(', ')})
  SELECT ${COLUMNS.map((_, index) => `value ->> ${index}`).join(', ')} FROM json_each(?) WHERE true
  ON CONFLICT (id) DO UPDATE SET ${COLUMNS.slice(1)
    .map((column) => `${column} = excluded.${column}`)
    .join(', ')}`

const insertWords = (table: string): string =>
  `INSERT INTO ${table} (rowid, words) SELECT value ->> 0, value ->> 1 FROM json_each(?)`

function rowOf({ id, event, words }: IndexDocument): unknown[] {
  const { source, sourceId, title, url, firstDay, lastDay, publishedAt, points, comments } = event
  const page = url === null ? null : canonicalUrl(url)
  return [id, source, sourceId, title, url, page, firstDay, lastDay, publishedAt, points, comments, words]
}

function nameOf(source: string, sourceId: string): string {
  return `${source}\n${sourceId}`
}
