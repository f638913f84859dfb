import { clockDifference, describeWrongDay } from '../domain/clock-check.ts'
import type { ClockDifference } from '../domain/clock-check.ts'
import { WANTED_DAYS, laneOf, planNextAttempt } from '../domain/feed/article.ts'
import type { ArticleReading, MinPoints, SkipReason, ItemWithoutText } from '../domain/feed/article.ts'
import type { LiveSourceName, SourceBatch, SourceFailure } from '../domain/feed/live-source.ts'
import { addCounts } from '../domain/feed/signal.ts'
import type { ImportCounts } from '../domain/feed/signal.ts'
import { saveKey } from '../domain/feed/source.ts'
import type { ArticleTexts, Clock, FeedSearch, LiveSource, FeedStore } from '../domain/ports.ts'
import { shorten } from '../domain/text.ts'
import { addDays, dayOf, formatInstant } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { concurrently } from './concurrently.ts'
import { takeSnapshot } from './snapshot.ts'
import type { TakenOrRefused } from './snapshot.ts'

export interface CollectPorts {
  search: Pick<FeedSearch, 'repair'>
  feed: FeedStore
  texts: ArticleTexts
  clock: Clock
  /** Called after each stored batch of a source. */
  onItems: (source: LiveSourceName, items: number) => void
  /** Called after each item whose text was read or failed, with the number of such items and of all. */
  onTexts: (done: number, wanted: number) => void
}

/** The JSON result of `collect` (docs/collecting.md). */
export interface CollectReport extends SourcesReport {
  job: 'collect'
  /** The served snapshot: this run's or a later one, or the reason of a refusal; null when no source returned items. */
  snapshot: TakenOrRefused | null
  /** The result of reading texts; null when no source returned items. */
  articles: ArticlesReport | null
  durationMs: number
}

/**
 * Reads the sources, takes a snapshot of the live periods, rebuilds a search index of another release, and last reads article texts,
 * which takes longest (docs/collecting.md). A crash keeps what was stored, and the next run continues.
 *
 * @throws the signal's reason, and whatever the stores throw
 */
export async function collect(
  ports: CollectPorts,
  sources: readonly LiveSource[],
  options: ArticlesOptions,
): Promise<CollectReport> {
  const { clock, search } = ports
  const { signal } = options
  const startedAt = clock()
  const read = await collectSources(ports, sources, signal)
  // A run that compared nothing leaves the earlier comparison.
  if (read.clock !== null) await ports.feed.saveClockCheck({ checkedAt: clock(), ...read.clock })
  // Without new items the current snapshot stays: another one would have a new date and no new content.
  const isFresh = read.outcome !== 'failed'
  const snapshot = isFresh ? await takeSnapshot(ports, signal) : null
  await search.repair({ onProgress: () => undefined, signal })
  const articles = isFresh ? await collectArticles(ports, options) : null
  return { job: 'collect', ...read, snapshot, articles, durationMs: clock() - startedAt }
}

/** The part `articles` of the result of `collect` (docs/articles.md). */
export interface ArticlesReport {
  /** Number of items that needed a text in this run. */
  wanted: number
  stored: number
  /** Number of items whose text was skipped, by reason. */
  skipped: Partial<Record<SkipReason, number>>
  /** The first hundred failures. */
  failed: { key: string; reason: string }[]
  failedCount: number
}

export interface ArticlesOptions {
  minPoints: MinPoints
  /** Most items of one run. */
  limit: number
  /** Ends the run between two effects; what was stored stays. */
  signal: AbortSignal
}

/** Concurrent items, each of a different host. */
const CONCURRENCY = 4

/**
 * Reads and stores the texts of items with enough points (docs/articles.md). A failing server does not affect other
 * items.
 *
 * @throws errors of the store; the signal's reason
 */
