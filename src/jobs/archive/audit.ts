import type { Clock } from '../../domain/ports.ts'
import { Refusal, isRefusal } from '../../domain/refusal.ts'
import type { Day } from '../../domain/time.ts'
import type { TimelineItem } from '../../domain/year/chain.ts'
import { auditLedger } from '../../domain/year/check.ts'
import type { LedgerAudit } from '../../domain/year/check.ts'
import { isSound } from '../../domain/year/finding.ts'
import type { AuditCounts, Finding } from '../../domain/year/finding.ts'
import { chooseManifests } from '../../domain/year/sample.ts'
import type { PublishedRefusal } from '../../domain/year/published-ledger.ts'
import type { Sample } from '../../domain/year/sample.ts'
import { concurrently } from '../concurrently.ts'
import type { LogReport } from './host-log.ts'

/** An archive to audit. Reading it changes nothing. */
export interface ArchiveReader {
  /** True for the own stores: the newest publication is always examined, and findings are not limited. */
  isOwn: boolean
  /** Reads and audits what says which publications there are: the ledgers, the heads and the signed log. */
  read(report: Report, options: Pick<AuditOptions, 'jobs' | 'signal'>): Promise<ReadArchive>
  /** Stops reading. */
  close(): void
}

/** Receives findings, and what was read for them. Those from before an error are kept. */
export type Report = (findings: readonly Finding[], read?: { objects: number; bytes: number }) => void

/** The ledgers of an archive, audited, and what remains to be examined. */
interface ReadArchive {
  ledger: LedgerAudit
  /** Reads and examines everything that the archive shows of one publication. */
  examine(item: TimelineItem, report: Report): Promise<void>
  /** Audits what belongs to no publication. It is called last. */
  rest(report: Report): Promise<void>
  /** Members of the report of a host. */
  ofHost?: Pick<VerifyReport, 'comparedWith' | 'log'>
}

export interface AuditPorts {
  clock: Clock
  random: () => number
  onProgress: (progress: AuditProgress) => void
}

export interface AuditOptions {
  sample: Sample | null
  since: Day | null
  /** Publications examined at a time. */
  jobs: number
  signal: AbortSignal
}

/** Number of examined publications and of those to examine, bytes read, and findings. */
export interface AuditProgress {
  done: number
  of: number
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
  /** Findings by part of the archive, in the order of the parts. */
  found: Finding[][]
  findings: number
  findingsMax: number
  objects: number
  bytes: number
}

/** Most findings of one host; more of them only use memory. */
const FINDINGS_MAX = 1_000

/** The audit of a ledger of which nothing was read. */
export const NOTHING_READ = auditLedger({ rows: [], legacy: [], founding: null }, null, null)

/**
 * Audits an archive (docs/auditing.md): ledgers, heads and signed log, then the chosen publications, then the rest.
 * Always returns a report: an error that ends the audit is its `cause`.
 *
 * @throws Refusal `usage` if there is nothing to compare a host with
 */
export async function audit(
  reader: ArchiveReader,
  { clock, random, onProgress }: AuditPorts,
  options: AuditOptions,
): Promise<VerifyResult> {
  const startedAt = clock()
  const findingsMax = reader.isOwn ? Infinity : FINDINGS_MAX
  const run: Run = { found: [], findings: 0, findingsMax, objects: 0, bytes: 0 }
  let archive: ReadArchive | null = null
  let cause: unknown = null
  try {
    archive = await reader.read(reportOf(run), options)
    const { timeline } = archive.ledger
    const manifests = timeline.map(({ manifest }) => manifest)
    const chosen = new Set(chooseManifests(manifests, options, random))
    const newest = reader.isOwn ? timeline.at(-1) : undefined
    const items = timeline.filter((item) => item === newest || chosen.has(item.manifest))
    await examineAll(archive, items, run, options, onProgress)
    await archive.rest(reportOf(run))
  } catch (error) {
    if (isRefusal(error, 'usage')) throw error
    cause = error
  } finally {
    reader.close()
  }
  const { timeline, gaps, head } = archive?.ledger ?? NOTHING_READ
  const { objects, bytes } = run
  const findings = distinct(run.found.flat())
  const complete = cause === null
  return {
    report: {
      ok: complete && isSound(findings),
      complete,
      publications: timeline.length,
      objects,
      bytes,
      gaps,
      head,
      findings,
      ...(reader.isOwn ? {} : { comparedWith: 'none', log: null }),
      ...archive?.ofHost,
      durationMs: clock() - startedAt,
    },
    cause,
  }
}

/** Examines publications, several at a time. Their findings stay in the order of the ledger, also after an error. */
async function examineAll(
  archive: ReadArchive,
  items: readonly TimelineItem[],
  run: Run,
  { jobs, signal }: AuditOptions,
  onProgress: AuditPorts['onProgress'],
): Promise<void> {
  const parts = items.map((item) => ({ item, report: reportOf(run) }))
  let done = 0
  await concurrently(parts, jobs, signal, async ({ item, report }) => {
    await archive.examine(item, report)
    done += 1
    onProgress({ done, of: items.length, bytes: run.bytes, findings: run.findings })
  })
}

/** Creates the report of the next part of the archive. */
function reportOf(run: Run): Report {
  const found: Finding[] = []
  run.found.push(found)
  return (findings, read) => {
    run.objects += read?.objects ?? 0
    run.bytes += read?.bytes ?? 0
    const room = run.findingsMax - run.findings
    found.push(...findings.slice(0, room))
    run.findings += Math.min(findings.length, room)
    if (findings.length > room)
      throw new Refusal<PublishedRefusal>(
        'source_unavailable',
        `the host has more than ${FINDINGS_MAX} findings; the rest was not audited`,
      )
  }
}

/** A missing publication is one finding, although several requests find it. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()]
}
