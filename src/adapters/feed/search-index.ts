import type { InStatement } from '@libsql/client'
import type { IndexProgress, SearchIndexRefusal } from '../../domain/feed/search.ts'
import type { FeedSearch } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Database } from '../sqlite/database.ts'
import { asJsonRows, selectJsonRows, isTooLarge } from '../sqlite/rows.ts'
import type { StoreClient } from '../sqlite/rows.ts'
import { documentsOf, emptySet, readEvents, readExisting, writeDocuments } from './search-documents.ts'
import { INDEX_FORMAT, readState } from './search-rows.ts'
import type { IndexSet, IndexState } from './search-rows.ts'

/** Events one step takes in, and about how many bytes of text. */
const STEP_EVENTS = 4_000
const STEP_TEXT_BYTES = 2_000_000

/** Pages of 4 KB that one step of merging writes. */
const MERGE_PAGES = 1_000

/** The index that the search answers from, on libSQL (docs/decisions/0019-the-search-index.md). */
export function searchIndex(database: Database): Omit<FeedSearch, 'by'> {
  return {
    isCurrent: () => database.use(async ({ client }) => (await readState(client)).format === INDEX_FORMAT),
    refresh: () => database.use(({ client }) => refresh(client)),
    beginRebuild: () => database.use(({ client }) => beginRebuild(client)),
    rebuild: (build) => database.use(({ client }) => rebuild(client, build)),
  }
}

/** An event to take in: its key, the mark of its change, and the bytes of its text. */
type Changed = [source: string, sourceId: string, mark: number, textBytes: number]

const PENDING = asJsonRows(
  'source, source_id, mark, text_bytes',
  `SELECT p.source AS source, p.source_id AS source_id, p.mark AS mark, coalesce(octet_length(a.text), 0) AS text_bytes
  FROM search_pending p LEFT JOIN articles a ON a.source = p.source AND a.source_id = p.source_id
  ORDER BY p.source, p.source_id LIMIT ?1`,
)

const EVENTS_AFTER = asJsonRows(
  'source, source_id, mark, text_bytes',
  `SELECT e.source AS source, e.source_id AS source_id, 0 AS mark, coalesce(octet_length(a.text), 0) AS text_bytes
  FROM events e LEFT JOIN articles a ON a.source = e.source AND a.source_id = e.source_id
  WHERE (e.source, e.source_id) > (?2, ?3) ORDER BY e.source, e.source_id LIMIT ?1`,
)

const UNMARK = `
  DELETE FROM search_pending WHERE (source, source_id, mark) IN (
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
  )`

async function refresh(client: StoreClient): Promise<IndexProgress> {
  const state = await readState(client)
  const sets: IndexSet[] = state.build === null ? [state.active] : [state.active, otherThan(state.active)]
  return inSmallerSteps(async (limit) => {
    const changed = (await selectJsonRows(client, PENDING, [limit], 'the feed')) as Changed[]
    if (changed.length === 0) return { indexed: 0, done: true }
    const taken = withinBudget(changed)
    const unmark = { sql: UNMARK, args: [JSON.stringify(taken.map((each) => each.slice(0, 3)))] }
    return takeIn(client, state, sets, taken, [unmark])
  })
}

async function beginRebuild(client: StoreClient): Promise<number> {
  for (;;) {
    const state = await readState(client)
    const build = state.step + 1
    const begun = await writeIndex(client, state, state.nextNumber, [
      {
        sql: "UPDATE search_state SET build = ?, after_source = '', after_source_id = ''",
        args: [build],
      },
      ...emptySet(otherThan(state.active)),
    ])
    if (begun) return build
  }
}

async function rebuild(client: StoreClient, build: number): Promise<IndexProgress> {
  const state = await readState(client)
  if (state.build !== build) {
    throw new Refusal<SearchIndexRefusal>(
      'rebuild_superseded',
      'another rebuild of the search index has begun since; let it finish',
    )
  }
  const building = otherThan(state.active)
  return inSmallerSteps(async (limit) => {
    const events = (await selectJsonRows(
      client,
      EVENTS_AFTER,
      [limit, ...state.after],
      'the feed',
    )) as Changed[]
    const taken = withinBudget(events)
    const last = taken.at(-1)
    if (last === undefined) return finishRebuild(client, state, building)
    const sql = 'UPDATE search_state SET after_source = ?, after_source_id = ?'
    return takeIn(client, state, [building], taken, [{ sql, args: [last[0], last[1]] }])
  })
}

/** Merges the new set, a part a step, and then lets it answer. */
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
    ...emptySet(state.active),
  ])
  return { indexed: 0, done }
}

/** One step of merging; false when there was nothing left to merge, which changes less than two rows. */
async function merge(client: StoreClient, table: string): Promise<boolean> {
  const changes = 'SELECT total_changes() AS changes'
  const command = `INSERT INTO ${table} (${table}, rank) VALUES ('merge', ${-MERGE_PAGES})`
  const [before, , after] = await client.batch([changes, command, changes], 'write')
  return Number(after?.rows[0]?.['changes']) - Number(before?.rows[0]?.['changes']) >= 2
}

/** The first of some events whose texts fit a step; at least one. */
function withinBudget(events: readonly Changed[]): Changed[] {
  let bytes = 0
  return events.filter(([, , , textBytes], index) => {
    bytes += textBytes
    return index === 0 || bytes <= STEP_TEXT_BYTES
  })
}

/** Puts events into sets as they are now, with `others` in the same transaction. */
async function takeIn(
  client: StoreClient,
  state: IndexState,
  sets: readonly IndexSet[],
  changed: readonly Changed[],
  others: readonly InStatement[],
): Promise<IndexProgress> {
  const keys = changed.map(([source, sourceId]) => [source, sourceId] as const)
  const events = await readEvents(client, keys)
  const active = await readExisting(client, state.active, keys)
  const other = state.build === null ? new Map() : await readExisting(client, otherThan(state.active), keys)
  const { documents, nextNumber } = documentsOf(events, [active, other], state.nextNumber)
  const writes = sets.flatMap((set) => writeDocuments(set, documents, set === state.active ? active : other))
  const written = await writeIndex(client, state, nextNumber, [...writes, ...others])
  return { indexed: written ? documents.length : 0, done: false }
}

/** Fails, and so undoes its batch, when another process wrote to the index since its state was read. */
const FAIL_WHEN_MOVED = "SELECT CASE WHEN changes() = 0 THEN json('moved') END"

/** @returns false when another process came first: nothing was written */
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
    // Said of anything else, it would be said of every attempt.
    if ((await readState(client)).step === state.step) throw error
    return false
  }
}

/** Runs a step with fewer events while a server's answer to it is too large. */
async function inSmallerSteps(step: (limit: number) => Promise<IndexProgress>): Promise<IndexProgress> {
  for (let limit = STEP_EVENTS; ; limit = Math.ceil(limit / 4)) {
    try {
      return await step(limit)
    } catch (error) {
      if (limit === 1 || !isTooLarge(error)) throw error
    }
  }
}

function otherThan(set: IndexSet): IndexSet {
  return set === 'a' ? 'b' : 'a'
}
