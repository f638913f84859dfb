import type { Clock, Objects, StaticTree, YearReader } from '../../domain/ports.ts'
import { utf8Text } from '../../domain/text.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import type { StorageRefusal } from '../../domain/refusal.ts'
import { proveLedger } from '../../domain/year/check.ts'
import { proveBytes } from '../../domain/year/envelope.ts'
import { parseHead } from '../../domain/year/ledger.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { forkOf, ledgerTree } from '../../domain/year/log/log-history.ts'
import { lostWitness } from '../../domain/year/log/log-policy.ts'
import { readCheckpoint } from '../../domain/year/log/signed-note.ts'
import type { Checkpoint, Note } from '../../domain/year/log/signed-note.ts'
import { STATIC_CHECKPOINT, staticObjectPath } from '../../domain/year/log/static-layout.ts'
import { newestLogFiles, openStoredLog, requireContinued } from '../../domain/year/log/stored-log.ts'
import type { StoredLog } from '../../domain/year/log/stored-log.ts'
import { copyObjects } from './copy-objects.ts'
import type { ObjectProgress } from './copy-objects.ts'
import { hasObject, requireOwnTree, writeStaticFiles } from './write-static.ts'
import type { FileCounts, StaticContent } from './write-static.ts'

export interface ExportPorts {
  year: YearReader
  objects: Pick<Objects, 'get' | 'headFile' | 'logFiles'>
  /** Opens the target, and creates a missing folder. */
  openTree: () => Promise<StaticTree>
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

type ExportRefusal = 'archive_damaged' | 'copy_refused' | 'configuration' | StorageRefusal

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
  const { objects, clock } = ports
  const startedAt = clock()
  const archive = await verified(() => readSignedArchive(ports))
  // After a crash here, the target is an empty folder.
  const tree = await ports.openTree()
  const obstacle = obstacleTo(archive, checkpointOf(await tree.get(STATIC_CHECKPOINT), archive))
  if (obstacle !== null) throw checkpointRefused(obstacle)
  await requireOwnTree(tree)
  const target = {
    has: (sha256: string) => hasObject(tree, sha256),
    put: (sha256: string, bytes: Uint8Array) => tree.put(staticObjectPath(sha256), bytes),
  }
  const read = (manifest: Manifest): Promise<Uint8Array> =>
    verified(async () => proveBytes(manifest, await objects.get(manifest.sha256)))
  // After a crash here, the tree has objects without tiles.
  const copied = await copyObjects(read, archive.proved.timeline, target, ports.onProgress, signal)
  const counts = {
    files: copied.copied + copied.unchanged,
    written: copied.copied,
    unchanged: copied.unchanged,
    bytes: copied.bytes,
  }
  const isWritten = await writeStaticFiles(
    tree,
    { ...archive, policy: archive.log.policy, note: archive.log.note },
    counts,
    async (there) => obstacleTo(archive, checkpointOf(there, archive)) === null,
    signal,
  )
  // Another export wrote a larger checkpoint meanwhile: start again from the newest note.
  if (!isWritten) return exportArchive(ports, signal)
  const { origin, size, root } = archive.log.checkpoint
  const checkpoint = { origin, size }
  return {
    ...counts,
    checkpoint,
    root: Buffer.from(root).toString('hex'),
    durationMs: clock() - startedAt,
  }
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

/** The archive up to its newest signed checkpoint. */
interface SignedArchive extends Pick<StaticContent, 'contents' | 'proved' | 'head' | 'tree'> {
  log: StoredLog
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
    throw new Refusal<ExportRefusal>(
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
  if (fork !== null) return `belongs to another history: ${fork}`
  const lost = lostWitness(there.note, log.parsedNote, log.parsedPolicy)
  return there.checkpoint.size < size || lost === null
    ? null
    : `has a newer cosignature of ${lost} than this archive`
}

function checkpointRefused(obstacle: string): Refusal<StorageRefusal> {
  const advice =
    'restore what this archive lost (docs/signed-log.md#a-second-history), or export to an empty target'
  return storageDamaged(`${STATIC_CHECKPOINT} in the target ${obstacle}; ${advice}`)
}
