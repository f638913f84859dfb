import type { H3 } from 'h3'
import { sha256Hex } from '../../src/domain/digest.ts'
import type { Objects } from '../../src/domain/year/ports.ts'
import { proveLedger } from '../../src/domain/year/check.ts'
import { formatHead } from '../../src/domain/year/ledger.ts'
import { ledgerTree, logFileName } from '../../src/domain/year/log/log-history.ts'
import { formatPolicy, checkpointText, signNote, signerKey } from '../../src/domain/year/log/signed-note.ts'
import { rootAt } from '../../src/domain/year/log/merkle-tree.ts'
import { headAt } from '../domain/year/ledger-rows.ts'
import { exportTo } from './exports.ts'
import { localSource } from './local-source.ts'
import type { LocalSource } from './local-source.ts'
import type { SampleArchive } from './sample-archive.ts'
import { LOG_NAME } from './signed-log.ts'

/** Key of the log of static hosts, and of servers over a sample archive. */
export const HOST_KEY = signerKey(LOG_NAME, new Uint8Array(32).fill(7))

export const HOST_POLICY = formatPolicy([HOST_KEY], `https://${LOG_NAME}`)

/** Signs the checkpoint of the first `size` entries of an archive. */
export function noteOf({ contents }: SampleArchive, size = contents.rows.length, key = HOST_KEY): string {
  const root = rootAt(ledgerTree(contents.rows), size)
  return signNote(checkpointText({ origin: key.name, size, root }), key)
}

/** The stored files of a log whose newest note covers the first `size` entries of an archive. */
export function logFilesOf(
  archive: SampleArchive,
  size = archive.contents.rows.length,
): Pick<Objects['logFiles'], 'list' | 'get'> {
  const files = new Map([
    [`${size}`, noteOf(archive, size)],
    ['policy.1', HOST_POLICY],
  ])
  return {
    list: async () => [
      { kind: 'note', size },
      { kind: 'policy', number: 1 },
    ],
    get: async (file) => new TextEncoder().encode(files.get(logFileName(file))),
  }
}

/** Files of the export of the first `size` entries of an archive, by path. */
export async function staticFiles(
  archive: SampleArchive,
  size = archive.contents.rows.length,
): Promise<Map<string, Uint8Array>> {
  const { contents, head, objects } = archive
  const files = new Map<string, Uint8Array>()
  const headFile = new TextEncoder().encode(formatHead(headAt(contents.rows, size)))
  const logFiles = { ...logFilesOf(archive, size), put: () => Promise.reject(new Error('not a part of it')) }
  const stores = {
    year: { read: async () => ({ proved: proveLedger(contents, head), contents, head }) },
    objects: {
      get: async (sha256: string) => objects.get(sha256) ?? null,
      headFile: async () => headFile,
      logFiles,
    },
  }
  await exportTo(stores, {
    get: async (path) => files.get(path) ?? null,
    put: async (path, bytes) => void files.set(path, bytes),
    replace: async (path, _before, bytes) => Boolean(files.set(path, bytes)),
  })
  return files
}

/** Changes the response of a static host; undefined leaves it as it is. */
type Override = (path: string) => { status: number; body?: Uint8Array | string } | undefined

/** Serves the files of a map that may change below `/some/prefix`; everything else is a 404. */
export async function serveFiles(
  files: ReadonlyMap<string, Uint8Array>,
  override: Override = () => undefined,
): Promise<LocalSource> {
  const host = await localSource(({ target }, response) => {
    const path = target.replace('/some/prefix/', '')
    const body = files.get(path)
    const found = override(path) ?? (body === undefined ? { status: 404 } : { status: 200, body })
    response.writeHead(found.status).end(found.body ?? '')
  })
  return { ...host, url: `${host.url}/some/prefix` }
}

/** Serves an application, except for the files that replace its responses. */
export async function serveInstead(
  app: Pick<H3, 'request'>,
  files: Pick<ReadonlyMap<string, Uint8Array>, 'get'>,
): Promise<LocalSource> {
  return localSource(async ({ target, headers }, response) => {
    const file = files.get(target.slice(1))
    const ifNoneMatch = headers['if-none-match']
    const honest = await app.request(`http://dash.test${target}`, {
      headers: ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch },
    })
    const [status, sent] = file
      ? [200, { etag: `"${sha256Hex(file)}"` }]
      : [honest.status, Object.fromEntries(honest.headers)]
    response.writeHead(status, sent).end(file ?? Buffer.from(await honest.arrayBuffer()))
  })
}
