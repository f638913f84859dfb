import type { Objects, ArchiveFolder, Ledger, YearReader } from '../domain/year/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Instant } from '../domain/time.ts'
import { headIsBehind } from '../domain/year/chain.ts'
import { proveBytes } from '../domain/year/envelope.ts'
import type { FoundingRefusal, Head } from '../domain/year/ledger.ts'
import {
  startsWithFounding,
  MANIFESTS_FILE,
  parseManifestRow,
  planFounding,
  duplicateIdRefusals,
  sealFounding,
} from '../domain/year/legacy-import.ts'
import type { ImportRefusal, ListedPublication } from '../domain/year/legacy-import.ts'
import { shorten } from '../domain/text.ts'
import { decodeLine } from './import-lines.ts'
import { leaseLost, withPublisherLease } from './lease.ts'
import type { LeasePorts } from './lease.ts'

/** The JSON result of `import archive` (docs/importing.md). */
export interface ArchiveImportReport {
  imported: number
  unchanged: number
  /** The first hundred refusals; `line` and `publicationId` are null for the import as a whole. */
  refused: ImportRefusal[]
  refusedCount: number
}

export interface ArchiveImportPorts extends LeasePorts {
  folder: ArchiveFolder
  ledger: Ledger
  objects: Pick<Objects, 'put' | 'putHead'>
  year: YearReader
  /** Creates the folders of the stores; called after everything is verified, before the stores are used. */
  prepare: () => void
  /** Called with the number of finished publications; an import processes them twice. */
  onPublication: (step: 'verified' | 'stored', count: number, of: number) => void
  /** Ends the import between two publications, before its commit. */
  signal: AbortSignal
}

/**
 * Founds an archive with older publications (docs/decisions/0010-archive-import.md). All or nothing: every publication
 * is verified before anything is written, and every refusal is reported. The same import again changes nothing, and
 * continues after a crash.
 *
 * @throws Refusal `input_unreadable` when the list cannot be read or a file changes meanwhile, `lease_held` or
 *   `lease_lost` when another publisher is running, `storage_*` when the archive cannot be proved; faults
 */
export async function importArchive(ports: ArchiveImportPorts): Promise<ArchiveImportReport> {
  const report: ArchiveImportReport = { imported: 0, unchanged: 0, refused: [], refusedCount: 0 }
  const listed = await readList(ports, report)
  for (const repeated of duplicateIdRefusals(listed)) refuse(report, repeated)
  await verifyFiles(ports, listed, report)
  if (listed.length === 0 && report.refusedCount === 0)
    refuse(report, wholeImport(`${MANIFESTS_FILE} lists no publication`))
  report.refused.sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
  if (report.refusedCount > 0) return report
  ports.prepare()
  // A crash from here on: the lease expires.
  return withPublisherLease(ports, async (token) => {
    await foundLedger(ports, listed, token, report)
    return report
  })
}

async function foundLedger(
  ports: ArchiveImportPorts,
  listed: readonly ListedPublication[],
  token: string,
  report: ArchiveImportReport,
): Promise<void> {
  const { ledger, objects, clock } = ports
  const founding = planFounding(listed)
  const { proved, head } = await ports.year.read()
  const lastEntry = proved.entries.at(-1)
  if (startsWithFounding(proved.entries, founding)) {
    // Write the head that a crash after the commit left out.
    if (lastEntry && headIsBehind(proved.entries, head)) await objects.putHead(headOf(lastEntry, clock()))
    report.unchanged = listed.length
    return
  }
  if (lastEntry) return refuse(report, wholeImport(ALREADY_FOUNDED))
  const { unfinished } = proved
  const last = founding.rows.at(-1)
  if (unfinished && (unfinished.seq !== last?.seq || unfinished.leaf !== last.leaf))
    return refuse(report, wholeImport(OTHER_BEGUN))
  // A crash in between leaves objects without a reference.
  await storeObjects(ports, listed)
  if (last) {
    const mark = unfinished ?? { seq: last.seq, leaf: last.leaf, beganAt: clock() }
    // A crash from here on: only this import may write to the archive.
    requireCommitted(await ledger.beginFounding(mark, { token, now: clock() }))
    await objects.putHead(headOf(last, mark.beganAt))
  }
  const now = clock()
  const seal = sealFounding(founding, now)
  // The commit point. A crash after it: the next import, or publication, writes the head.
  requireCommitted(await ledger.commitFounding(founding, seal, { token, now }))
  await objects.putHead(headOf(seal, clock()))
  report.imported = listed.length
}

