import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createClient } from '@libsql/client'
import { Refusal, storageUnavailable } from '../../domain/refusal.ts'
import { isBusy, translateError } from '../sqlite/vendor-errors.ts'
import { guardClient } from '../sqlite/guard.ts'
import { QUERY_ONLY } from '../sqlite/engine.ts'
import type { StoreClient } from '../sqlite/rows.ts'
import { runQuery } from './search-queries.ts'
import type { FeedQuery, FeedResult } from './search-queries.ts'

/** Settings of the process, as JSON in its first argument. */
export interface SearchWorkerData {
  /** `file:` URL of a database that is already migrated. */
  url: string
  nativeBusyMs: number
  retryMs: number
}

/** Responses of the process, one per query. */
export type SearchWorkerMessage =
  | { outcome: 'answer'; value: FeedResult }
  | { outcome: 'refusal'; code: string; detail: string | undefined }
  | { outcome: 'fault'; message: string; stack: string | undefined }

/** A cache of 32 MB holds the pages that common queries read, for a hundred thousand items. */
const SETTINGS = `${QUERY_ONLY}; PRAGMA cache_size = -32000`

const { url, nativeBusyMs, retryMs } = JSON.parse(process.argv[2] ?? '') as SearchWorkerData
const path = fileURLToPath(url)
const name = `the database ${path}`

const LOCKED = 'the feed database is locked by another process'

let opened: { client: StoreClient; inode: bigint } | null = null

/** Returns the open database. A replaced file is opened again; a missing one is never created. */
function open(): StoreClient {
  const inode = statSync(path, { bigint: true, throwIfNoEntry: false })?.ino
  if (opened && opened.inode === inode) return opened.client
  opened?.client.close()
  opened = null
  if (inode === undefined) throw storageUnavailable(`${name} does not exist`)
  const client = guardClient(createClient({ url, timeout: nativeBusyMs, concurrency: 1 }), retryMs, {
    settings: SETTINGS,
  })
  opened = { client, inode }
  return client
}

async function handleQuery(query: FeedQuery): Promise<SearchWorkerMessage> {
  try {
    return { outcome: 'answer', value: await runQuery(open(), query) }
  } catch (thrown) {
    const translated = translateError(thrown, name)
    const error = isBusy(translated) ? storageUnavailable(LOCKED) : translated
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
