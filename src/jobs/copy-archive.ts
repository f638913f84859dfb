import type { LeaseHolder } from '../domain/job-run.ts'
import type { Objects, Auditors, Clock, Ledger, YearReader } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { auditLedger } from '../domain/year/audit.ts'
import { isDamage, objectPath } from '../domain/year/finding.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import { proveBytes } from '../domain/year/envelope.ts'
import type { Head, LedgerContents, LedgerRow, LegacyRow, Manifest } from '../domain/year/ledger.ts'
import { leaseLost, withPublisherLease } from './publisher.ts'
import { verifyArchive } from './verify-archive.ts'
import type { VerifyReport } from './verify-archive.ts'

/** One archive: its two stores, and how an audit reads them. */
export interface ArchivePlace {
  ledger: Ledger
  archive: Objects
  year: YearReader
  auditors: Auditors
}

export interface CopyPorts {
  source: ArchivePlace
  target: ArchivePlace
  clock: Clock
  holder: LeaseHolder
  isDead: (process: string) => boolean
  onNote: (message: string) => void
  onProgress: (progress: { objects: number; ofObjects: number; bytes: number }) => void
}

/** The JSON result of `copy-archive` (docs/backup.md). */
export interface CopyReport {
  /** Objects, heads and entries that were written; those the target had already are `unchanged`. */
  objects: { copied: number; unchanged: number; bytes: number }
  heads: { copied: number; unchanged: number }
  entries: { copied: number; unchanged: number }
  legacy: { copied: number; unchanged: number }
  head: VerifyReport['head']
  durationMs: number
}

/** Why a target does not take a copy. */
type CopyRefusal = 'copy_refused'

/** Objects under way at the same time. */
const AT_A_TIME = 8

/**
 * Copies an archive to other engines (docs/operations.md): every object, every head, then all rows of the ledger in one
 * transaction, then an audit of the copy. What the target has already must be the beginning of the same archive, so
 * that a copy that was cut short goes on, and nothing is ever overwritten or deleted. Until the rows are there the
 * target has heads without their entries, and so answers nothing.
 *
 * @throws Refusal `copy_refused` when the target holds another archive, `lease_held` while somebody publishes there,
 *   `storage_damaged` when the source cannot be proved or the copy is not sound
 */
export async function copyArchive(ports: CopyPorts, signal: AbortSignal): Promise<CopyReport> {
  const { source, target, clock } = ports
  const startedAt = clock()
  await target.archive.prepare()
  const lease = { ...ports, ledger: target.ledger, onProgress: ports.onNote }
  return withPublisherLease(lease, async (token) => {
    const { contents, proved, heads: sourceHeads } = await readSource(source)
    const before = await target.ledger.read()
    requireBeginning(before, contents)
    await requireOwnHeads(target.archive, contents.rows)
    const objects = await copyObjects(ports, proved, signal)
    const heads = await copyHeads(sourceHeads, target.archive)
    const attempts = await source.ledger.everyAttempt()
    const refusal = await target.ledger.adopt(contents, attempts, before, { token, now: clock() })
    if (refusal === 'lease-lost') throw leaseLost()
    if (refusal !== null) throw copyRefused('its ledger was written to meanwhile; run the command again')
    return {
      objects,
      heads,
      entries: counted(contents.rows, before.rows),
      legacy: counted(contents.legacy, before.legacy),
      head: await auditCopy(ports, signal),
      durationMs: clock() - startedAt,
    }
  })
}

function copyRefused(why: string): Refusal<CopyRefusal> {
  return new Refusal('copy_refused', `the target does not take the copy: ${why}`)
}

function counted(all: readonly unknown[], before: readonly unknown[]): { copied: number; unchanged: number } {
  return { copied: all.length - before.length, unchanged: before.length }
}

interface Source {
  contents: LedgerContents
  proved: ProvedLedger
  heads: Head[]
}

