import type { InStatement } from '@libsql/client'
import type { IndexProgress, SearchIndexRefusal } from '../../domain/feed/search/search.ts'
import type { FeedSearch } from '../../domain/ports.ts'
import { Refusal, storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import type { Database } from '../sqlite/database.ts'
import { columnsOf, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader, StoreClient } from '../sqlite/rows.ts'
import { retryWithFewerRows, toItemKeys } from './items.ts'
import {
  toDocuments,
  clearSet,
  readIndexedEvents,
  readStoredDocuments,
  writeDocuments,
} from './search-documents.ts'
import type { IndexSet } from './search-documents.ts'

/**
 * Creates the search index on libSQL: two sets of tables, of which one is active
 * (docs/decisions/0019-search-index.md).
 */
export function searchIndex(database: Database): Omit<FeedSearch, 'by'> {
  return {
    isCurrent: () => database.use(async (client) => (await readState(client)).format === INDEX_FORMAT),
    refresh: () => database.use((client) => refresh(client)),
    beginRebuild: () => database.use((client) => beginRebuild(client)),
    rebuild: (build) => database.use((client) => rebuild(client, build)),
  }
}

function otherSet(set: IndexSet): IndexSet {
  return set === 'a' ? 'b' : 'a'
}

/** Version of the rules that split words and identify pages; increment it with every change of them. */
const INDEX_FORMAT = 3

/** The row of `search_state`. */
export interface IndexState {
  step: number
  active: IndexSet
  format: number
  nextNumber: number
  /** The running rebuild, and the event it indexed last. */
  build: number | null
  afterSource: string
  afterSourceId: string
}

const STATE_COLUMNS: ObjectColumns<IndexState> = columnsOf('search_state', [
  'step',
  'active',
  'format',
  'nextNumber',
  'build',
  'afterSource',
  'afterSourceId',
])

async function readState(reader: SqlReader): Promise<IndexState> {
  const label = 'the state of the search index'
  const [state] = await selectObjects(reader, STATE_COLUMNS, 'search_state', [], label)
  if (!state) throw storageDamaged(`${label} is missing`)
  return state
}

/**
 * Reads the state of the index for a query on its active set.
 *
 * @throws Refusal `storage_unavailable` if the index has another format: its words would not match
 */
export async function readActiveState(reader: SqlReader): Promise<IndexState> {
  const state = await readState(reader)
  if (state.format !== INDEX_FORMAT) {
    throw storageUnavailable('the search index was built by another release; run dash reindex')
  }
  return state
}

/** Maximum number of events, and approximate bytes of text, per step. */
const STEP_EVENTS = 4_000
const STEP_TEXT_BYTES = 2_000_000

/** An event to index: its key, the mark of its change, and the size of its text in bytes. */
interface PendingEvent {
  source: string
  sourceId: string
  mark: number
  textBytes: number
}

/**
 * Reads the next events to index, up to the size of a step.
 *
 * @param from table of events or marks with the alias `c`; it is read in the order of its keys
 */
async function readPendingEvents(
  reader: SqlReader,
  from: string,
  args: (string | number)[],
  mark: string,
): Promise<PendingEvent[]> {
  const size = 'coalesce(octet_length(a.text), 0)'
  const columns = { ...columnsOf('c', ['source', 'sourceId']), mark, textBytes: size }
  const pending = `${from} c LEFT JOIN articles a ON a.source = c.source AND a.source_id = c.source_id
    WHERE (c.source, c.source_id) > (?2, ?3) ORDER BY c.source, c.source_id LIMIT ?1`
  const changed = await selectObjects<PendingEvent>(reader, columns, pending, args, 'the feed')
  let bytes = 0
  return changed.filter(({ textBytes }, index) => {
    bytes += textBytes
    return index === 0 || bytes <= STEP_TEXT_BYTES
  })
}

const CLEAR_MARKS = `
  DELETE FROM search_pending WHERE (source, source_id, mark) IN (
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
  )`

/** Indexes marked events in the active set, and in the other set during a rebuild. */
async function refresh(client: StoreClient): Promise<IndexProgress> {
  const state = await readState(client)
  const sets: IndexSet[] = state.build === null ? [state.active] : [state.active, otherSet(state.active)]
  return inSmallerBatches(async (limit) => {
    const changed = await readPendingEvents(client, 'search_pending', [limit, '', ''], 'c.mark')
    if (changed.length === 0) return { indexed: 0, done: true }
    const marks = changed.map(({ source, sourceId, mark }) => [source, sourceId, mark])
    return indexEvents(client, state, sets, changed, { sql: CLEAR_MARKS, args: [JSON.stringify(marks)] })
  })
}

async function beginRebuild(client: StoreClient): Promise<number> {
  for (;;) {
    const state = await readState(client)
    const build = state.step + 1
    const begin = {
      sql: "UPDATE search_state SET build = ?, after_source = '', after_source_id = ''",
      args: [build],
    }
    const statements = [begin, ...clearSet(otherSet(state.active))]
    if (await writeIndex(client, state, state.nextNumber, statements)) return build
  }
}

/** Indexes the next events in the inactive set, and activates the set at the end. */
async function rebuild(client: StoreClient, build: number): Promise<IndexProgress> {
  const state = await readState(client)
  if (state.build !== build) {
    throw new Refusal<SearchIndexRefusal>(
      'rebuild_superseded',
      'another rebuild of the search index has started; wait for it to finish',
    )
  }
  const building = otherSet(state.active)
  return inSmallerBatches(async (limit) => {
    const after = [limit, state.afterSource, state.afterSourceId]
    const events = await readPendingEvents(client, 'events', after, '0')
    const last = events.at(-1)
    if (last === undefined) return finishRebuild(client, state, building)
    const sql = 'UPDATE search_state SET after_source = ?, after_source_id = ?'
    return indexEvents(client, state, [building], events, { sql, args: [last.source, last.sourceId] })
  })
}

/** Merges the new set step by step, and then activates it. */
async function finishRebuild(
  client: StoreClient,
  state: IndexState,
  building: IndexSet,
): Promise<IndexProgress> {
  for (const table of [`search_titles_${building}`, `search_texts_${building}`]) {
    if (await merge(client, table)) return { indexed: 0, done: false }
  }
  const done = await writeIndex(client, state, state.nextNumber, [
    { sql: 'UPDATE search_state SET active = ?, format = ?, build = NULL', args: [building, INDEX_FORMAT] },
    ...clearSet(state.active),
  ])
  return { indexed: 0, done }
}

/** Pages of 4 KB that one merge step writes. */
const MERGE_PAGES = 1_000

/**
 * Runs one merge step.
 *
 * @returns false if there is nothing left to merge: FTS5 then changes fewer than two rows
 */
async function merge(client: StoreClient, table: string): Promise<boolean> {
  const changes = 'SELECT total_changes() AS changes'
  const command = `INSERT INTO ${table} (${table}, rank) VALUES ('merge', ${-MERGE_PAGES})`
  const [before, , after] = await client.batch([changes, command, changes], 'write')
  return Number(after?.rows[0]?.['changes']) - Number(before?.rows[0]?.['changes']) >= 2
}

async function inSmallerBatches(step: (limit: number) => Promise<IndexProgress>): Promise<IndexProgress> {
  return (await retryWithFewerRows(STEP_EVENTS, step)).result
}

/** Fails, and so rolls its batch back, if another process has written to the index since its state was read. */
const FAIL_WHEN_MOVED = "SELECT CASE WHEN changes() = 0 THEN json('moved') END"

/**
 * Writes a batch to the index, with the next number of items.
 *
 * @returns false if another process came first: nothing was written
 */
async function writeIndex(
  client: StoreClient,
  state: IndexState,
  nextNumber: number,
  statements: readonly InStatement[],
): Promise<boolean> {
  const claim = {
    sql: 'UPDATE search_state SET step = step + 1, next_number = ?1 WHERE step = ?2',
    args: [nextNumber, state.step],
  }
  try {
    await client.batch([claim, FAIL_WHEN_MOVED, ...statements], 'write')
    return true
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('malformed JSON')) throw error
    // With an unchanged step the error has another cause, and would recur.
    if ((await readState(client)).step === state.step) throw error
    return false
  }
}

/** Indexes the current values of events in sets, with another statement in the same transaction. */
async function indexEvents(
  client: StoreClient,
  state: IndexState,
  sets: readonly IndexSet[],
  changed: readonly PendingEvent[],
  extraStatement: InStatement,
): Promise<IndexProgress> {
  const keys = toItemKeys(changed)
  const events = await readIndexedEvents(client, keys)
  const stored = {
    a: await readStoredDocuments(client, 'a', keys),
    b: await readStoredDocuments(client, 'b', keys),
  }
  const { documents, nextNumber } = toDocuments(events, [stored.a, stored.b], state.nextNumber)
  const writes = sets.flatMap((set) => writeDocuments(set, documents, stored[set]))
  const written = await writeIndex(client, state, nextNumber, [...writes, extraStatement])
  return { indexed: written ? documents.length : 0, done: false }
}
