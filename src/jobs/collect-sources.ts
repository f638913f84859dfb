import type { LiveSourceName, SourceBatch, SourceFailure } from '../domain/feed/live-source.ts'
import { addCounts } from '../domain/feed/signal.ts'
import type { ImportCounts } from '../domain/feed/signal.ts'
import type { Clock, FeedStore, LiveSource } from '../domain/ports.ts'
import { dayOf, formatInstant } from '../domain/time.ts'
import type { Day } from '../domain/time.ts'
import { shorten } from '../domain/text.ts'

/**
 * The outcome of one source.
 *
 * - `collected`: everything that was asked of it was read
 * - `partial`: some of it; what was read is stored
 * - `failed`: nothing of it
 * - `skipped`: it was not asked, because a setting it needs is not there
 */
type SourceOutcome = 'collected' | 'partial' | 'failed' | 'skipped'

/** One source in the JSON result of `collect` (docs/collecting.md). */
export interface SourceReport extends ImportCounts {
  outcome: SourceOutcome
  /** Items stored for the day: new, replaced and unchanged ones. */
  items: number
  /** Rows of responses that were left out. */
  badRows: number
  requests: number
  notModified: number
  /** Why it is not `collected`, in one line; else null. */
  reason: string | null
  /** When the source asked to be asked again, or null. */
  retryAt: string | null
  /** The first reasons for bad rows. */
  problems: string[]
}

/** The sources in the JSON result of `collect` (docs/collecting.md). */
export interface SourcesReport {
  day: Day
  outcome: 'collected' | 'partial' | 'failed'
  sources: Partial<Record<LiveSourceName, SourceReport>>
}

export interface SourcesPorts {
  feed: Pick<FeedStore, 'importSignals' | 'saveDetails'>
  clock: Clock
  /** Called after each stored batch. */
  onProgress: (source: LiveSourceName, items: number) => void
}

/**
 * Reads today's items of every source at once and stores them as they come. The day is that of the start, for the whole
 * run. No source touches another: one that fails is reported, and what it gave before stays.
 *
 * @throws the signal's reason, and whatever the store throws, after every source has come to rest; what was stored stays
 */
export async function collectSources(
  ports: SourcesPorts,
  sources: readonly LiveSource[],
  signal: AbortSignal,
): Promise<SourcesReport> {
  const day = dayOf(ports.clock())
  const failed = new AbortController()
  const until = AbortSignal.any([signal, failed.signal])
  const collected = await Promise.all(
    sources.map(async (live): Promise<[LiveSourceName, SourceReport][]> => {
      try {
        return [[live.source, await collectSource(ports, live, day, until)]]
      } catch (error) {
        failed.abort(error)
        return []
      }
    }),
  )
  failed.signal.throwIfAborted()
  const reports = collected.flat()
  const outcomes = reports.map(([, { outcome }]) => outcome)
  return { day, outcome: overall(outcomes), sources: Object.fromEntries(reports) }
}

const PROBLEMS_KEPT = 10

async function collectSource(
  { feed, onProgress }: SourcesPorts,
  live: LiveSource,
  day: Day,
  signal: AbortSignal,
): Promise<SourceReport> {
  const report = emptyReport()
  if (live.missingSettings.length > 0)
    return { ...report, outcome: 'skipped', reason: `${live.missingSettings.join(' and ')} not set` }
  const failures: SourceFailure[] = []
  for await (const batch of live.read(day, signal)) {
    signal.throwIfAborted()
    if (batch.signals.length > 0) {
      // Details first: after a crash in between no item is without what is known of it.
      await feed.saveDetails(batch.details)
      const counts = await feed.importSignals(batch.signals)
      addCounts(report, counts)
      report.items += counts.inserted + counts.replaced + counts.unchanged
    }
    countRequests(report, batch)
    failures.push(...batch.failures)
    onProgress(live.source, report.items)
  }
  return concluded(report, failures)
}

function emptyReport(): SourceReport {
  return {
    outcome: 'collected',
    items: 0,
    inserted: 0,
    replaced: 0,
    unchanged: 0,
    badRows: 0,
    requests: 0,
    notModified: 0,
    reason: null,
    retryAt: null,
    problems: [],
  }
}

function countRequests(report: SourceReport, { badRows, requests, notModified }: SourceBatch): void {
  report.badRows += badRows.length
  report.requests += requests
  report.notModified += notModified
  for (const { sourceId, reason } of badRows.slice(0, PROBLEMS_KEPT - report.problems.length))
    report.problems.push(shorten(sourceId === null ? reason : `${sourceId}: ${reason}`))
}

const FAILURES_TOLD = 3

function concluded(report: SourceReport, failures: readonly SourceFailure[]): SourceReport {
  const reasons = failures.map(({ reason }) => shorten(reason))
  if (reasons.length === 0 && report.items === 0)
    reasons.push(`it gave nothing that can be stored (${report.badRows} bad rows)`)
  if (reasons.length === 0) return report
  const told = eachOnce(reasons)
  const more = told.length > FAILURES_TOLD ? [`and ${told.length - FAILURES_TOLD} more`] : []
  const times = failures.flatMap(({ retryAt }) => retryAt ?? [])
  return {
    ...report,
    outcome: report.items > 0 ? 'partial' : 'failed',
    reason: [...told.slice(0, FAILURES_TOLD), ...more].join('; '),
    retryAt: times.length === 0 ? null : formatInstant(Math.max(...times)),
  }
}

/** Reasons of the form `address: cause`, each cause once, with the first address and the number of the others. */
function eachOnce(reasons: readonly string[]): string[] {
  const byCause = new Map<string, string[]>()
  for (const reason of reasons) {
    const at = reason.indexOf(': ')
    const cause = at < 0 ? reason : reason.slice(at + 2)
    byCause.set(cause, [...(byCause.get(cause) ?? []), reason])
  }
  return [...byCause.values()].map(([first = '', ...others]) => {
    if (others.length === 0) return first
    return `${first} (and at ${others.length} more ${others.length === 1 ? 'address' : 'addresses'})`
  })
}

function overall(outcomes: readonly SourceOutcome[]): SourcesReport['outcome'] {
  if (outcomes.every((outcome) => outcome === 'collected')) return 'collected'
  return outcomes.some((outcome) => outcome === 'collected' || outcome === 'partial') ? 'partial' : 'failed'
}
