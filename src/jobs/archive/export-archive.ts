import { areSameBytes, sha256Hex } from '../../domain/digest.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Objects, StaticTree, YearReader } from '../../domain/year/ports.ts'
import { Refusal, isDamaged, storageDamaged } from '../../domain/refusal.ts'
import type { StorageRefusal } from '../../domain/refusal.ts'
import { utf8Text } from '../../domain/text.ts'
import { proveLedger } from '../../domain/year/check.ts'
import { proveBytes } from '../../domain/year/envelope.ts'
import { historyIndex } from '../../domain/year/history/history.ts'
import { parseHead, legacyText } from '../../domain/year/ledger.ts'
import type { Manifest, LedgerContents } from '../../domain/year/ledger.ts'
import { newestLogFiles, openStoredLog, requireContinued } from '../../domain/year/log/check-log.ts'
import type { StoredLog } from '../../domain/year/log/check-log.ts'
import { ledgerTree, entryBytes, forkOf } from '../../domain/year/log/log-history.ts'
import type { MerkleTree } from '../../domain/year/log/merkle-tree.ts'
import { readCheckpoint } from '../../domain/year/log/signed-note.ts'
import type { Checkpoint, Note } from '../../domain/year/log/signed-note.ts'
import {
  STATIC_CHECKPOINT,
  STATIC_DAYS,
  STATIC_FEEDS,
  STATIC_HEADERS,
  STATIC_HOME,
  STATIC_MISSING,
  STATIC_INDEX,
  STATIC_LEGACY_LEDGER,
  STATIC_POLICY,
  staticHeadersText,
  staticObjectPath,
  staticTilePath,
  staticTiles,
} from '../../domain/year/log/static-layout.ts'
import type { ArchivePages, ExportedArchive, ArchivePage } from '../../domain/year/log/static-layout.ts'
import { entriesOf, tileBytes } from '../../domain/year/log/tiles.ts'
import { concurrently } from '../concurrently.ts'
import { copyObjects, COPY_CONCURRENCY } from './copy-archive.ts'
import type { ObjectProgress } from './copy-archive.ts'

export interface ExportPorts {
  year: YearReader
  objects: Pick<Objects, 'get' | 'headFile' | 'logFiles'>
  /** Opens the target, and creates a missing folder. */
  openTree: () => Promise<StaticTree>
  /** Makes the pages; null for an export without pages. */
  pagesOf: ((archive: ExportedArchive) => ArchivePages) | null
  clock: Clock
  onProgress: ObjectProgress
}

/** The JSON result of `export` (docs/static-hosting.md). */
export interface ExportReport extends FileCounts {
  /** The exported checkpoint. */
  checkpoint: Pick<Checkpoint, 'origin' | 'size'>
  /** Root of its tree in hex. */
  root: string
  /** Number of later entries, which no checkpoint has and the export leaves out. */
  unsigned: number
  durationMs: number
}

type ExportRefusal = 'archive_damaged' | 'configuration'

/**
 * Writes the archive up to its newest signed checkpoint as a tree of static files (docs/static-hosting.md). Files that
 * never change come first and the checkpoint comes last: a reader never sees a checkpoint whose files are missing. A
 * repeated export continues an interrupted one. It is safe during a publication and during another export.
 *
 * @throws Refusal `configuration` if no checkpoint is signed; `archive_damaged` if the archive does not verify;
 *   `copy_refused` if the tree belongs to another log or is not an export; `storage_damaged` if a file there that never
 *   changes differs, or the checkpoint there is not an older one of this log
 */
export async function exportArchive(ports: ExportPorts, signal: AbortSignal): Promise<ExportReport> {
  const startedAt = ports.clock()
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const report = await exportOnce(ports, signal)
    if (report !== null) return { ...report, durationMs: ports.clock() - startedAt }
  }
  throw storageDamaged(
    'the files in the target do not stay as they are written; check what else writes there',
  )
}

/** Most attempts to export while other processes change the files of the newest state. */
const ATTEMPTS_MAX = 10

/** @returns null if another export changed the target meanwhile, which the next attempt continues */
async function exportOnce(
  ports: ExportPorts,
  signal: AbortSignal,
): Promise<Omit<ExportReport, 'durationMs'> | null> {
  const { objects } = ports
  const archive = await verified(() => readSignedArchive(ports))
  const { proved, log } = archive
  const { checkpoint } = log
  const publication = (manifest: Manifest): Promise<Uint8Array> =>
    verified(async () => proveBytes(manifest, await objects.get(manifest.sha256)))
  // After a crash here, the target is an empty folder.
  const tree = await ports.openTree()
  const pages = ports.pagesOf?.({ proved, checkpoint, publication }) ?? null
  const obstacle = obstacleTo(archive, checkpointOf(await tree.get(STATIC_CHECKPOINT), archive))
  if (obstacle !== null) throw checkpointRefused(obstacle)
  await requireOwnTree(tree, pages !== null)
  const objectCopy = {
    has: (sha256: string) => hasObject(tree, sha256),
    read: publication,
    put: (sha256: string, bytes: Uint8Array) => tree.put(staticObjectPath(sha256), bytes),
  }
  const { copied, ...copies } = await copyObjects(proved.timeline, objectCopy, ports.onProgress, signal)
  const counts: FileCounts = { files: copied + copies.unchanged, written: copied, ...copies }
  if (pages) await writePages(tree, pages, counts, signal)
  await writeLog(tree, archive, counts, signal)
  if (!(await replaceNewest(tree, archive, await pages?.overviews(), counts))) return null
  const { origin, size, root } = checkpoint
  return {
    ...counts,
    checkpoint: { origin, size },
    root: Buffer.from(root).toString('hex'),
    unsigned: archive.tree.size - size,
  }
}

