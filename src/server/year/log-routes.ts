import { z } from 'zod'
import type { Clock } from '../../domain/ports.ts'
import type { Objects } from '../../domain/year/ports.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import { latestAt } from '../../domain/year/chain.ts'
import type { TimelineItem } from '../../domain/year/chain.ts'
import { sealOf } from '../../domain/year/ledger.ts'
import { entryBytes, LOG_PATH } from '../../domain/year/log/log-history.ts'
import {
  asOfProofSchema,
  entriesUntilNext,
  formatLogProof,
  parseProofQuery,
  proofQuerySchema,
} from '../../domain/year/log/log-proof.ts'
import type { AsOfProof, LogRefusal } from '../../domain/year/log/log-proof.ts'
import { inclusionProof } from '../../domain/year/log/merkle-tree.ts'
import { entriesOf, isTileWithin, parseTilePath, tileBytes } from '../../domain/year/log/tiles.ts'
import type { Tile } from '../../domain/year/log/tiles.ts'
import { newestLogFiles, openStoredLog, requireContinued } from '../../domain/year/log/check-log.ts'
import type { StoredLog } from '../../domain/year/log/check-log.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import type { Compute } from '../computed-requests.ts'
import { IMMUTABLE, publishedBody, publishedJson } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import {
  METHOD_NOT_ALLOWED,
  invalidValues,
  publicAccess,
  publishedHeaders,
  publishedRoute,
} from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { singleFlight } from '../single-flight.ts'
import { INVALID_AT } from './routes.ts'
import type { LedgerLog, ProvedPublications } from './proved-publications.ts'

/**
 * Creates the routes that serve the ledger as a transparency log (docs/api.md): the files of C2SP tlog-tiles, the
 * policy and proof files.
 *
 * @param readLog returns the log to serve; null if no checkpoint is signed
 * @param compute runs what takes time for a request when it is its turn
 */
export function logRoutes(readLog: () => Promise<ServedLog | null>, clock: Clock, compute: Compute): Route[] {
  const requireLog = async (): Promise<ServedLog> => (await readLog()) ?? notFound()
  return [
    publishedRoute(checkpointContract, async () =>
      publishedText((await requireLog()).note, CHECKPOINT_CACHE),
    ),
    publishedRoute(tileContract, async (_params, { url }) => {
      const tile = parseTilePath(decodeURIComponent(url.pathname.slice(LOG_PATH.length + 1))) ?? notFound()
      return publishedTile(await requireLog(), tile)
    }),
    publishedRoute(policyContract, async () => publishedText((await requireLog()).policy, CACHE)),
    publishedRoute(proofContract, async (params, event) => {
      const { at, until } = parseProofQuery(params, clock())
      const log = await requireLog()
      const selected = latestAt(log.proved.timeline, at) ?? notFound()
      if (until === undefined && selected.ledger === 'versioned')
        return publishedText(proofOf(log, selected.seq), CACHE)
      // An archive that was imported has hundreds of entries up to its seal.
      return compute(event, async () => proofsOf(log, selected, at, until))
    }),
  ]
}

function notFound(): never {
  throw new Refusal<LogRefusal>('year_log_not_found')
}

/** Short, so that readers see the next checkpoint soon. */
const CHECKPOINT_CACHE = 'public, max-age=5'
const CACHE = 'public, max-age=60'

function publishedText(text: string, cacheControl: string): PublishedBody {
  return publishedBody(text, { contentType: 'text/plain; charset=utf-8', cacheControl })
}

function publishedTile(log: ServedLog, tile: Tile): PublishedBody {
  if (!isTileWithin(tile, log.checkpoint.size)) return notFound()
  const bytes = tileBytes(log.tree(), tile, (bundle) => entriesOf(log.rows, bundle).map(entryBytes))
  return publishedBody(Buffer.from(bytes), {
    contentType: 'application/octet-stream',
    cacheControl: IMMUTABLE,
  })
}

