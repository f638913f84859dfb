import type { Instant } from '../time.ts'
import type { SourceObservation } from '../year/coverage.ts'
import type { VerifiedTitle, YearEvent } from '../year/rank.ts'
import type { YearWindow } from '../year/window.ts'
import type { Article } from './article.ts'
import type { ArticleReading, ArticleWish, FailedTry, WantedItem } from './article-plan.ts'
import type { ItemDetails } from './item-details.ts'
import type { Signal } from './signal.ts'

/** What the feed asks of the outside; `domain/ports.ts` gives it out with the rest, and its promises hold here too. */

/** How many of a batch of signals were new, changed a stored one, or changed nothing. */
export interface ImportCounts {
  inserted: number
  replaced: number
  unchanged: number
}

/** Daily signals and the titles their sources verified. */
export interface FeedStore {
  /** Stores a batch in one transaction, later rows of the same triple winning. */
  importSignals(signals: readonly Signal[]): Promise<ImportCounts>
  /**
   * One consistent reading of a window: every event published in it with known points, at the values of its
   * latest signal up to the as-of day, and what each source left. Cost grows with the window's events.
   */
  readWindow(window: YearWindow): Promise<{ events: YearEvent[]; observed: SourceObservation[] }>
  /** Verified titles among the given events, by save key. */
  verifiedTitles(events: readonly YearEvent[]): Promise<Map<string, VerifiedTitle>>
  /** Stores what sources say of items, in one transaction; an item's newest `collectedAt` wins. */
  saveDetails(details: readonly ItemDetails[]): Promise<void>
  saveVerifiedTitle(source: string, sourceId: string, title: VerifiedTitle, at: Instant): Promise<void>
  ping(): Promise<void>
}

/** The texts of items, and the tries to read one that failed. */
export interface ArticleStore {
  /** Stores a batch in one transaction, later rows of the same item winning, and forgets the items' failed tries. */
  saveArticles(articles: readonly Article[]): Promise<ImportCounts>
  /** The text of an item; null when there is none. */
  article(source: string, sourceId: string): Promise<Article | null>
  /**
   * Items a wish holds for: the latest signal is of its first day or later and has its source's points, there is no
   * text, and no failed try that forbids another now. The best of each source first, the sources taking turns.
   */
  itemsWantingText(wish: ArticleWish): Promise<WantedItem[]>
  /** Replaces what is known of the item's failed tries. */
  recordFailedTry(failed: FailedTry): Promise<void>
}

/** Where texts are read: the source of an item, or the page it links to. */
export interface ArticleTexts {
  /** Never throws for what a stranger's server does; rejects with the signal's reason. */
  read(item: Pick<WantedItem, 'source' | 'sourceId' | 'url'>, signal: AbortSignal): Promise<ArticleReading>
}