export async function collectArticles(
  { feed, texts, clock, onTexts }: Pick<CollectPorts, 'feed' | 'texts' | 'clock' | 'onTexts'>,
  { minPoints, limit, signal }: ArticlesOptions,
): Promise<ArticlesReport> {
  const at = clock()
  const seenSince = addDays(dayOf(at), 1 - WANTED_DAYS)
  const items = limit === 0 ? [] : await feed.itemsNeedingText({ minPoints, seenSince, at, limit })
  const report: ArticlesReport = { wanted: items.length, stored: 0, skipped: {}, failed: [], failedCount: 0 }
  let done = 0
  const read = async (item: ItemWithoutText, combinedSignal: AbortSignal): Promise<void> => {
    combinedSignal.throwIfAborted()
    const reading = await texts.read(item, combinedSignal)
    const readAt = clock()
    // A crash before either write: the item is read again.
    if (reading.kind === 'text') {
      const { source, sourceId } = item
      const { text, provenance } = reading
      await feed.saveArticles([{ source, sourceId, text, provenance, fetchedAt: readAt }])
    } else {
      await feed.recordFailedAttempt(planNextAttempt(item, reading, readAt))
    }
    count(report, item, reading)
    done += 1
    onTexts(done, items.length)
  }
  const lanes = new Set(items.map(laneOf))
  await concurrently(lanes, CONCURRENCY, signal, async (lane, combinedSignal) => {
    for (const item of items.filter((each) => laneOf(each) === lane)) await read(item, combinedSignal)
  })
  return report
}

const FAILURES_KEPT = 100

function count(report: ArticlesReport, { source, sourceId }: ItemWithoutText, reading: ArticleReading): void {
  if (reading.kind === 'text') {
    report.stored += 1
  } else if (reading.kind === 'skipped') {
    report.skipped[reading.why] = (report.skipped[reading.why] ?? 0) + 1
  } else {
    report.failedCount += 1
    if (report.failed.length < FAILURES_KEPT)
      report.failed.push({ key: saveKey(source, sourceId), reason: shorten(reading.reason) })
  }
}

/**
 * The outcome of one source.
 *
 * - `collected`: everything was read
 *
 * - `partial`: only a part was read; it is stored
 *
 * - `failed`: nothing was read
 *
 * - `skipped`: a required setting is missing
 */
type SourceOutcome = 'collected' | 'partial' | 'failed' | 'skipped'

/** One source in the JSON result of `collect` (docs/collecting.md). */
export interface SourceReport extends ImportCounts {
  outcome: SourceOutcome
  /** Number of items stored for the day: new, replaced and unchanged ones. */
  items: number
  /** Number of rows that were left out. */
  badRows: number
  requests: number
  notModified: number
  /** The reason when it is not `collected`, in one line; else null. */
  reason: string | null
  /** Earliest retry that the source requested, or null. */
  retryAt: string | null
  /** Reasons of the first bad rows. */
  problems: string[]
}

/** The sources in the JSON result of `collect` (docs/collecting.md). */
export interface SourcesReport {
  day: Day
  outcome: 'collected' | 'partial' | 'failed'
  sources: Partial<Record<LiveSourceName, SourceReport>>
  /** This clock against those of the sources; null if no response had a time. */
  clock: ClockDifference | null
}

type SourcesPorts = Pick<CollectPorts, 'feed' | 'clock' | 'onItems'>

/**
 * Reads today's items of all sources concurrently and stores them in batches. The day of the start counts for the whole
 * run. A failing source is reported; its earlier batches and the other sources are not affected.
 *
 * @throws the signal's reason, and errors of the store, after every source has stopped; stored items stay
 */
export async function collectSources(
  ports: SourcesPorts,
  sources: readonly LiveSource[],
  signal: AbortSignal,
): Promise<SourcesReport> {
  const startedAt = ports.clock()
  const day = dayOf(startedAt)
  const comparison = compareClock(sources.length, startedAt)
  const reads = await concurrently(sources, Infinity, signal, (source, combinedSignal) =>
    collectSource(ports, source, day, comparison, combinedSignal).finally(() => comparison.add(source, [])),
  )
  const outcome = overallOutcome(reads.map(({ report }) => report.outcome))
  const reports = Object.fromEntries(reads.map(({ name, report }) => [name, report]))
  return { day, outcome, sources: reports, clock: clockDifference(reads.map(({ skews }) => skews)) }
}

