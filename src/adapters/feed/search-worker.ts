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

/** What the process is started with, as JSON in its first argument. */
export interface SearchWorkerData {
  /** `file:` URL of a database that somebody else has migrated. */
  url: string
  nativeBusyMs: number
  retryMs: number
}

/** What the process says once it has started, and then of each query. */
export type SearchWorkerMessage =
  | { outcome: 'ready' }
  | { outcome: 'answer'; value: FeedResult }
  | { outcome: 'refusal'; code: string; detail: string | undefined }
  | { outcome: 'fault'; message: string; stack: string | undefined }

/** 32 MB hold what common queries read of a hundred thousand items. */
const SETTINGS = `${QUERY_ONLY}; PRAGMA cache_size = -32000`

const { url, nativeBusyMs, retryMs } = JSON.parse(process.argv[2] ?? '') as SearchWorkerData
const path = fileURLToPath(url)
const name = `the database ${path}`

const LOCKED = 'the feed database is locked by another process'

let opened: { client: StoreClient; inode: bigint } | null = null

/** The open database; another one when the file was replaced, and none is ever created. */
function open(): StoreClient {
  const inode = statSync(path, { bigint: true, throwIfNoEntry: false })?.ino
  if (opened && opened.inode === inode) return opened.client
  opened?.client.close()
  opened = null
  if (inode === undefined) throw storageUnavailable(`${name} is not there`)
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
// Signals to a whole group of processes are for the one that asks: it lets open queries end, and this one with it.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(signal, () => undefined)

const ready: SearchWorkerMessage = { outcome: 'ready' }
process.send?.(ready)
