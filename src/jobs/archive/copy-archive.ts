import type { LeaseHolder } from '../../domain/jobs.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Ledger, LedgerAuditor, Objects, ObjectsAuditor, YearReader } from '../../domain/year/ports.ts'
import { Refusal, storageDamaged, storageUnavailable } from '../../domain/refusal.ts'
import type { StorageRefusal } from '../../domain/refusal.ts'
import type { TimelineItem } from '../../domain/year/chain.ts'
import { auditLedger } from '../../domain/year/check.ts'
import { proveBytes } from '../../domain/year/envelope.ts'
import { objectPath } from '../../domain/year/examine.ts'
import { isDamage, isReadError } from '../../domain/year/finding.ts'
import type { Finding } from '../../domain/year/finding.ts'
import { leafText, legacyText } from '../../domain/year/ledger.ts'
import type { Head, LedgerContents, LedgerRow, Manifest } from '../../domain/year/ledger.ts'
import { logFileName } from '../../domain/year/log/log-history.ts'
import { concurrently } from '../concurrently.ts'
import { leaseLost, withPublisherLease } from '../lease.ts'
import { audit } from './audit.ts'
import type { VerifyReport } from './audit.ts'
import { ownArchive, readHeads } from './archives.ts'

/** An archive: its two stores, and their read-only form for an audit. */
export interface ArchiveStores {
  ledger: Ledger
  objects: Objects
  year: YearReader
  auditors: { ledger: LedgerAuditor; objects: ObjectsAuditor }
}

export interface CopyPorts {
  source: ArchiveStores
  target: ArchiveStores
  clock: Clock
  holder: LeaseHolder
  isDead: (process: string) => boolean
  onNote: (message: string) => void
  onProgress: ObjectProgress
}

/** The JSON result of `copy-archive` (docs/backup.md). */
export interface CopyReport {
  /** Written objects, heads and entries; `unchanged` ones were already in the target. */
  objects: ObjectCounts
  heads: CopyCounts
  /** Signed checkpoints and policies. */
  logFiles: CopyCounts
  entries: CopyCounts
  legacy: CopyCounts
  head: VerifyReport['head']
  durationMs: number
}

type CopyRefusal = 'copy_refused'

/**
 * Copies an archive to other engines (docs/operations.md): every object, every head, then all rows of the ledger in
 * one transaction, then the files of the signed log, then an audit of the copy. The target must hold a beginning of
 * the same archive, so that an interrupted copy continues and nothing is overwritten or deleted.
 *
 * @throws Refusal `copy_refused` when the target holds another archive, `lease_held` while another process publishes
 *   there, `storage_damaged` when the source cannot be proved or the copy is not sound
 */
export async function copyArchive(ports: CopyPorts, signal: AbortSignal): Promise<CopyReport> {
  const { source, target, clock } = ports
  const startedAt = clock()
  await target.objects.prepare()
  const lease = { ...ports, ledger: target.ledger, onProgress: ports.onNote }
  // A crash from here on: the lease expires.
  return withPublisherLease(lease, async (token) => {
    const before = await target.ledger.read()
    const { contents, timeline, heads: sourceHeads } = await readSource(source)
    requirePrefix(before, contents)
    await requireOwnHeads(target.objects, contents.rows)
    const existing = new Set(await target.objects.keys('sha256'))
    const objectCopy = {
      has: async (sha256: string) => existing.has(objectPath(sha256)),
      read: async (manifest: Manifest) => proveBytes(manifest, await source.objects.get(manifest.sha256)),
      put: (sha256: string, bytes: Uint8Array) => target.objects.put(sha256, bytes),
    }
    const objects = await copyObjects(timeline, objectCopy, ports.onProgress, signal)
    // A crash from here on leaves heads without entries: the target serves nothing.
    const heads = await copyHeads(sourceHeads, target.objects)
    // Without the attempts, a day could get a fourth one.
    const attempts = await source.ledger.attempts()
    // The commit point: all rows or none.
    const refusal = await target.ledger.adopt(contents, attempts, before, { token, now: clock() })
    if (refusal === 'lease-lost') throw leaseLost()
    if (refusal !== null) throw copyRefused('its ledger changed during the copy; run the command again')
    // After a crash here, notes are missing from the copy, and the next copy adds them.
    const logFiles = await copyLogFiles(source.objects, target.objects, contents.rows.length)
    const entries = copyCounts(contents.rows, before.rows)
    const legacy = copyCounts(contents.legacy, before.legacy)
    const head = await auditCopy(ports, signal)
    return { objects, heads, logFiles, entries, legacy, head, durationMs: clock() - startedAt }
  })
}

/** The refusal to change a target that is not a beginning of the source. */
function copyRefused(reason: string): Refusal<CopyRefusal> {
  return new Refusal('copy_refused', `the target cannot receive the copy: ${reason}`)
}

/** The refusal to copy an archive that has no entry yet. */
export function emptyArchive(): Refusal<'usage'> {
  return new Refusal('usage', 'the archive to copy is empty; check --data-dir')
}

function unsound(which: string, { code, path }: Finding): Refusal<StorageRefusal> {
  return storageDamaged(`${which} is damaged: ${code} ${path}; run dash verify-archive on it`)
}

function copyCounts(all: readonly unknown[], before: readonly unknown[]): CopyCounts {
  return { copied: all.length - before.length, unchanged: before.length }
}

