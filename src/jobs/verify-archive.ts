import type { Auditors, Clock, ReadAhead } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Day } from '../domain/time.ts'
import { auditLedger, chooseManifests } from '../domain/year/audit.ts'
import type { AuditedContents, AuditedHead, LedgerAudit, Sample } from '../domain/year/audit.ts'
import { GENESIS_LEAF } from '../domain/year/chain.ts'
import {
  examineSeenObject,
  isDamage,
  isReadError,
  objectFindings,
  objectPath,
} from '../domain/year/finding.ts'
import type { Finding, FindingCode, ObjectOutcome } from '../domain/year/finding.ts'
import type { Head, Manifest } from '../domain/year/ledger.ts'

/** The JSON result of `verify-archive` (docs/auditing.md). */
export interface VerifyReport {
  /** No damage, and nothing left unread that was to be read. */
  ok: boolean
  /** False when the audit ended before it had read everything it was asked to. */
  complete: boolean
  publications: number
  /** Objects and bytes read. */
  objects: number
  bytes: number
  gaps: number
  head: { seq: number; leaf: string }
  findings: Finding[]
  durationMs: number
  /** Of an audit of another host: whether its ledger was held against the local one. */
  comparedWith?: 'own' | 'none'
}

/** A report, and what ended the audit early. */
export interface VerifyResult {
  report: VerifyReport
  cause: unknown
}

/** Heads that move on while they are read are read again this often. */
const READINGS = 5

/**
 * Audits the whole archive (docs/auditing.md): heads, both ledgers, the chain, the selection, the chosen objects and
 * what no entry names. Reads only. Whatever happens there is a report: what ended it early is its `cause`.
 */
export async function verifyArchive(ports: VerifyPorts, options: VerifyOptions): Promise<VerifyResult> {
  const startedAt = ports.clock()
  const run: Run = { ports, options, findings: [], objects: 0, bytes: 0, audit: null }
  let cause: unknown = null
  try {
    await audit(run)
  } catch (error) {
    cause = error
  }
  const complete = cause === null
  const unread = run.findings.some(({ actual }) => isReadError(actual))
  const report: VerifyReport = {
    ok: complete && !unread && !run.findings.some(isDamage),
    complete,
    publications: run.audit?.timeline.length ?? 0,
    objects: run.objects,
    bytes: run.bytes,
    gaps: run.audit?.gaps ?? 0,
    head: run.audit?.head ?? { seq: 0, leaf: GENESIS_LEAF },
    findings: run.findings,
    durationMs: ports.clock() - startedAt,
  }
  return { report, cause }
}

interface Run extends ObjectsRun {
  audit: LedgerAudit | null
}

async function audit(run: Run): Promise<void> {
  const { sample, since, payloads, jobs } = run.options
  const isWhole = sample === null && since === null && !payloads
  const ahead = isWhole ? run.ports.archive.readAhead(jobs) : null
  try {
    await auditStores(run, ahead)
  } finally {
    await ahead?.close()
  }
}

async function auditStores(run: Run, ahead: ReadAhead | null): Promise<void> {
  const { ports, options } = run
  // Listed before the ledger is read: what is published in between is then no orphan.
  let unlisted: unknown = null
  const listed = orFinding(run, 'object_unreadable', 'sha256', () => ports.archive.objectKeys())
  // Everything else can be audited without the list; that it is missing still ends the audit as incomplete.
  const keys = await listed.catch((error: unknown) => {
    unlisted = error
    return null
  })
  const found = await orFinding(run, 'row_tampered', 'ledger', () => readLedgers(ports, options))
  if (found === null) return
  run.audit = found
  run.findings.push(...found.findings)
  const manifests = found.timeline.map(({ manifest }) => manifest)
  const newest = manifests.at(-1)
  const others = chooseManifests(manifests, options, ports.random).filter((manifest) => manifest !== newest)
  // What is served now is proved as the server proves it, whatever was chosen; while others are being read ahead.
  if (newest) await examineObjects(run, [newest], 'whole', null)
  await examineObjects(run, others, options.payloads ? 'whole' : 'identity', ahead)
  run.findings.push(...orphans(keys ?? [], manifests))
  if (unlisted !== null) throw unlisted
}

/** Damage that keeps a whole store from being read is a finding; everything else ends the audit. */
async function orFinding<T>(
  run: Run,
  code: FindingCode,
  path: string,
  read: () => Promise<T>,
): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'storage_damaged') throw error
    run.findings.push({ code, publicationId: null, path, expected: null, actual: error.detail ?? error.code })
    return null
  }
}

/** Heads first: a commit in between leaves the ledger one entry ahead, which is sound. */
async function readLedgers({ ledger, archive }: VerifyPorts, options: VerifyOptions): Promise<LedgerAudit> {
  let heads = await archive.heads()
  for (let reading = 1; ; reading += 1) {
    const contents = (await ledger.read()) ?? NO_LEDGER
    const found = auditLedger(contents, heads, options.expectedHead)
    if (found.findings.length === 0 || reading === READINGS) return found
    const again = await archive.heads()
    if (newestOf(again) === newestOf(heads)) return found
    heads = again
  }
}

const NO_LEDGER: AuditedContents = { rows: [], legacy: [], founding: null }

