import pLimit from 'p-limit'
import type { Auditors, Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Day } from '../../domain/time.ts'
import { GENESIS_LEAF } from '../../domain/year/chain.ts'
import { auditLedger } from '../../domain/year/check.ts'
import { auditLog, logFilePath } from '../../domain/year/log/check-log.ts'
import type { AuditedLogFile } from '../../domain/year/log/check-log.ts'
import type { Checkpoint } from '../../domain/year/log/signed-note.ts'
import type { AuditedHead, LedgerAudit } from '../../domain/year/check.ts'
import { examineReadObject, objectFindings, objectPath } from '../../domain/year/examine.ts'
import type { ObjectOutcome } from '../../domain/year/examine.ts'
import { finding, isSound } from '../../domain/year/finding.ts'
import type { AuditCounts, Finding, FindingCode } from '../../domain/year/finding.ts'
import type { AuditedContents, KeptHead, LedgerRow, Manifest } from '../../domain/year/ledger.ts'
import { chooseManifests } from '../../domain/year/sample.ts'
import type { Sample } from '../../domain/year/sample.ts'
import type { LogReport } from './host-log.ts'

export interface VerifyPorts extends Auditors {
  /** The checkpoint that the log key signed last, read before the ledger; null or undefined if no key is set. */
  lastSigned?: Checkpoint | null
  clock: Clock
  random: () => number
  onProgress: (progress: VerifyProgress) => void
  /** Reports a note for the operator that is not a finding. */
  onNote: (message: string) => void
}

export interface VerifyOptions {
  sample: Sample | null
  since: Day | null
  /** A head that was kept earlier, and its file. */
  expectedHead: KeptHead | null
  /** True to prove every payload as a server does, not only the newest. */
  payloads: boolean
  jobs: number
  signal: AbortSignal
}

export interface VerifyProgress {
  objects: number
  ofObjects: number
  bytes: number
  findings: number
}

/** The JSON result of `verify-archive` (docs/auditing.md). */
export interface VerifyReport extends AuditCounts {
  findings: Finding[]
  durationMs: number
  /** For an audit of another host: whether its ledger was compared with the local one. */
  comparedWith?: 'own' | 'none'
  /** For an audit of another host: its signed log; null if it has none, or one that is not valid. */
  log?: LogReport | null
}

/** A report, and the error that ended the audit early. */
export interface VerifyResult {
  report: VerifyReport
  cause: unknown
}

interface Run {
  ports: VerifyPorts
  options: VerifyOptions
  findings: Finding[]
  /** Objects and bytes read. */
  objects: number
  bytes: number
}

/** Objects that are read before their manifests are known; null without any. */
type ReadAhead = ReturnType<Auditors['objects']['readAhead']>

/** The audit of an archive before anything is read. */
export const NOTHING_READ: LedgerAudit = {
  findings: [],
  timeline: [],
  gaps: 0,
  head: { seq: 0, leaf: GENESIS_LEAF },
}

/**
 * Audits the archive (docs/auditing.md): heads, both ledgers, the chain, the selection, the chosen objects and orphans.
 * Reads only. Always returns a report: an error that ends the audit is its `cause`.
 */
export async function verifyArchive(ports: VerifyPorts, options: VerifyOptions): Promise<VerifyResult> {
  const { objects, clock } = ports
  const { sample, since, payloads, jobs } = options
  const startedAt = clock()
  const run: Run = { ports, options, findings: [], objects: 0, bytes: 0 }
  let audit = NOTHING_READ
  let ahead: ReadAhead = null
  let cause: unknown = null
  try {
    // When all objects are selected, threads start to read them before their manifests are known.
    if (sample === null && since === null && !payloads) ahead = objects.readAhead(jobs)
    // Listed before the ledger is read, so that concurrent publications are not orphans. Without the list everything
    // else is still audited, and the audit ends as incomplete.
    const listed = unlessDamaged(run, 'object_unreadable', 'sha256', () => objects.objectKeys())
    const keys = await listed.catch((error: unknown) => {
      cause = error
      return null
    })
    // The files are read before the ledger, so that a sound ledger continues every note.
    const logFiles = await readLogFiles(run)
    const ledgers = await unlessDamaged(run, 'row_tampered', 'ledger', () => readLedgers(run))
    if (ledgers) {
      audit = ledgers
      run.findings.push(...audit.findings)
      // The tree needs every entry.
      if (ledgers.isWhole) run.findings.push(...auditLog(ledgers.rows, logFiles, ports.lastSigned))
      const manifests = audit.timeline.map(({ manifest }) => manifest)
      const newest = manifests.at(-1)
      const others = chooseManifests(manifests, options, ports.random).filter((one) => one !== newest)
      // The newest publication is always proved as a server proves it; meanwhile others are read ahead.
      if (newest) await examineObjects(run, [newest], 'whole', null)
      await examineObjects(run, others, payloads ? 'whole' : 'identity', ahead)
      run.findings.push(...orphans(keys ?? [], manifests))
    }
  } catch (error) {
    cause = error
  } finally {
    await ahead?.close()
  }
  const { findings, bytes } = run
  const complete = cause === null
  const publications = audit.timeline.length
  const { gaps, head } = audit
  const ok = complete && isSound(findings)
  const durationMs = clock() - startedAt
  return {
    report: { ok, complete, publications, objects: run.objects, bytes, gaps, head, findings, durationMs },
    cause,
  }
}

/** Damage that makes a whole store unreadable is a finding with a null result; other errors end the audit. */
async function unlessDamaged<T>(
  run: Run,
  code: FindingCode,
  path: string,
  read: () => Promise<T>,
): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'storage_damaged') throw error
    run.findings.push(finding(code, path, null, error.detail ?? error.code))
    return null
  }
}

