import { laneOf, planNextTry, WANTED_DAYS } from '../domain/feed/article-plan.ts'
import type { ArticleReading, MinPoints, SkipReason, WantedItem } from '../domain/feed/article-plan.ts'
import { saveKey } from '../domain/feed/source.ts'
import type { ArticleStore, ArticleTexts, Clock } from '../domain/ports.ts'
import { addDays, dayOf } from '../domain/time.ts'
import { shorten } from './shorten.ts'

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
  articles: Pick<ArticleStore, 'itemsWantingText' | 'saveArticles' | 'recordFailedTry'>
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
  { articles, texts, clock, onProgress }: ArticlesPorts,
  { minPoints, limit, signal }: ArticlesOptions,
): Promise<ArticlesReport> {
  const startedAt = clock()
  const seenSince = addDays(dayOf(startedAt), 1 - WANTED_DAYS)
  const items =
    limit === 0 ? [] : await articles.itemsWantingText({ minPoints, seenSince, at: startedAt, limit })
  const report: ArticlesReport = { wanted: items.length, stored: 0, skipped: {}, failed: [], failedCount: 0 }
  let done = 0
  await inLanes(items, signal, async (item) => {
    const reading = await texts.read(item, signal)
    const at = clock()
    if (reading.kind === 'text') {
      const { source, sourceId } = item
      const { text, provenance } = reading
      await articles.saveArticles([{ source, sourceId, text, provenance, fetchedAt: at }])
    } else {
      await articles.recordFailedTry(planNextTry(item, reading, at))
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
