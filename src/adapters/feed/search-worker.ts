import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createClient } from '@libsql/client'
import { Refusal, storageUnavailable } from '../../domain/refusal.ts'
import { isBusy, translate } from '../sqlite/vendor-errors.ts'
import { guardClient } from '../sqlite/guard.ts'
import { QUERY_ONLY } from '../sqlite/engine.ts'
import type { StoreClient } from '../sqlite/rows.ts'
import { answer } from './search-engine.ts'
import type { Answer, Question } from './search-engine.ts'

/** What the process is started with, as JSON in its first argument. */
export interface SearchWorkerData {
  /** `file:` URL of a database that somebody else has migrated. */
  url: string
  nativeBusyMs: number
  retryMs: number
}

/** What the process says once it has started, and then of each question. */
export type SearchWorkerReply =
  | { outcome: 'ready' }
  | { outcome: 'answer'; value: Answer }
  | { outcome: 'refusal'; code: string; detail: string | undefined }
  | { outcome: 'busy' }
  | { outcome: 'fault'; message: string; stack: string | undefined }

/** 32 MB hold what common questions read of a hundred thousand items. */
const SETTINGS = `${QUERY_ONLY}; PRAGMA cache_size = -32000`

const { url, nativeBusyMs, retryMs } = JSON.parse(process.argv[2] ?? '') as SearchWorkerData
const path = fileURLToPath(url)
const name = `the database ${path}`

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

async function reply(question: Question): Promise<SearchWorkerReply> {
  try {
    return { outcome: 'answer', value: await answer(open(), question) }
  } catch (thrown) {
    const error = translate(thrown, name)
    if (error instanceof Refusal) return { outcome: 'refusal', code: error.code, detail: error.detail }
    if (isBusy(error)) return { outcome: 'busy' }
    if (error instanceof Error) return { outcome: 'fault', message: error.message, stack: error.stack }
    return { outcome: 'fault', message: String(error), stack: undefined }
  }
}

process.on('message', (question: Question) => {
  void reply(question).then((said) => process.send?.(said))
})
process.once('disconnect', () => process.exit())
// Signals to a whole group of processes are for the one that asks: it lets open questions end, and this one with it.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(signal, () => undefined)

const ready: SearchWorkerReply = { outcome: 'ready' }
process.send?.(ready)
