import { WANTED_DAYS, laneOf, planNextTry } from '../domain/feed/article.ts'
import type { ArticleReading, MinPoints, SkipReason, WantedItem } from '../domain/feed/article.ts'
import { saveKey } from '../domain/feed/source.ts'
import type { IndexProgress } from '../domain/feed/search.ts'
import type { ArticleTexts, Clock, LiveSource, FeedSearch, FeedStore } from '../domain/ports.ts'
import { addDays, dayOf } from '../domain/time.ts'
import { collectSources, shorten } from './collect-sources.ts'
import type { SourcesPorts, SourcesReport } from './collect-sources.ts'
import { takeSnapshot } from './rank-periods.ts'
import type { RankPeriodsPorts, TakenOrRefused } from './rank-periods.ts'

export interface CollectPorts extends Pick<IndexPorts, 'search'> {
  feed: SourcesPorts['feed'] & ArticlesPorts['feed'] & RankPeriodsPorts['feed']
  texts: ArticlesPorts['texts']
  clock: Clock
  /** Called after each batch of a source that is stored. */
  onItems: SourcesPorts['onProgress']
  /** Called after each item that was given a text, or not. */
  onTexts: ArticlesPorts['onProgress']
}

/** The JSON result of `collect` (docs/collecting.md). */
export interface CollectReport extends SourcesReport {
  job: 'collect'
  /** The snapshot that is served: this run's, or a later one; or why none was taken; null when no source gave anything. */
  snapshot: TakenOrRefused | null
  /** What came of the texts; null when no source gave anything. */
  articles: ArticlesReport | null
  /** Events the search index took in. */
  indexed: number
  durationMs: number
}

/**
 * Reads the sources, then takes a snapshot of the live periods, brings the search index up to date, and last reads the
 * texts of items, which takes longest (docs/collecting.md). When no source gave anything the snapshot there is stays: a
 * new one would be dated now and know nothing newer. May be cut anywhere; what was stored stays.
 *
 * @throws the signal's reason, and whatever the stores throw
 */
export async function collect(
  ports: CollectPorts,
  sources: readonly LiveSource[],
  { signal, ...wish }: ArticlesOptions,
): Promise<CollectReport> {
  const startedAt = ports.clock()
  const index = (): Promise<number> =>
    refreshIndex({ search: ports.search, onProgress: () => undefined, signal }).then(({ indexed }) => indexed)
  const read = await collectSources({ ...ports, onProgress: ports.onItems }, sources, signal)
  const isFresh = read.outcome !== 'failed'
  const snapshot = isFresh ? await takeSnapshot(ports, signal) : null
  let indexed = await index()
  const articles = isFresh
    ? await collectArticles({ ...ports, onProgress: ports.onTexts }, { ...wish, signal })
    : null
  if (articles !== null && articles.stored > 0) indexed += await index()
  return { job: 'collect', ...read, snapshot, articles, indexed, durationMs: ports.clock() - startedAt }
}

/** What indexing did: the JSON result of `reindex` (docs/search.md). */
export interface IndexReport {
  job: 'reindex' | 'refresh-index'
  /** Events taken in. */
  indexed: number
}

export interface IndexPorts {
  search: Omit<FeedSearch, 'by'>
  /** Called after each step with the events taken in so far. */
  onProgress: (indexed: number) => void
  /** Ends the work between two steps; what was done stays. */
  signal: AbortSignal
}

/**
 * Brings the search index up to date with the signals and articles (docs/search.md). Idempotent; may be cut off
 * anywhere, run by several processes at once, and beside an import. An index of another release's rules is rebuilt.
 */
export async function refreshIndex(ports: IndexPorts): Promise<IndexReport> {
  if (!(await ports.search.isCurrent())) return { ...(await rebuildIndex(ports)), job: 'refresh-index' }
  const indexed = await untilDone(() => ports.search.refresh(), ports, 0)
  return { job: 'refresh-index', indexed }
}

/**
 * Builds the search index anew from every signal and article (docs/search.md). The index there was answers until the
 * new one is complete; cut off, it goes on answering.
 *
 * @throws Refusal `rebuild_superseded` when another rebuild began meanwhile
 */
export async function rebuildIndex(ports: IndexPorts): Promise<IndexReport> {
  const build = await ports.search.beginRebuild()
  const rebuilt = await untilDone(() => ports.search.rebuild(build), ports, 0)
  const indexed = await untilDone(() => ports.search.refresh(), ports, rebuilt)
  return { job: 'reindex', indexed }
}