const ALREADY_FOUNDED =
  'the ledger already has entries from elsewhere; import an archive into an empty data folder, before any publication'

const OTHER_BEGUN =
  'the import of another archive is not finished; run that import again, or import this one into a new data folder'

function headOf({ seq, leaf }: Pick<Head, 'seq' | 'leaf'>, time: Instant): Head {
  return { seq, leaf, time }
}

function requireCommitted(refused: FoundingRefusal | null): void {
  if (refused === 'lease-lost') throw leaseLost()
  if (refused !== null) throw new Error('another process without the lease wrote to the ledger')
}

async function readList(
  { folder, clock, signal }: ArchiveImportPorts,
  report: ArchiveImportReport,
): Promise<ListedPublication[]> {
  const now = clock()
  const listed: ListedPublication[] = []
  for await (const lines of folder.manifests.lines()) {
    signal.throwIfAborted()
    for (const line of lines) {
      const { number } = line
      const decoded = decodeLine(line)
      const parsed =
        'problem' in decoded
          ? { publicationId: null, line: number, reason: decoded.problem }
          : parseManifestRow(decoded.value, number, now)
      if ('manifest' in parsed) listed.push(parsed)
      else refuse(report, parsed)
    }
  }
  return listed
}

/** Reads and proves the files one at a time, because an archive may exceed the memory. */
async function verifyFiles(
  ports: ArchiveImportPorts,
  listed: readonly ListedPublication[],
  report: ArchiveImportReport,
): Promise<void> {
  for (const [index, publication] of listed.entries()) {
    ports.signal.throwIfAborted()
    try {
      await readProved(ports, publication)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const { line, manifest } = publication
      const { publicationId } = manifest
      refuse(report, { publicationId, line, reason: error.detail ?? error.code })
    }
    ports.onPublication('verified', index + 1, listed.length)
  }
}

async function readProved(
  { folder }: ArchiveImportPorts,
  { manifest, file }: ListedPublication,
): Promise<Uint8Array> {
  return proveBytes(manifest, await folder.read(file, manifest.byteSize))
}

/** Reads and proves the files again before it stores them, so that a changed file is never stored. */
async function storeObjects(ports: ArchiveImportPorts, listed: readonly ListedPublication[]): Promise<void> {
  for (const [index, publication] of listed.entries()) {
    ports.signal.throwIfAborted()
    const { line, file, manifest } = publication
    const bytes = await readProved(ports, publication).catch((cause: unknown) => {
      if (!(cause instanceof Refusal)) throw cause
      const changed = `line ${line}: ${file} changed while it was imported: ${cause.detail ?? cause.code}`
      throw new Refusal('input_unreadable', changed, { cause })
    })
    await ports.objects.put(manifest.sha256, bytes)
    ports.onPublication('stored', index + 1, listed.length)
  }
}

const REFUSALS_KEPT = 100

/** Counts every refusal and keeps the first hundred, each on one short line. */
function refuse(report: ArchiveImportReport, { publicationId, line, reason }: ImportRefusal): void {
  report.refusedCount += 1
  if (report.refused.length === REFUSALS_KEPT) return
  const id = publicationId === null ? null : shorten(publicationId)
  report.refused.push({ publicationId: id, line, reason: shorten(reason) })
}

function wholeImport(reason: string): ImportRefusal {
  return { publicationId: null, line: null, reason }
}
