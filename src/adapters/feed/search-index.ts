import type { FeedSearch, IndexWatch } from '../../domain/ports.ts'
import { storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import type { Database } from '../sqlite/database.ts'
import { columnsOf, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader, SqlTransaction, StoreClient } from '../sqlite/rows.ts'
import { retryWithFewerRows } from './items.ts'
import { indexMissing } from './search-documents.ts'

/** The search index on libSQL as a whole (docs/decisions/0019-search-index.md); imports write its documents. */
export function searchIndex(database: Database): Omit<FeedSearch, 'by'> {
  return {
    repair: (watch) =>
      database.use(async (client) => (isCurrent(await readState(client)) ? 0 : rebuild(client, watch))),
    rebuild: (watch) => database.use((client) => rebuild(client, watch)),
  }
}

/** Version of the rules that split words and identify pages; increment it with every change of them. */
const INDEX_FORMAT = 3

/** The row of `search_state`. */
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

/** Maximum number of events per step. */
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