/** Nothing that is not sound may reach a store in which nothing can be taken back. */
async function readSource(source: ArchivePlace): Promise<Source> {
  const { contents, proved } = await source.year.read()
  // A publisher at work may have gone on since; what it adds is in the next copy.
  const audited = (await source.auditors.archive.heads()).filter(({ seq }) => seq <= contents.rows.length)
  if (proved.unfinished)
    throw new Refusal('usage', 'an import into the archive to copy was begun and has not ended')
  if (contents.rows.length === 0) throw emptyArchive()
  const rows = contents.rows.map((row) => ({ row }))
  const legacy = contents.legacy.map((row) => ({ row }))
  const [finding] = auditLedger({ ...contents, rows, legacy }, audited, null).findings
  if (finding) {
    throw new Refusal(
      'storage_damaged',
      `the archive to copy is not sound: ${finding.code} ${finding.path}; run dash verify-archive on it`,
    )
  }
  return { contents, proved, heads: audited.flatMap(({ head }) => head ?? []) }
}

/** Every row the target has must stand in the source at the same place. */
function requireBeginning(target: LedgerContents, source: LedgerContents): void {
  const differs = (
    mine: readonly (LedgerRow | LegacyRow)[],
    theirs: readonly (LedgerRow | LegacyRow)[],
  ): number => mine.findIndex((row, index) => JSON.stringify(row) !== JSON.stringify(theirs[index]))
  const entry = differs(target.rows, source.rows)
  if (entry >= 0) throw copyRefused(`its ledger entry ${entry + 1} is not the one of the archive to copy`)
  const legacy = differs(target.legacy, source.legacy)
  if (legacy >= 0)
    throw copyRefused(`its legacy publication ${legacy + 1} is not the one of the archive to copy`)
  const founding = JSON.stringify(target.founding)
  if (target.founding !== null && founding !== JSON.stringify(source.founding)) {
    throw copyRefused('an import of another archive was begun there')
  }
}

async function requireOwnHeads(archive: Objects, rows: readonly LedgerRow[]): Promise<void> {
  const newest = await archive.newestHead()
  if (newest === null || rows[newest.seq - 1]?.leaf === newest.leaf) return
  throw copyRefused(`its head ${newest.seq} is not one of the archive to copy`)
}

async function copyObjects(
  { source, target, onProgress }: CopyPorts,
  { timeline }: ProvedLedger,
  signal: AbortSignal,
): Promise<CopyReport['objects']> {
  const there = new Set(await target.archive.keys('sha256'))
  const result = { copied: 0, unchanged: 0, bytes: 0 }
  const copy = async (manifest: Manifest): Promise<void> => {
    if (there.has(objectPath(manifest.sha256))) {
      result.unchanged += 1
      return
    }
    const bytes = proveBytes(manifest, await source.archive.get(manifest.sha256))
    await target.archive.put(manifest.sha256, bytes)
    result.copied += 1
    result.bytes += bytes.byteLength
  }
  for (let start = 0; start < timeline.length; start += AT_A_TIME) {
    signal.throwIfAborted()
    await Promise.all(timeline.slice(start, start + AT_A_TIME).map(({ manifest }) => copy(manifest)))
    onProgress({ objects: result.copied + result.unchanged, ofObjects: timeline.length, bytes: result.bytes })
  }
  return result
}

async function copyHeads(heads: readonly Head[], target: Objects): Promise<CopyReport['heads']> {
  const there = new Set(await target.keys('heads'))
  const result = { copied: 0, unchanged: 0 }
  for (const head of heads) {
    if (there.has(`heads/${head.seq}`)) result.unchanged += 1
    else result.copied += 1
    // A head that is there already must be the same.
    await target.putHead(head)
  }
  return result
}

async function auditCopy(ports: CopyPorts, signal: AbortSignal): Promise<VerifyReport['head']> {
  const { report, cause } = await verifyArchive(
    {
      ...ports.target.auditors,
      clock: ports.clock,
      random: () => 0,
      onProgress: () => undefined,
      onNote: ports.onNote,
    },
    { sample: null, since: null, expectedHead: null, payloads: false, jobs: AT_A_TIME, signal },
  )
  if (cause !== null) throw cause
  const finding = report.findings.find(isDamage)
  if (!report.ok || finding) {
    throw new Refusal(
      'storage_damaged',
      `the copy is not sound: ${finding?.code} ${finding?.path}; run dash verify-archive on it`,
    )
  }
  return report.head
}

/** The refusal to copy an archive that has no entry yet. */
export function emptyArchive(): Refusal<'usage'> {
  return new Refusal('usage', 'the archive to copy is empty; check --data-dir')
}