/** Returns the proof file of one entry under the served checkpoint. */
function proofOf({ rows, tree, checkpoint: { size }, note }: ServedLog, seq: number): string {
  const row = rows[seq - 1]
  if (row === undefined || seq > size) return notFound()
  const index = seq - 1
  const hashes = inclusionProof(tree(), index, size)
  return formatLogProof({ entry: entryBytes(row), index, hashes, checkpoint: note })
}

/** Returns the proofs of the entries up to the next publication, or of a publication of the legacy ledger. */
function proofsOf(log: ServedLog, selected: TimelineItem, at: number, until?: 'next'): PublishedBody {
  const sealed = sealOf(log.proved.entries)?.seq
  const seqs =
    until === 'next'
      ? entriesUntilNext(log.proved, selected, log.checkpoint.size)
      : // The seal covers the text that lists the publication, which has no entry.
        [sealed ?? notFound()]
  if (seqs === null) return notFound()
  const isSealed = seqs.some((seq) => seq === sealed)
  const body: AsOfProof = {
    at: formatInstant(at),
    proofs: seqs.map((seq) => proofOf(log, seq)),
    legacy: isSealed ? log.legacy() : null,
  }
  return publishedJson(body, CACHE)
}

/** Path of the interface's description, as a document and as a page. */
export const LOG_DOCS = '/docs/api/top-year-log'

const COMMON_STATUS = {
  year_log_not_found: { status: 404, when: 'no checkpoint is signed yet' },
  method_not_allowed: METHOD_NOT_ALLOWED,
  year_log_storage_unavailable: {
    status: 503,
    when: 'the ledger or the object store cannot be opened or reached',
  },
  year_log_archive_corrupt: {
    status: 503,
    when: 'the ledger does not match its chain, its head or the newest signed checkpoint',
  },
  year_log_lookup_failed: { status: 503, when: 'any other failure of the lookup' },
} as const

type CommonRefusal = keyof typeof COMMON_STATUS

/** Members that all contracts of the log share. */
const COMMON = {
  tag: 'Year',
  query: z.object({}),
  storage: {
    storage_unavailable: 'year_log_storage_unavailable',
    storage_damaged: 'year_log_archive_corrupt',
  },
  fault: 'year_log_lookup_failed',
  refusals: COMMON_STATUS,
  ...publicAccess(LOG_DOCS, ['ETag', 'Link']),
} as const

/** `GET /tlog/year/checkpoint` */
export const checkpointContract: Contract<CommonRefusal> = {
  ...COMMON,
  path: `${LOG_PATH}/checkpoint`,
  operationId: 'getYearCheckpoint',
  summary: 'The newest signed checkpoint',
  description: [
    'Origin of the log, number of its entries, and root of its RFC 6962 tree, signed by the log',
    '(C2SP tlog-checkpoint). Readers who keep it can check later that no entry up to it was changed or removed.',
  ].join(' '),
  contentType: 'text/plain',
  success: z.string(),
  successDescription: 'The signed note',
  successHeaders: publishedHeaders(CHECKPOINT_CACHE),
}

/** `GET /tlog/year/tile/…` */
export const tileContract: Contract<CommonRefusal> = {
  ...COMMON,
  path: `${LOG_PATH}/tile/{tile}`,
  pathRest: {
    name: 'tile',
    description:
      '`<level>/<index>` or `entries/<index>`; partial tiles end with `.p/<width>`, as in `0/x001/067.p/3`; slashes may be encoded',
  },
  operationId: 'getYearTile',
  summary: 'A tile of hashes, or a bundle of entries',
  description: [
    'Up to 256 hashes of 32 bytes, or up to 256 entries, each preceded by its length as a big-endian 16-bit integer',
    '(C2SP tlog-tiles). Entry n - 1 has the bytes of line n of the ledger.',
  ].join(' '),
  contentType: 'application/octet-stream',
  success: z.string(),
  successDescription: 'The bytes of the tile or bundle, which never change',
  successHeaders: publishedHeaders(IMMUTABLE),
  refusals: {
    ...COMMON_STATUS,
    year_log_not_found: {
      status: 404,
      when: 'no checkpoint is signed yet, or its tree has no such tile',
    },
  },
}

