import pLimit from 'p-limit'
import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Day } from '../../domain/time.ts'
import { GENESIS_LEAF } from '../../domain/year/chain.ts'
import type { TimelineItem } from '../../domain/year/chain.ts'
import type { LedgerAudit } from '../../domain/year/check.ts'
import { isSound } from '../../domain/year/finding.ts'
import type { AuditCounts, Finding } from '../../domain/year/finding.ts'
import { chooseManifests } from '../../domain/year/sample.ts'
import type { PublishedRefusal } from '../../domain/year/published-ledger.ts'
import type { Sample } from '../../domain/year/sample.ts'
import type { LogReport } from './host-log.ts'

/** An archive to audit. Reading it changes nothing. */
export interface ArchiveReader {
  /** True for the own stores: the newest publication is always examined, and findings are not limited. */
  isOwn: boolean
  /**
   * Reads and audits what says which publications there are: the ledgers, the heads and the signed log.
   *
   * @param report receives the findings; those from before an error are kept
   */
  read(report: (findings: readonly Finding[]) => void, signal: AbortSignal): Promise<ReadArchive>
  /** Stops reading. */
  close(): Promise<void>
}

/** The ledgers of an archive, audited, and what remains to be examined. */
interface ReadArchive {
  ledger: LedgerAudit
  /** Reads and examines everything that the archive shows of one publication. */
  examine(item: TimelineItem): Promise<Examined>
  /** Audits what belongs to no publication. It is called last. */
  rest(): Promise<Examined>
  /** Members of the report of a host. */
  ofHost?: Pick<VerifyReport, 'comparedWith' | 'log'>
}

/** Findings, and what was read for them. */
export interface Examined {
  findings: readonly Finding[]
  objects: number
  bytes: number
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

/** The findings of an audit, and the number of objects and bytes read for them. */
interface Run {
  findings: Finding[]
  findingsMax: number
  objects: number
  bytes: number
}

/** Most findings of one host; more of them only use memory. */
const FINDINGS_MAX = 1_000

/** The audit of a ledger of which nothing was read. */
export const NOTHING_READ: LedgerAudit = {
  findings: [],
  timeline: [],
  gaps: 0,
  head: { seq: 0, leaf: GENESIS_LEAF },
}

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
  const run: Run = { findings: [], findingsMax: reader.isOwn ? Infinity : FINDINGS_MAX, objects: 0, bytes: 0 }
  let archive: ReadArchive | null = null
  let cause: unknown = null
  try {
    archive = await reader.read((findings) => addFindings(run, findings), options.signal)
    const { timeline } = archive.ledger
    const manifests = timeline.map(({ manifest }) => manifest)
    const chosen = new Set(chooseManifests(manifests, options, random))
    const newest = reader.isOwn ? timeline.at(-1) : undefined
    const items = timeline.filter((item) => item === newest || chosen.has(item.manifest))
    await examineAll(archive, items, run, options, onProgress)
    const { findings, objects, bytes } = await archive.rest()
    run.objects += objects
    run.bytes += bytes
    addFindings(run, findings)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'usage') throw error
    cause = error
  } finally {
    await reader.close()
  }
  const { timeline, gaps, head } = archive?.ledger ?? NOTHING_READ
  const { findings, objects, bytes } = run
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
  const limit = pLimit(jobs)
  const found: (readonly Finding[])[] = items.map(() => [])
  let [done, findings] = [0, run.findings.length]
  try {
    await limit.map(items, async (item, index) => {
      signal.throwIfAborted()
      const examined = await archive.examine(item)
      found[index] = examined.findings
      run.objects += examined.objects
      run.bytes += examined.bytes
      findings += examined.findings.length
      if (findings > run.findingsMax) throw tooManyFindings()
      done += 1
      onProgress({ done, of: items.length, bytes: run.bytes, findings })
    })
  } finally {
    // After a failure nothing more is read: the process would wait for it before it ends.
    limit.clearQueue()
    addFindings(run, distinct(found.flat()))
  }
}

/** A missing publication is one finding, although several requests find it. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()]
}

function addFindings(run: Run, findings: readonly Finding[]): void {
  const room = run.findingsMax - run.findings.length
  run.findings.push(...findings.slice(0, room))
  if (findings.length > room) throw tooManyFindings()
}

function tooManyFindings(): Refusal<PublishedRefusal> {
  return new Refusal(
    'source_unavailable',
    `the host has more than ${FINDINGS_MAX} findings; the rest was not audited`,
  )
}