/** Most reads of the heads while a publisher adds new ones. */
const READINGS_MAX = 5

const NO_LEDGER: AuditedContents = { rows: [], legacy: [], founding: null, unreadable: [] }

/** Reads every file of the signed log. A file that is too damaged to be read is a finding. */
async function readLogFiles(run: Run): Promise<AuditedLogFile[]> {
  const { logFiles } = run.ports.objects
  const { jobs, signal } = run.options
  const files = (await unlessDamaged(run, 'note_invalid', 'tlog/year', () => logFiles.list())) ?? []
  const read = await pLimit(jobs).map(files, (file) => {
    signal.throwIfAborted()
    return unlessDamaged(run, 'note_invalid', logFilePath(file), async () => ({
      file,
      bytes: await logFiles.get(file),
    }))
  })
  return read.filter((file) => file !== null)
}

interface ReadLedgers extends LedgerAudit {
  rows: readonly LedgerRow[]
  /** False if unreadable rows are left out. */
  isWhole: boolean
}

/** Reads the heads first: a commit in between leaves the ledger one entry ahead, which is sound. */
async function readLedgers({ ports: { ledger, objects }, options }: Run): Promise<ReadLedgers> {
  let heads = await objects.heads()
  for (let reading = 1; ; reading += 1) {
    const contents = (await ledger.read()) ?? NO_LEDGER
    const isWhole = contents.unreadable.length === 0
    const audit = { ...auditLedger(contents, heads, options.expectedHead), rows: contents.rows, isWhole }
    if (audit.findings.length === 0 || reading === READINGS_MAX) return audit
    const again = await objects.heads()
    if (newestOf(again) === newestOf(heads)) return audit
    heads = again
  }
}

function newestOf(heads: readonly AuditedHead[]): number {
  return heads.at(-1)?.seq ?? 0
}

type Examination = 'identity' | 'whole'

/**
 * Examines the objects of manifests, and failed ones a second time, to tell intermittent disk or network errors from
 * damage.
 *
 * @param ahead objects that are being read ahead; it is consumed
 */
async function examineObjects(
  run: Run,
  manifests: readonly Manifest[],
  examination: Examination,
  ahead: ReadAhead,
): Promise<void> {
  const { objects, onNote, onProgress } = run.ports
  const { jobs, signal } = run.options
  const ofObjects = run.objects + manifests.length
  const findings = new Map<number, Finding[]>()
  try {
    for await (const batch of readOnce(run, manifests, examination, ahead)) {
      for (const { index, manifest, outcome } of batch) {
        const found = objectFindings(manifest, outcome)
        if (found.length > 0) findings.set(index, found)
        run.objects += 1
        if (outcome.found === 'bytes') run.bytes += outcome.byteSize
      }
      onProgress({
        objects: run.objects,
        ofObjects,
        bytes: run.bytes,
        findings: run.findings.length + findings.size,
      })
    }
    const failed = [...findings.keys()].sort((a, b) => a - b)
    const again = failed.map((index) => manifests[index] as Manifest)
    for await (const batch of objects.examine(again, examination, jobs, signal)) {
      for (const { index: place, outcome } of batch) {
        const [index, manifest] = [failed[place] as number, again[place] as Manifest]
        const code = findings.get(index)?.[0]?.code
        const found = objectFindings(manifest, outcome)
        findings.set(index, found)
        if (found.length === 0)
          onNote(
            `${objectPath(manifest.sha256)} was valid on the second read but not on the first (${code}); check the disk, the memory and the network`,
          )
      }
    }
  } finally {
    // An early end keeps the findings so far; an object that could not be read again keeps its first finding.
    run.findings.push(...[...findings].sort(([a], [b]) => a - b).flatMap(([, found]) => found))
  }
}

type Outcomes = { index: number; manifest: Manifest; outcome: ObjectOutcome }[]

/** Reads each object once: by its read-ahead result when that decides, otherwise with its manifest. */
async function* readOnce(
  { ports: { objects }, options: { jobs, signal } }: Run,
  manifests: readonly Manifest[],
  examination: Examination,
  ahead: ReadAhead,
): AsyncGenerator<Outcomes> {
  const open = new Map(manifests.entries())
  if (ahead !== null) {
    const indexes = new Map<string, number[]>()
    for (const [index, { sha256 }] of open) {
      const key = objectPath(sha256)
      const existing = indexes.get(key)
      if (existing) existing.push(index)
      else indexes.set(key, [index])
    }
    for await (const batch of ahead.objects(signal)) {
      const outcomes: Outcomes = []
      for (const { key, seen: object } of batch) {
        for (const index of indexes.get(key) ?? []) {
          const manifest = manifests[index] as Manifest
          const outcome = examineReadObject(manifest, object)
          if (outcome && open.delete(index)) outcomes.push({ index, manifest, outcome })
        }
      }
      yield outcomes
    }
  }
  const rest = [...open]
  const remaining = rest.map(([, manifest]) => manifest)
  for await (const batch of objects.examine(remaining, examination, jobs, signal)) {
    yield batch.map(({ index: place, outcome }) => {
      const [index, manifest] = rest[place] as [number, Manifest]
      return { index, manifest, outcome }
    })
  }
}

/** Objects without an entry: left by a crash before the commit, or foreign. */
function orphans(keys: readonly string[], manifests: readonly Manifest[]): Finding[] {
  const named = new Set(manifests.map(({ sha256 }) => objectPath(sha256)))
  const unnamed = keys.filter((key) => !named.has(key)).sort()
  return unnamed.map((path) => finding('orphan_object', path, null, null))
}
