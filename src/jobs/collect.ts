import type { LiveSource } from '../domain/feed/live-source.ts'
import type { Clock } from '../domain/ports.ts'
import { collectArticles } from './collect-articles.ts'
import type { ArticlesOptions, ArticlesPorts, ArticlesReport } from './collect-articles.ts'
import { collectSources } from './collect-sources.ts'
import type { SourcesPorts, SourcesReport } from './collect-sources.ts'
import { takeSnapshot } from './rank-periods.ts'
import type { RankPeriodsPorts, TakenOrRefused } from './rank-periods.ts'
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