async function hasObject(tree: StaticTree, sha256: string): Promise<boolean> {
  const path = staticObjectPath(sha256)
  const stored = await tree.get(path)
  if (stored !== null && sha256Hex(stored) !== sha256) throw differing(path)
  return stored !== null
}

/** Reads a part of the archive; damage of the archive is not damage of the target. */
async function verified<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isDamaged(error)) throw error
    throw new Refusal<ExportRefusal>('archive_damaged', error.detail, { cause: error })
  }
}

/** The refusal to export an archive without a signed checkpoint. */
export function noCheckpoint(): Refusal<ExportRefusal> {
  const advice =
    'create a key with dash log-key new, set DASH_LOG_KEY_FILE to its path and run dash checkpoint, after dash publish-year if nothing is published'
  return new Refusal('configuration', `no checkpoint is signed yet; ${advice}`)
}

/** Reads the newest note, then the ledger, which is then at least as long, and proves both. */
async function readSignedArchive({ year, objects }: ExportPorts): Promise<SignedArchive> {
  const { logFiles } = objects
  const files = newestLogFiles(await logFiles.list())
  if (files === null) throw noCheckpoint()
  const log = openStoredLog(
    await Promise.all(files.map(async (file) => ({ file, bytes: await logFiles.get(file) }))),
  )
  const read = await year.read()
  const tree = ledgerTree(read.contents.rows)
  requireContinued(tree, log.checkpoint)
  const { size } = log.checkpoint
  const head = parseHead((await objects.headFile(size)) ?? new Uint8Array())
  if (head === null) throw storageDamaged(`head ${size} of the newest checkpoint is missing or invalid`)
  const contents = { ...read.contents, rows: read.contents.rows.slice(0, size) }
  return { log, contents, proved: { ...proveLedger(contents, head), head }, tree }
}

/** Number of files in the target: all, those that were written, and those that were there with the same bytes. */
interface FileCounts {
  files: number
  written: number
  unchanged: number
  /** Sum of the written bytes. */
  bytes: number
}

/** The archive up to its newest signed checkpoint. */
interface SignedArchive {
  log: StoredLog
  /** The ledgers up to the checkpoint, as stored. */
  contents: LedgerContents
  proved: ExportedArchive['proved']
  /** Tree that begins with the entries of the checkpoint. */
  tree: MerkleTree
}

/** The checkpoint in the tree, not verified. */
type CheckpointThere = { checkpoint: Checkpoint; note: Note } | 'invalid' | null

/** @throws Refusal `copy_refused` if it belongs to another log */
function checkpointOf(bytes: Uint8Array | null, { log }: SignedArchive): CheckpointThere {
  if (bytes === null) return null
  const read = readCheckpoint(utf8Text(bytes))
  if (read.problem !== null) return 'invalid'
  const { origin } = read.checkpoint
  const own = log.checkpoint.origin
  if (origin !== own)
    throw new Refusal<'copy_refused'>(
      'copy_refused',
      `the target is an export of the log ${origin}, this archive is the log ${own}; choose another target`,
    )
  return read
}

/**
 * Returns the reason why the checkpoint of the archive must not replace the one in the tree; null if it may. The
 * signature of the replaced one is not verified, because keys change: the ledger must continue it.
 */
function obstacleTo({ log, tree }: SignedArchive, there: CheckpointThere): string | null {
  if (there === null) return null
  if (there === 'invalid') return 'is not a signed checkpoint'
  const { size } = log.checkpoint
  if (there.checkpoint.size > size)
    return `has ${there.checkpoint.size} entries, the newest checkpoint of this archive only ${size}`
  const fork = forkOf(tree, there.checkpoint)
  return fork === null ? null : `belongs to another history: ${fork}`
}

function checkpointRefused(obstacle: string): Refusal<StorageRefusal> {
  const advice =
    'restore what this archive lost (docs/signed-log.md#a-second-history), or export to an empty target'
  return storageDamaged(`${STATIC_CHECKPOINT} in the target ${obstacle}; ${advice}`)
}

/**
 * Refuses a tree that has a file of a changing name but no policy, so that no other site is overwritten.
 *
 * @throws Refusal `copy_refused`
 */
