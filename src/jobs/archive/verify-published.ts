import { Refusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { isSound } from '../../domain/year/finding.ts'
import type { LedgerContents, Manifest } from '../../domain/year/ledger.ts'
import { staticObjectPath } from '../../domain/year/log/static-layout.ts'
import {
  examineFile,
  examineResponse,
  fileWithoutResponse,
  queryAboutEnd,
  queriesAbout,
  withoutResponse,
} from '../../domain/year/history/published-response.ts'
import type { SelectionQuery } from '../../domain/year/history/published-response.ts'
import type { Reference } from '../../domain/year/published-ledger.ts'
import { readHostLedger } from './host-ledger.ts'
import type { HostLedger, HostLedgerPorts } from './host-ledger.ts'
import { sendAll } from './host-requests.ts'
import type { CheckRound, HostCheck, HostRun } from './host-requests.ts'
import { NOTHING_READ } from './audit.ts'
import type { VerifyReport, VerifyResult } from './audit.ts'

export interface PublishedAuditPorts extends HostLedgerPorts {
  /** The auditor's own ledgers, or null. */
  ledger: LedgerContents | null
  /** The newest signed note of the auditor's own log, or null. */
  ownNote: string | null
  onProgress: (done: number, total: number) => void
}

export interface PublishedAuditOptions {
  /** A head that was kept earlier. */
  expectedHead: Reference['expectedHead']
  /** Selects the publications to query; the ledger is always proved completely. */
  chosen: (manifests: readonly Manifest[]) => readonly Manifest[]
  /** Concurrent publications. */
  jobs: number
  signal: AbortSignal
}

/**
 * Audits another host by its public responses (docs/auditing.md): the ledger and the signed log it publishes, against
 * themselves, the newest checkpoint seen earlier, a head kept earlier and the own ledger; then every response against
 * that ledger, or every file of a static host. Findings from before a host became unavailable are still reported.
 *
 * @throws Refusal `usage` without a ledger to compare the host with
 */
export async function verifyPublished(
  ports: PublishedAuditPorts,
  { expectedHead, chosen, jobs, signal }: PublishedAuditOptions,
): Promise<VerifyResult> {
  const { ledger: own, ownNote, clock, onProgress } = ports
  const startedAt = clock()
  const run: HostRun = { findings: [], objects: 0, bytes: 0, jobs, signal, onProgress }
  let host: HostLedger | null = null
  let cause: unknown = null
  try {
    host = await readHostLedger(ports, { own, ownNote, expectedHead }, run)
    await sendAll(run, roundsOf(ports, host, chosen, startedAt))
  } catch (error) {
    if (error instanceof Refusal && error.code === 'usage') throw error
    cause = error
  }
  const { findings, objects, bytes } = run
  const { timeline, gaps, head } = host?.audit ?? NOTHING_READ
  const complete = cause === null
  const report: VerifyReport = {
    ok: complete && isSound(findings),
    complete,
    findings,
    publications: timeline.length,
    objects,
    bytes,
    gaps,
    head,
    comparedWith: host?.comparedWith ?? 'none',
    log: host?.log ?? null,
    durationMs: clock() - startedAt,
  }
  return { report, cause }
}

function roundsOf(
  { published }: PublishedAuditPorts,
  { audit: { timeline }, contents, isStatic }: HostLedger,
  chosen: PublishedAuditOptions['chosen'],
  startedAt: Instant,
): CheckRound[] {
  const chosenManifests = new Set(chosen(timeline.map(({ manifest }) => manifest)))
  const items = timeline.filter(({ manifest }) => chosenManifests.has(manifest))
  const fileCheck = (manifest: Manifest): HostCheck => ({
    send: (signal) => published.file(`/${staticObjectPath(manifest.sha256)}`, KEPT_MAX_BYTES, signal),
    examine: (response) => examineFile(manifest, response),
    withoutResponse: (reason) => fileWithoutResponse(manifest, reason),
  })
  if (isStatic) return items.map(({ manifest }) => () => ({ checks: [fileCheck(manifest)], findings: [] }))
  const queryCheck = (query: SelectionQuery): HostCheck => ({
    send: (signal) => published.at(query.at, query.held, signal),
    examine: (response) => examineResponse(query, response),
    withoutResponse: (reason) => [withoutResponse(query, reason)],
  })
  // Each publication is requested at its own time and a millisecond before and after; the end of the ledger last.
  const rounds = items.map((item): CheckRound => () => {
    const { queries, findings } = queriesAbout(item, timeline, startedAt)
    return { checks: queries.map(queryCheck), findings }
  })
  // The own ledger may be an older copy; the host's ledger must list everything it serves.
  const end: CheckRound = () => ({ checks: [queryCheck(queryAboutEnd(timeline, startedAt))], findings: [] })
  return contents === null ? rounds : [...rounds, end]
}

/** Only unusual layouts need the whole text of a publication. */
const KEPT_MAX_BYTES = 4 * 1024 * 1024
