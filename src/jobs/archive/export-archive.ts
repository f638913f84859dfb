import type { Clock, Objects, StaticTree, YearReader } from '../../domain/ports.ts'
import type { ArchivePages, ExportedArchive } from '../../domain/year/log/static-layout.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import { proveLedger } from '../../domain/year/check.ts'
import { proveBytes } from '../../domain/year/envelope.ts'
import { parseHead } from '../../domain/year/ledger.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { ledgerTree } from '../../domain/year/log/log-history.ts'
import type { Checkpoint } from '../../domain/year/log/signed-note.ts'
import { newestLogFiles, openStoredLog, requireContinued } from '../../domain/year/log/check-log.ts'
import { copy } from './copy-archive.ts'
import type { ObjectProgress } from './copy-archive.ts'
import { treeWriter } from './static-writer.ts'
import type { FileCounts, SignedArchive } from './static-writer.ts'

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
  const { checkpoint } = archive.log
  const publication = (manifest: Manifest): Promise<Uint8Array> =>
    verified(async () => proveBytes(manifest, await objects.get(manifest.sha256)))
  // After a crash here, the target is an empty folder.
  const tree = await ports.openTree()
  const proved = { ...archive.proved, head: archive.head }
  const pages = ports.pagesOf?.({ proved, checkpoint, publication }) ?? null
  const reader = { timeline: proved.timeline, publication }
  const counts = await copy(reader, treeWriter(tree, archive, pages, signal), ports.onProgress, signal)
  const { origin, size, root } = checkpoint
  return counts && { ...counts, checkpoint: { origin, size }, root: Buffer.from(root).toString('hex') }
}

/** Reads a part of the archive; damage of the archive is not damage of the target. */
async function verified<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'storage_damaged') throw error
    throw new Refusal<ExportRefusal>('archive_damaged', error.detail, { cause: error })
  }
}

/** The refusal to export an archive without a signed checkpoint. */
export function noCheckpoint(): Refusal<ExportRefusal> {
  const advice =
    'create a key with dash log-key new, set DASH_LOG_KEY_FILE to its path and run dash checkpoint'
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
  return { log, contents, proved: proveLedger(contents, head), head, tree }
}
