import { WANTED_DAYS, laneOf, planNextAttempt } from '../domain/feed/article.ts'
import type { ArticleReading, MinPoints, SkipReason, ItemWithoutText } from '../domain/feed/article.ts'
import { saveKey } from '../domain/feed/source.ts'
import type { ArticleTexts, Clock, FeedSearch, LiveSource, FeedStore } from '../domain/ports.ts'
import { shorten } from '../domain/text.ts'
import { addDays, dayOf } from '../domain/time.ts'
import { collectSources } from './collect-sources.ts'
import type { SourcesPorts, SourcesReport } from './collect-sources.ts'
import { concurrently } from './concurrently.ts'
import { takeSnapshot } from './snapshot.ts'
import type { RankPeriodsPorts, TakenOrRefused } from './snapshot.ts'

export interface CollectPorts {
  search: Pick<FeedSearch, 'repair'>
  feed: SourcesPorts['feed'] &
    ArticlesPorts['feed'] &
    RankPeriodsPorts['feed'] &
    Pick<FeedStore, 'saveClockCheck'>
  texts: ArticlesPorts['texts']
  clock: Clock
  /** Called after each stored batch of a source. */
  onItems: SourcesPorts['onProgress']
  /** Called after each item whose text was read or failed. */
  onTexts: ArticlesPorts['onProgress']
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
  const read = await collectSources({ ...ports, onProgress: ports.onItems }, sources, signal)
  // A run that compared nothing leaves the earlier comparison.
  if (read.clock !== null) await ports.feed.saveClockCheck({ checkedAt: clock(), ...read.clock })
  // Without new items the current snapshot stays: another one would have a new date and no new content.
  const isFresh = read.outcome !== 'failed'
  const snapshot = isFresh ? await takeSnapshot(ports, signal) : null
  await search.repair({ onProgress: () => undefined, signal })
  const articles = isFresh ? await collectArticles({ ...ports, onProgress: ports.onTexts }, options) : null
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

export interface ArticlesPorts {
  feed: Pick<FeedStore, 'itemsNeedingText' | 'saveArticles' | 'recordFailedAttempt'>
  texts: ArticleTexts
  clock: Clock
  /** Called after each item with the number of finished items and of all items. */
  onProgress: (done: number, wanted: number) => void
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
  { feed, texts, clock, onProgress }: ArticlesPorts,
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
    onProgress(done, items.length)
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
