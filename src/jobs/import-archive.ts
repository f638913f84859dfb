import type { Objects, ArchiveFolder, InputLine, Ledger, YearReader } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { headIsBehind } from '../domain/year/chain.ts'
import { proveBytes } from '../domain/year/envelope.ts'
import type { Head, LedgerRow, FoundingRefusal } from '../domain/year/ledger.ts'
import {
  beganWith,
  MANIFESTS_FILE,
  parseListed,
  planFounding,
  repeatedIds,
  sealFounding,
} from '../domain/year/legacy-import.ts'
import type { Founding, ImportRefusal, ListedPublication } from '../domain/year/legacy-import.ts'
import { leaseLost, withPublisherLease } from './publisher.ts'
import type { LeasePorts } from './publisher.ts'
import { shorten } from './collect-sources.ts'

/** What an import did: the JSON result of `import archive` (docs/importing.md). */
export interface ArchiveImportReport {
  imported: number
  unchanged: number
  /** The first hundred reasons why nothing was written; `line` and `publicationId` are null for the import as a whole. */
  refused: ImportRefusal[]
  refusedCount: number
}

export interface ArchiveImportPorts extends LeasePorts {
  folder: ArchiveFolder
  ledger: Ledger
  archive: Pick<Objects, 'put' | 'putHead'>
  year: YearReader
  /** Makes the folders of the stores; called once everything is verified, before the stores are used. */
  prepare: () => void
  /** Called with the publications handled so far; an import goes over them twice. */
  onPublication: (step: 'verified' | 'stored', count: number, of: number) => void
  /** Ends the import between two publications, unless it is committed already. */
  signal: AbortSignal
}

/**
 * Founds an archive with older publications (docs/decisions/0010-founding-an-archive.md). All or nothing: every
 * publication is verified before anything is written, and every refusal is reported. The same import again changes
 * nothing. The order of effects can be cut anywhere: objects durable, mark, head before the seal, both ledgers (the
 * commit point), head.
 *
 * @throws Refusal `input_unreadable` when the list cannot be read or a file changes meanwhile, `lease_held` or
 *   `lease_lost` when a publisher works, `storage_*` when the archive cannot be proved; faults
 */
export async function importArchive(ports: ArchiveImportPorts): Promise<ArchiveImportReport> {
  const refusals = new Refusals()
  const listed = await readList(ports, refusals)
  for (const refused of repeatedIds(listed)) refusals.add(refused)
  await verifyFiles(ports, listed, refusals)
  if (refusals.count > 0) return refusals.report()
  if (listed.length === 0) return refusal(`${MANIFESTS_FILE} lists no publication`)
  ports.prepare()
  return withPublisherLease(ports, (token) => found(ports, listed, token))
}

const REFUSALS_KEPT = 100

/** Refusals of an import: all are counted, the first hundred kept, each on one short line. */
class Refusals {
  count = 0
  readonly #kept: ImportRefusal[] = []