async function untilDone(
  step: () => Promise<IndexProgress>,
  { onProgress, signal }: IndexPorts,
  before: number,
): Promise<number> {
  let total = before
  for (;;) {
    signal.throwIfAborted()
    const { indexed, done } = await step()
    total += indexed
    onProgress(total)
    if (done) return total
    // The driver of files works synchronously; signals are noticed between two turns.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** What came of a run: the part `articles` of the result of `collect` (docs/articles.md). */
export interface ArticlesReport {
  /** Items of this run that wanted a text. */
  wanted: number
  stored: number
  /** Items whose text is not kept although nothing failed, by reason. */
  skipped: Partial<Record<SkipReason, number>>
  /** The first hundred. */
  failed: { key: string; reason: string }[]
  failedCount: number
}

export interface ArticlesPorts {
  feed: Pick<FeedStore, 'itemsWantingText' | 'saveArticles' | 'recordFailedTry'>
  texts: ArticleTexts
  clock: Clock
  /** Called after each item with the items done so far and all there are. */
  onProgress: (done: number, wanted: number) => void
}

export interface ArticlesOptions {
  minPoints: MinPoints
  /** Items of one run at most. */
  limit: number
  /** Ends the run between two effects; what was stored stays. */
  signal: AbortSignal
}

/** Items read at the same time, each of another host. */
const AT_ONCE = 4

const FAILURES_KEPT = 100

/**
 * Reads and keeps the texts of items that have the points for it (docs/articles.md). Each text is stored as soon as it
 * is read, and each try that failed is recorded, so that a run may be cut anywhere; what one server does never costs
 * another item its text.
 *
 * @throws what the store throws; the signal's reason
 */
export async function collectArticles(
  { feed, texts, clock, onProgress }: ArticlesPorts,
  { minPoints, limit, signal }: ArticlesOptions,
): Promise<ArticlesReport> {
  const startedAt = clock()
  const seenSince = addDays(dayOf(startedAt), 1 - WANTED_DAYS)
  const items = limit === 0 ? [] : await feed.itemsWantingText({ minPoints, seenSince, at: startedAt, limit })
  const report: ArticlesReport = { wanted: items.length, stored: 0, skipped: {}, failed: [], failedCount: 0 }
  let done = 0
  await inLanes(items, signal, async (item) => {
    const reading = await texts.read(item, signal)
    const at = clock()
    if (reading.kind === 'text') {
      const { source, sourceId } = item
      const { text, provenance } = reading
      await feed.saveArticles([{ source, sourceId, text, provenance, fetchedAt: at }])
    } else {
      await feed.recordFailedTry(planNextTry(item, reading, at))
    }
    count(report, item, reading)
    done += 1
    onProgress(done, items.length)
  })
  return report
}

function count(report: ArticlesReport, item: WantedItem, reading: ArticleReading): void {
  if (reading.kind === 'text') {
    report.stored += 1
  } else if (reading.kind === 'skipped') {
    report.skipped[reading.why] = (report.skipped[reading.why] ?? 0) + 1
  } else {
    report.failedCount += 1
    if (report.failed.length < FAILURES_KEPT) {
      const { source, sourceId } = item
      report.failed.push({ key: saveKey(source, sourceId), reason: shorten(reading.reason) })
    }
  }
}

/** Does the work for every item: a few at a time, one of each lane at a time, in the order of the items. */
async function inLanes(
  items: readonly WantedItem[],
  signal: AbortSignal,
  work: (item: WantedItem) => Promise<void>,
): Promise<void> {
  const waiting = items.map((item) => ({ item, lane: laneOf(item) }))
  const running = new Map<string, Promise<string>>()
  try {
    while (waiting.length > 0 || running.size > 0) {
      signal.throwIfAborted()
      const free = running.size < AT_ONCE ? waiting.findIndex(({ lane }) => !running.has(lane)) : -1
      const [next] = free < 0 ? [] : waiting.splice(free, 1)
      if (next)
        running.set(
          next.lane,
          work(next.item).then(() => next.lane),
        )
      else running.delete(await Promise.race(running.values()))
    }
  } finally {
    // Nothing is left at work when the run ends early.
    await Promise.allSettled(running.values())
  }
}
