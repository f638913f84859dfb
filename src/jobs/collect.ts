import type { LiveSource } from '../domain/feed/live-source.ts'
import type { Clock } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { collectArticles } from './collect-articles.ts'
import type { ArticlesOptions, ArticlesPorts, ArticlesReport } from './collect-articles.ts'
import { collectSources } from './collect-sources.ts'
import type { SourcesPorts, SourcesReport } from './collect-sources.ts'
import { RANK_PERIODS_REFUSALS, rankPeriods } from './rank-periods.ts'
import type { RankPeriodsPorts } from './rank-periods.ts'
import { refreshIndex } from './refresh-index.ts'
import type { IndexPorts } from './refresh-index.ts'

export interface CollectPorts extends RankPeriodsPorts, Pick<IndexPorts, 'index'> {
  feed: SourcesPorts['feed']
  articles: ArticlesPorts['articles']
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
  snapshot:
    { outcome: 'taken' | 'superseded'; snapshotId: string } | { outcome: 'refused'; reason: string } | null
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
    refreshIndex({ index: ports.index, onProgress: () => undefined, signal }).then(({ indexed }) => indexed)
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

const REFUSED: ReadonlySet<string> = new Set(RANK_PERIODS_REFUSALS)

/** A wrong clock, or what one seems to have left, costs the snapshot and nothing else of the run. */
async function takeSnapshot(
  ports: RankPeriodsPorts,
  signal: AbortSignal,
): Promise<NonNullable<CollectReport['snapshot']>> {
  try {
    const { outcome, snapshotId } = await rankPeriods(ports, { signal, discardLater: false })
    return { outcome, snapshotId }
  } catch (error) {
    if (!(error instanceof Refusal) || !REFUSED.has(error.code)) throw error
    return { outcome: 'refused', reason: error.detail ?? error.code }
  }
}