/** Reads and proves the archive to copy: the target is append-only, so that damage must not reach it. */
async function readSource({ year, auditors }: ArchiveStores) {
  const { contents, proved } = await year.read()
  // A running publisher may have added heads; the next copy includes them.
  const heads = (await readHeads(auditors.objects)).filter(({ seq }) => seq <= contents.rows.length)
  if (proved.unfinished) throw new Refusal('usage', 'an import into the archive to copy is not finished')
  if (contents.rows.length === 0) throw emptyArchive()
  const [finding] = auditLedger(contents, heads, null).findings
  if (finding) throw unsound('the archive to copy', finding)
  return { contents, timeline: proved.timeline, heads: heads.flatMap(({ head }) => head ?? []) }
}

/** Requires every row of the target to be in the source at the same position. */
function requirePrefix(target: LedgerContents, source: LedgerContents): void {
  const differing = (mine: readonly string[], theirs: readonly string[]): number =>
    1 + mine.findIndex((text, index) => text !== theirs[index])
  const entriesOf = ({ rows }: LedgerContents): string[] => rows.map((row) => `${leafText(row)} ${row.leaf}`)
  const entry = differing(entriesOf(target), entriesOf(source))
  if (entry > 0) throw copyRefused(`its ledger entry ${entry} differs from the archive to copy`)
  const legacyOf = ({ legacy: rows }: LedgerContents): string[] => rows.map((row) => legacyText([row]))
  const legacy = differing(legacyOf(target), legacyOf(source))
  if (legacy > 0) throw copyRefused(`its legacy publication ${legacy} differs from the archive to copy`)
  if (target.founding !== null && JSON.stringify(target.founding) !== JSON.stringify(source.founding))
    throw copyRefused('an import of another archive was started there')
}

async function requireOwnHeads(objects: Objects, rows: readonly LedgerRow[]): Promise<void> {
  const newest = await objects.newestHead()
  if (newest === null || rows[newest.seq - 1]?.leaf === newest.leaf) return
  throw copyRefused(`its head ${newest.seq} is not in the archive to copy`)
}

async function copyHeads(heads: readonly Head[], target: Objects): Promise<CopyReport['heads']> {
  const existing = new Set(await target.keys('heads'))
  // An existing head must be the same.
  for (const head of heads) await target.putHead(head)
  const copied = heads.filter(({ seq }) => !existing.has(`heads/${seq}`)).length
  return { copied, unchanged: heads.length - copied }
}

/** @param entries number of entries of the copied ledger; later checkpoints are left to the next copy */
async function copyLogFiles(
  { logFiles: source }: Objects,
  { logFiles: target }: Objects,
  entries: number,
): Promise<CopyReport['logFiles']> {
  const there = new Set((await target.list()).map(logFileName))
  const files = (await source.list()).filter((file) => file.kind === 'policy' || file.size <= entries)
  for (const file of files) {
    const bytes = await source.get(file)
    if (bytes === null) throw storageDamaged(`tlog/year/${logFileName(file)} is listed but missing`)
    // Refused if the target has a different file of this name.
    await target.put(file, bytes)
  }
  const copied = files.filter((file) => !there.has(logFileName(file))).length
  return { copied, unchanged: files.length - copied }
}

async function auditCopy({ target, clock }: CopyPorts, signal: AbortSignal): Promise<VerifyReport['head']> {
  const { report, cause } = await audit(
    ownArchive(target.auditors, { expectedHead: null, payloads: false }),
    { clock, random: () => 0, onProgress: () => undefined },
    { sample: null, since: null, jobs: COPY_CONCURRENCY, signal },
  )
  if (cause !== null) throw cause
  const damage = report.findings.find(isDamage)
  if (damage) throw unsound('the copy', damage)
  const unread = report.findings.find(({ actual }) => isReadError(actual))
  if (unread)
    throw storageUnavailable(
      `the copy could not be audited (${unread.path}: ${unread.actual}); run dash verify-archive on it`,
    )
  return report.head
}

/** Objects and files that are copied at a time. */
export const COPY_CONCURRENCY = 8

interface CopyCounts {
  copied: number
  /** Number of items that were there before. */
  unchanged: number
}

/** The objects of a copy: their source, and what is there already. */
interface ObjectCopy {
  /** Returns true if the target has the object. @throws Refusal `storage_damaged` if it has other bytes there */
  has: (sha256: string) => Promise<boolean>
  /** Returns the bytes of a publication, verified. */
  read: (manifest: Manifest) => Promise<Uint8Array>
  put: (sha256: string, bytes: Uint8Array) => Promise<void>
}

type ObjectCounts = CopyCounts & { bytes: number }

export type ObjectProgress = (progress: { objects: number; ofObjects: number; bytes: number }) => void

/**
 * Copies the objects of an archive to other stores or to a tree of static files, {@link COPY_CONCURRENCY} at a time. All
 * copies keep one rule of what may be overwritten: a target holds nothing or a beginning of the archive. What it holds of
 * publications, entries and the log stays, and must have the same bytes; only files that name the newest state are
 * replaced, by those of a later state.
 */
export async function copyObjects(
  timeline: readonly TimelineItem[],
  { has, read, put }: ObjectCopy,
  onProgress: ObjectProgress,
  signal: AbortSignal,
): Promise<ObjectCounts> {
  const counts = { copied: 0, unchanged: 0, bytes: 0 }
  // After a crash from here on, the target has objects that nothing names, and the next copy continues.
  await concurrently(timeline, COPY_CONCURRENCY, signal, async ({ manifest }) => {
    if (await has(manifest.sha256)) counts.unchanged += 1
    else {
      const bytes = await read(manifest)
      await put(manifest.sha256, bytes)
      counts.copied += 1
      counts.bytes += bytes.byteLength
    }
    const { copied, unchanged, bytes } = counts
    onProgress({ objects: copied + unchanged, ofObjects: timeline.length, bytes })
  })
  return counts
}
