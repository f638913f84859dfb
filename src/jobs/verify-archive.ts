import type { ReadAhead } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { auditLedger } from '../domain/year/audit.ts'
import { isDamage, isReadError, objectPath } from '../domain/year/finding.ts'
import type { AuditedContents, AuditedHead, LedgerAudit } from '../domain/year/audit.ts'
import type { Finding, FindingCode } from '../domain/year/finding.ts'
import { GENESIS_LEAF } from '../domain/year/chain.ts'
import { chooseManifests } from '../domain/year/audit-sample.ts'
import type { Manifest } from '../domain/year/ledger.ts'
import { examineObjects } from './verify-objects.ts'
import type { ObjectsRun } from './verify-objects.ts'
import type { VerifyOptions, VerifyPorts } from './verify-run.ts'

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