const PROBLEMS_KEPT = 10

/** One source after it was read. */
interface SourceRead {
  name: LiveSourceName
  report: SourceReport
  /** See {@link SourceBatch}. */
  skews: number[]
}

async function collectSource(
  { feed, onItems }: SourcesPorts,
  source: LiveSource,
  day: Day,
  comparison: ClockComparison,
  signal: AbortSignal,
): Promise<SourceRead> {
  const report = emptyReport()
  const name = source.source
  if (source.missingSettings.length > 0) {
    const reason = `missing setting: ${source.missingSettings.join(', ')}`
    return { name, report: { ...report, outcome: 'skipped', reason }, skews: [] }
  }
  const failures: SourceFailure[] = []
  const skews: number[] = []
  for await (const batch of source.read(day, signal)) {
    signal.throwIfAborted()
    skews.push(...batch.skews)
    countRequests(report, batch)
    comparison.add(source, batch.skews)
    const reason = await comparison.wrongDay
    signal.throwIfAborted()
    if (reason !== null) {
      failures.push({ reason, retryAt: null })
      break
    }
    if (batch.signals.length > 0) {
      // Details first, so that a crash in between leaves no item without its details.
      await feed.saveDetails(batch.details)
      const counts = await feed.importSignals(batch.signals)
      addCounts(report, counts)
      report.items += counts.inserted + counts.replaced + counts.unchanged
    }
    failures.push(...batch.failures)
    onItems(name, report.items)
  }
  return { name, report: concludeReport(report, failures), skews }
}

/** The comparison of this clock with the first batch of every source. */
interface ClockComparison {
  /** Adds the first batch of a source, or its end without one; later calls do nothing. */
  add(source: LiveSource, skews: readonly number[]): void
  /** Why nothing may be stored; null if the run's day is that of the sources. Resolves when every source was added. */
  wrongDay: Promise<string | null>
}

/**
 * Nothing is stored before the comparison: a row of a day that has not come would replace the row of that day itself, and
 * no day is ever deleted.
 */
function compareClock(sources: number, startedAt: Instant): ClockComparison {
  const firstSkews = new Map<LiveSource, readonly number[]>()
  let conclude: (reason: string | null) => void = () => undefined
  const wrongDay = new Promise<string | null>((resolve) => (conclude = resolve))
  return {
    add(source, skews) {
      if (firstSkews.has(source)) return
      firstSkews.set(source, skews)
      if (firstSkews.size === sources)
        conclude(describeWrongDay(clockDifference([...firstSkews.values()]), startedAt))
    },
    wrongDay,
  }
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

const FAILURES_REPORTED = 3

function concludeReport(report: SourceReport, failures: readonly SourceFailure[]): SourceReport {
  const reasons = failures.map(({ reason }) => shorten(reason))
  if (reasons.length === 0 && report.items === 0)
    reasons.push(`no usable items returned (${report.badRows} bad rows)`)
  if (reasons.length === 0) return report
  const distinctReasons = groupByCause(reasons)
  const more =
    distinctReasons.length > FAILURES_REPORTED
      ? [`and ${distinctReasons.length - FAILURES_REPORTED} more`]
      : []
  const times = failures.flatMap(({ retryAt }) => retryAt ?? [])
  return {
    ...report,
    outcome: report.items > 0 ? 'partial' : 'failed',
    reason: [...distinctReasons.slice(0, FAILURES_REPORTED), ...more].join('; '),
    retryAt: times.length === 0 ? null : formatInstant(Math.max(...times)),
  }
}

/** Groups reasons of the form `address: cause` by cause: the first address, and the number of the others. */
function groupByCause(reasons: readonly string[]): string[] {
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

function overallOutcome(outcomes: readonly SourceOutcome[]): SourcesReport['outcome'] {
  if (outcomes.every((outcome) => outcome === 'collected')) return 'collected'
  return outcomes.some((outcome) => outcome === 'collected' || outcome === 'partial') ? 'partial' : 'failed'
}
