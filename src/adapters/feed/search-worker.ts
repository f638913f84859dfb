import { Refusal, storageUnavailable } from '../../domain/refusal.ts'
import { readOnlyDatabase } from '../sqlite/database.ts'
import { isBusy } from '../sqlite/guard.ts'
import type { SearchWorkerData, SearchWorkerMessage } from './feed-search.ts'
import { runQuery } from './search-queries.ts'
import type { FeedQuery } from './search-queries.ts'

/** A cache of 32 MB holds the pages that common queries read, for a hundred thousand items. */
const settings = 'PRAGMA cache_size = -32000'

const { url, ...busyOptions } = JSON.parse(process.argv[2] ?? '') as SearchWorkerData
const database = readOnlyDatabase({ location: { url, authToken: null }, ...busyOptions, settings }, null)

const LOCKED = 'the feed database is locked by another process'

async function handleQuery(query: FeedQuery): Promise<SearchWorkerMessage> {
  try {
    return { outcome: 'answer', value: await runQuery(database, query) }
  } catch (thrown) {
    const error = isBusy(thrown) ? storageUnavailable(LOCKED) : thrown
    if (error instanceof Refusal) return { outcome: 'refusal', code: error.code, detail: error.detail }
    const { message, stack } = error instanceof Error ? error : new Error(String(error))
    return { outcome: 'fault', message, stack }
  }
}

process.on('message', (query: FeedQuery) => {
  void handleQuery(query).then((message) => process.send?.(message))
})
process.once('disconnect', () => process.exit())
// Signals to the process group are handled by the parent, which finishes open queries and then ends this process.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(signal, () => undefined)

process.send?.('ready')
