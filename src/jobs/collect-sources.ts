import type { LiveSourceName, SourceBatch } from '../domain/feed/live-source.ts'
import type { Clock, FeedStore, LiveSource } from '../domain/ports.ts'
import { dayOf, formatInstant } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'

/**
 * What became of one source.
 *
 * - `collected`: everything that was asked of it was read
 * - `partial`: some of it; what was read is stored
 * - `failed`: nothing of it
 * - `skipped`: it was not asked, because a setting it needs is not there
 */
type SourceOutcome = 'collected' | 'partial' | 'failed' | 'skipped'

/** One source in the JSON result of `collect` (docs/collecting.md). */
export interface SourceReport {
  outcome: SourceOutcome
  /** Items stored for the day: the sum of the next three. */
  items: number
  inserted: number
  replaced: number
  unchanged: number
  /** Rows of replies that were left out. */
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

/** What became of the sources: the first part of the JSON result of `collect` (docs/collecting.md). */
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

const PROBLEMS_KEPT = 10
const FAILURES_TOLD = 3

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
  const reports = await allOrFirstFault(sources, signal, async (source, until) => {
    const report = await collectSource(ports, source, day, until)
    return [source.source, report] as const
  })
  return {
    day,
    outcome: overall(reports.map(([, { outcome }]) => outcome)),
    sources: Object.fromEntries(reports),
  }
}

async function collectSource(
  { feed, onProgress }: SourcesPorts,
  live: LiveSource,
  day: Day,
  signal: AbortSignal,
): Promise<SourceReport> {
  const tally = new Tally()
  if (live.lacks.length > 0) return tally.skipped(`${live.lacks.join(' and ')} not set`)
  for await (const batch of live.read(day, signal)) {
    signal.throwIfAborted()
    if (batch.signals.length > 0) {
      // Details first: an item that is there is then never without what is known of it.
      await feed.saveDetails(batch.details)
      tally.stored(await feed.importSignals(batch.signals))
    }
    tally.add(batch)
    onProgress(live.source, tally.report.items)
  }
  return tally.finish()
}

/** Runs all at once; the first fault ends the others, and is thrown when they have ended. */
async function allOrFirstFault<T>(
  sources: readonly LiveSource[],
  signal: AbortSignal,
  run: (source: LiveSource, until: AbortSignal) => Promise<T>,
): Promise<T[]> {
  const ending = new AbortController()
  const end = (): void => ending.abort(signal.reason)
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  let fault: { error: unknown } | null = null
  const done = await Promise.all(
    sources.map(async (source) => {
      try {
        return [await run(source, ending.signal)]
      } catch (error) {
        fault ??= { error }
        ending.abort(error)
        return []
      }
    }),
  )
  signal.removeEventListener('abort', end)
  throwFirst(fault)
  return done.flat()
}

function throwFirst(fault: { error: unknown } | null): void {
  if (fault) throw fault.error
}

function overall(outcomes: readonly SourceOutcome[]): SourcesReport['outcome'] {
  if (outcomes.every((outcome) => outcome === 'collected')) return 'collected'
  return outcomes.some((outcome) => outcome === 'collected' || outcome === 'partial') ? 'partial' : 'failed'
}

/** Counts of one source. */
class Tally {
  readonly report: SourceReport = {
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
  readonly #reasons: string[] = []
  #retryAt: Instant | null = null

  skipped(reason: string): SourceReport {
    return { ...this.report, outcome: 'skipped', reason }
  }

  stored({ inserted, replaced, unchanged }: { inserted: number; replaced: number; unchanged: number }): void {
    this.report.items += inserted + replaced + unchanged
    this.report.inserted += inserted
    this.report.replaced += replaced
    this.report.unchanged += unchanged
  }

  add({ badRows, failures, requests, notModified }: SourceBatch): void {
    this.report.badRows += badRows.length
    this.report.requests += requests
    this.report.notModified += notModified
    for (const { sourceId, reason } of badRows) {
      if (this.report.problems.length === PROBLEMS_KEPT) break
      this.report.problems.push(shorten(sourceId === null ? reason : `${sourceId}: ${reason}`))
    }
    for (const { reason, retryAt } of failures) {
      this.#reasons.push(shorten(reason))
      if (retryAt !== null) this.#retryAt = Math.max(this.#retryAt ?? retryAt, retryAt)
    }
  }

  finish(): SourceReport {
    const { report } = this
    const reasons = this.#reasons
    if (reasons.length === 0 && report.items === 0) {
      reasons.push(`it gave nothing that can be stored (${report.badRows} bad rows)`)
    }
    if (reasons.length > 0) {
      report.outcome = report.items > 0 ? 'partial' : 'failed'
      const told = eachOnce(reasons)
      const more = told.length > FAILURES_TOLD ? [`and ${told.length - FAILURES_TOLD} more`] : []
      report.reason = [...told.slice(0, FAILURES_TOLD), ...more].join('; ')
    }
    report.retryAt = this.#retryAt === null ? null : formatInstant(this.#retryAt)
    return report
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

/** Longest text of a report, in characters: input and replies are not to be repeated at length. */
const TEXT_MAX_LENGTH = 400

/** A text short enough for a report, and on one line; `…` at its end where some of it was left out. */
export function shorten(text: string): string {
  // A text of many megabytes need not be taken apart to see that it is too long.
  const start = text.slice(0, 2 * TEXT_MAX_LENGTH + 1)
  const characters = Array.from(start.replaceAll(/\s+/g, ' '))
  const isCut = characters.length > TEXT_MAX_LENGTH || start.length < text.length
  return characters.slice(0, TEXT_MAX_LENGTH).join('') + (isCut ? '…' : '')
}