  add({ publicationId, line, reason }: ImportRefusal): void {
    this.count += 1
    if (this.#kept.length === REFUSALS_KEPT) return
    const id = publicationId === null ? null : shorten(publicationId)
    this.#kept.push({ publicationId: id, line, reason: shorten(reason) })
  }

  report(): ArchiveImportReport {
    const refused = this.#kept.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    return { imported: 0, unchanged: 0, refused, refusedCount: this.count }
  }
}

async function readList(
  { folder, clock, signal }: ArchiveImportPorts,
  refusals: Refusals,
): Promise<ListedPublication[]> {
  const now = clock()
  const listed: ListedPublication[] = []
  for await (const lines of folder.manifests.lines()) {
    signal.throwIfAborted()
    for (const line of lines) {
      const parsed = parseLine(line, now)
      if ('manifest' in parsed) listed.push(parsed)
      else refusals.add(parsed)
    }
  }
  return listed
}

function parseLine(line: InputLine, now: number): ListedPublication | ImportRefusal {
  const refused = (reason: string): ImportRefusal => ({ publicationId: null, line: line.number, reason })
  if ('problem' in line) return refused(line.problem)
  let row: unknown
  try {
    row = JSON.parse(line.text)
  } catch (error) {
    return refused(`not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  return parseListed(row, line.number, now)
}

/** Reads and proves the files one at a time: an archive is larger than the memory. */
async function verifyFiles(
  ports: ArchiveImportPorts,
  listed: readonly ListedPublication[],
  refusals: Refusals,
): Promise<void> {
  for (const [index, publication] of listed.entries()) {
    ports.signal.throwIfAborted()
    try {
      await readProved(ports, publication)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const { line, manifest } = publication
      refusals.add({ publicationId: manifest.publicationId, line, reason: error.detail ?? error.code })
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

async function found(
  ports: ArchiveImportPorts,
  listed: readonly ListedPublication[],
  token: string,
): Promise<ArchiveImportReport> {
  const { ledger, archive, year, clock } = ports
  const founding = planFounding(listed)
  const { proved, head } = await year.read()
  if (beganWith(proved.entries, founding)) {
    const last = proved.entries.at(-1)
    // What a crash between commit and head left undone.
    if (last && headIsBehind(proved.entries, head)) await archive.putHead(headOf(last, clock()))
    return { imported: 0, unchanged: listed.length, refused: [], refusedCount: 0 }
  }
  if (proved.entries.length > 0) return refusal(ALREADY_FOUNDED)
  const last = founding.rows.at(-1)
  const { unfinished } = proved
  if (unfinished && (unfinished.seq !== last?.seq || unfinished.leaf !== last.leaf)) {
    return refusal(OTHER_BEGUN)
  }
  await storeObjects(ports, listed)
  if (last) {
    const { seq, leaf } = last
    const mark = unfinished ?? { seq, leaf, beganAt: clock() }
    requireDone(await ledger.beginFounding(mark, { token, now: clock() }))
    await archive.putHead(headOf(last, mark.beganAt))
  }
  const seal = await commit(ports, founding, token)
  await archive.putHead(headOf(seal, clock()))
  return { imported: listed.length, unchanged: 0, refused: [], refusedCount: 0 }
}

/** Reads the files a second time and proves them again, so that a file that changed meanwhile is never stored. */
async function storeObjects(ports: ArchiveImportPorts, listed: readonly ListedPublication[]): Promise<void> {
  for (const [index, publication] of listed.entries()) {
    ports.signal.throwIfAborted()
    await ports.archive.put(publication.manifest.sha256, await readAgain(ports, publication))
    ports.onPublication('stored', index + 1, listed.length)
  }
}

async function readAgain(ports: ArchiveImportPorts, publication: ListedPublication): Promise<Uint8Array> {
  try {
    return await readProved(ports, publication)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const what = `line ${publication.line}: ${publication.file} changed while it was imported`
    throw new Refusal('input_unreadable', `${what}: ${error.detail ?? error.code}`, { cause: error })
  }
}

async function commit(
  { ledger, clock }: ArchiveImportPorts,
  founding: Founding,
  token: string,
): Promise<LedgerRow> {
  const now = clock()
  const seal = sealFounding(founding, now)
  requireDone(await ledger.found(founding, seal, { token, now }))
  return seal
}

const ALREADY_FOUNDED =
  'the ledger already has entries and did not begin with this import; an archive is founded once, before anything else'

const OTHER_BEGUN =
  'the import of another archive was begun and has not ended; run it again, or found this one in a new data folder'

function requireDone(refused: FoundingRefusal | null): void {
  if (refused === 'lease-lost') throw leaseLost()
  if (refused !== null) throw new Error('the ledger was written to by somebody who does not hold its lease')
}

function headOf({ seq, leaf }: { seq: number; leaf: string }, time: number): Head {
  return { seq, leaf, time }
}

/** A refusal of the import as a whole. */
function refusal(reason: string): ArchiveImportReport {
  const refusals = new Refusals()
  refusals.add({ publicationId: null, line: null, reason })
  return refusals.report()
}