/** `GET /tlog/year/policy` */
export const policyContract: Contract<CommonRefusal> = {
  ...COMMON,
  path: `${LOG_PATH}/policy`,
  operationId: 'getYearLogPolicy',
  summary: 'Keys of the log',
  description:
    'Keys whose signatures a reader of this log should require (C2SP tlog-policy). Obtain it once from a trusted source and keep it.',
  contentType: 'text/plain',
  success: z.string(),
  successDescription: 'The policy',
  successHeaders: publishedHeaders(CACHE),
}

/** `GET /tlog/year/proof` */
export const proofContract: Contract<LogRefusal | 'busy'> = {
  ...COMMON,
  path: `${LOG_PATH}/proof`,
  operationId: 'getYearProof',
  summary: 'Proof that a publication is in the log',
  description: [
    'The proof file (C2SP tlog-proof) of the publication that was current at `at`: its line of the ledger, the hashes',
    'up to the root, and the newest checkpoint. With `until=next`, and for a publication of the legacy ledger, the',
    'response is a JSON document of several proof files.',
  ].join(' '),
  query: proofQuerySchema,
  contentType: 'text/plain',
  success: z.string(),
  successDescription: 'The proof file, or the proof files',
  otherSuccess: { contentType: 'application/json', schema: asOfProofSchema },
  successHeaders: publishedHeaders(CACHE),
  refusals: {
    ...COMMON_STATUS,
    invalid_at: INVALID_AT,
    invalid_until: invalidValues({ until: '`next`' }),
    busy: BUSY_REFUSAL,
    year_log_not_found: {
      status: 404,
      when: 'no checkpoint is signed yet, no publication existed at that time, or its entry is not in a signed tree yet',
    },
  },
}

/** Maximum age of the last look at the stored files; a checkpoint is served at most this long after it is stored. */
const LOOK_MAX_AGE_MS = 2_000

/** The log to serve: the newest stored note and the proved ledger that continues it. */
export interface ServedLog extends LedgerLog, StoredLog {}

/**
 * Returns a reader of the log to serve, whose result is null while no checkpoint is signed. A note is served only if a
 * key of the stored policy signed it, the proved ledger continues it, and no larger one was served before; otherwise
 * the reader throws Refusal `storage_damaged`.
 */
export function servedLog(
  logFiles: ReadableLogFiles,
  publications: Pick<ProvedPublications, 'log'>,
  clock: Clock,
): () => Promise<ServedLog | null> {
  let last: { newest: StoredLog | null; at: number } | null = null
  let largest = 0

  const look = singleFlight(async () => {
    const at = clock()
    return (last = { newest: await readNewest(logFiles), at })
  })

  return async () => {
    const isFresh = last !== null && Math.abs(clock() - last.at) < LOOK_MAX_AGE_MS
    // The note is read before the ledger: entries published in between are then in the ledger and not in the note.
    const { newest } = last !== null && isFresh ? last : await look()
    if (newest === null && largest === 0) return null
    const log = await publications.log()
    const size = newest?.checkpoint.size ?? 0
    if (newest === null || size < largest)
      throw storageDamaged(
        `the newest stored checkpoint has ${size} entries, but one of ${largest} entries was served before`,
      )
    requireContinued(log.tree(), newest.checkpoint)
    largest = size
    return { ...log, ...newest }
  }
}

type ReadableLogFiles = Pick<Objects['logFiles'], 'list' | 'get'>

/** Returns null if no note is stored. */
async function readNewest(logFiles: ReadableLogFiles): Promise<StoredLog | null> {
  const files = newestLogFiles(await logFiles.list())
  if (files === null) return null
  return openStoredLog(
    await Promise.all(files.map(async (file) => ({ file, bytes: await logFiles.get(file) }))),
  )
}