function newestOf(heads: readonly AuditedHead[]): number {
  return heads.at(-1)?.seq ?? 0
}

/** Objects no entry names: what a crash before the commit leaves, or what somebody put there. */
function orphans(keys: readonly string[], manifests: readonly Manifest[]): Finding[] {
  const named = new Set(manifests.map(({ sha256 }) => objectPath(sha256)))
  return keys
    .filter((key) => !named.has(key))
    .sort()
    .map((path) => ({ code: 'orphan_object', publicationId: null, path, expected: null, actual: null }))
}

type Examination = 'identity' | 'whole'

/** What an audit has found so far, and what it works with. */
interface ObjectsRun {
  ports: VerifyPorts
  options: VerifyOptions
  findings: Finding[]
  /** Objects and bytes read. */
  objects: number
  bytes: number
}

/**
 * Examines the objects of manifests, and once more those that do not hold.
 *
 * @param ahead objects that are being read already, whichever they are; it is used up
 */
async function examineObjects(
  run: ObjectsRun,
  manifests: readonly Manifest[],
  examination: Examination,
  ahead: ReadAhead | null,
): Promise<void> {
  const failed: Failed[] = []
  const ofObjects = run.objects + manifests.length
  try {
    for await (const batch of readFirst(run, manifests, examination, ahead)) {
      for (const { index, outcome } of batch) {
        const manifest = manifests[index] as Manifest
        const findings = objectFindings(manifest, outcome)
        if (findings.length > 0) failed.push({ index, manifest, findings })
        run.objects += 1
        if (outcome.found === 'bytes') run.bytes += outcome.byteSize
      }
      run.ports.onProgress({
        objects: run.objects,
        ofObjects,
        bytes: run.bytes,
        findings: run.findings.length + failed.length,
      })
    }
  } catch (error) {
    // What was found stands, although nothing can be read a second time now.
    run.findings.push(...failed.flatMap(({ findings }) => findings))
    throw error
  }
  await examineAgain(
    run,
    failed.sort((a, b) => a.index - b.index),
    examination,
  )
}

interface Failed {
  index: number
  manifest: Manifest
  findings: Finding[]
}

type Outcomes = { index: number; outcome: ObjectOutcome }[]

/** Each object once: by what was seen of it ahead where that tells, all others with their manifests. */
async function* readFirst(
  { ports, options }: ObjectsRun,
  manifests: readonly Manifest[],
  examination: Examination,
  ahead: ReadAhead | null,
): AsyncGenerator<Outcomes> {
  const open = new Map<string, number[]>()
  for (const [index, { sha256 }] of manifests.entries()) {
    const key = objectPath(sha256)
    const same = open.get(key)
    if (same) same.push(index)
    else open.set(key, [index])
  }
  if (ahead !== null) {
    for await (const batch of ahead.seen(options.signal)) {
      const told: Outcomes = []
      for (const { key, seen } of batch) {
        const left: number[] = []
        for (const index of open.get(key) ?? []) {
          const outcome = examineSeenObject(manifests[index] as Manifest, seen)
          if (outcome === null) left.push(index)
          else told.push({ index, outcome })
        }
        open.set(key, left)
      }
      yield told
    }
  }
  const rest = [...open.values()].flat()
  const asked = rest.map((index) => manifests[index] as Manifest)
  for await (const batch of ports.archive.examine(asked, examination, options.jobs, options.signal)) {
    yield batch.map(({ index, outcome }) => ({ index: rest[index] as number, outcome }))
  }
}

/** Once more: a disk or a network that fails now and then is told apart from damage. */
async function examineAgain(
  run: ObjectsRun,
  failed: readonly Failed[],
  examination: Examination,
): Promise<void> {
  const { archive, onNote } = run.ports
  const { jobs, signal } = run.options
  const manifests = failed.map(({ manifest }) => manifest)
  const settled = new Set<number>()
  try {
    for await (const batch of archive.examine(manifests, examination, jobs, signal)) {
      for (const { index, outcome } of batch) {
        const manifest = manifests[index] as Manifest
        const findings = objectFindings(manifest, outcome)
        settled.add(index)
        run.findings.push(...findings)
        if (findings.length > 0) continue
        const [first] = failed[index]?.findings ?? []
        onNote(
          `${objectPath(manifest.sha256)} is sound at the second reading, but not at the first (${first?.code}): look at the disk, the memory or the network`,
        )
      }
    }
  } finally {
    // What could not be read again stands as it was found.
    for (const [index, { findings }] of failed.entries())
      if (!settled.has(index)) run.findings.push(...findings)
  }
}

/** What an audit asks of the outside. */
export interface VerifyPorts extends Auditors {
  clock: Clock
  random: () => number
  onProgress: (progress: VerifyProgress) => void
  /** Something an operator should know that is no finding. */
  onNote: (message: string) => void
}

/** What is to be audited, and how. */
export interface VerifyOptions {
  sample: Sample | null
  since: Day | null
  /** A head kept from before, and the file it was kept in. */
  expectedHead: (Head & { path: string }) | null
  /** Proves every payload as a server would before serving it, not only the newest. */
  payloads: boolean
  jobs: number
  signal: AbortSignal
}

/** How far an audit has come. */
export interface VerifyProgress {
  objects: number
  ofObjects: number
  bytes: number
  findings: number
}