async function requireOwnTree(target: StaticTree, hasPages: boolean): Promise<void> {
  if ((await target.get(STATIC_POLICY)) !== null) return
  const pages = [STATIC_HOME, STATIC_DAYS, STATIC_MISSING, ...Object.values(STATIC_FEEDS)]
  for (const path of [STATIC_INDEX, STATIC_HEADERS, ...(hasPages ? pages : [])])
    if ((await target.get(path)) !== null)
      throw new Refusal<'copy_refused'>(
        'copy_refused',
        `the target is not an export and already has ${path}; choose an empty target`,
      )
}

/**
 * Writes the pages of publications that are missing, and that of the publication that was the newest one. The newest page
 * comes first, so that a page is there before another one links to it.
 */
async function writePages(
  target: StaticTree,
  { assets, publications }: ArchivePages,
  counts: FileCounts,
  signal: AbortSignal,
): Promise<void> {
  // After a crash from here on, the tree has pages that no list of days names; the next export continues.
  for (const [path, bytes] of assets) await putOnce(target, path, bytes, counts)
  const stored = new Map<ArchivePage, Uint8Array | null>()
  await concurrently(publications, COPY_CONCURRENCY, signal, async (page) => {
    stored.set(page, await target.get(page.path))
  })
  for (const page of publications.toReversed()) {
    signal.throwIfAborted()
    const before = stored.get(page) ?? null
    const bytes = before !== null && page.isCurrent(before) ? null : await page.render()
    // Another export that replaced the page meanwhile wrote the same or a newer one.
    const isWritten = bytes !== null && (await target.replace(page.path, before, bytes))
    countFile(counts, isWritten ? bytes : null)
  }
}

/** Writes the files of the log that never change. */
async function writeLog(
  target: StaticTree,
  { contents, tree }: SignedArchive,
  counts: FileCounts,
  signal: AbortSignal,
): Promise<void> {
  const entries = contents.rows.map(entryBytes)
  const legacy = legacyText(contents.legacy)
  // After a crash from here on, the target has files without a checkpoint that covers them.
  await concurrently(staticTiles(entries.length), COPY_CONCURRENCY, signal, async (tile) => {
    const bytes = tileBytes(tree, tile, (bundle) => entriesOf(entries, bundle))
    await putOnce(target, staticTilePath(tile), bytes, counts)
  })
  if (legacy !== '') await putOnce(target, STATIC_LEGACY_LEDGER, encode(legacy), counts)
}

/**
 * Replaces the files that name the newest state, the checkpoint last.
 *
 * @param overviews pages and feeds of the newest state
 * @returns false if another process changed one of them meanwhile, or the target has a checkpoint that must stay
 */
async function replaceNewest(
  target: StaticTree,
  archive: SignedArchive,
  overviews: ReadonlyMap<string, Uint8Array> = new Map(),
  counts: FileCounts,
): Promise<boolean> {
  const { proved, log } = archive
  const changing = new Map([
    // The policy is the first of the files that change, because it marks the tree as an export.
    [STATIC_POLICY, encode(log.policy)],
    // After a crash from here on, the index may list publications after the checkpoint, whose objects are there.
    [STATIC_INDEX, encode(JSON.stringify(historyIndex(proved, proved.head)))],
    [STATIC_HEADERS, encode(staticHeadersText())],
    ...overviews,
    [STATIC_CHECKPOINT, encode(log.note)],
  ])
  const before = new Map<string, Uint8Array | null>()
  for (const path of changing.keys()) before.set(path, await target.get(path))
  // The checkpoint is compared after all files are read: what another process writes from here on is not replaced.
  const there = checkpointOf(before.get(STATIC_CHECKPOINT) ?? null, archive)
  if (obstacleTo(archive, there) !== null) return false
  for (const [path, bytes] of changing) {
    const stored = before.get(path) ?? null
    const isUnchanged = stored !== null && areSameBytes(stored, bytes)
    if (!isUnchanged && !(await target.replace(path, stored, bytes))) return false
    countFile(counts, isUnchanged ? null : bytes)
  }
  return true
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Stores a file that never changes. */
async function putOnce(
  target: StaticTree,
  path: string,
  bytes: Uint8Array,
  counts: FileCounts,
): Promise<void> {
  const stored = await target.get(path)
  if (stored !== null && !areSameBytes(stored, bytes)) throw differing(path)
  if (stored === null) await target.put(path, bytes)
  countFile(counts, stored === null ? bytes : null)
}

function differing(path: string): Refusal<StorageRefusal> {
  return storageDamaged(
    `${path} in the target differs from the log and is never overwritten; if the target is damaged, remove the file and run the command again`,
  )
}

/** @param bytes bytes of a file that was written; null for one that was there */
function countFile(counts: FileCounts, bytes: Uint8Array | null): void {
  counts.files += 1
  counts.written += bytes === null ? 0 : 1
  counts.unchanged += bytes === null ? 1 : 0
  counts.bytes += bytes?.byteLength ?? 0
}
