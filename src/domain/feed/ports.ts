import type { Instant } from '../time.ts'
import type { SourceObservation } from '../year/coverage.ts'
import type { VerifiedTitle, YearEvent } from '../year/rank.ts'
import type { YearWindow } from '../year/window.ts'
import type { ItemDetails } from './item-details.ts'
import type {
  ItemTrend,
  SearchPage,
  SearchQuestion,
  SimilarItem,
  TermTrend,
  TermTrendQuestion,
} from './search.ts'
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

/**
 * Questions about stored items (docs/search.md), answered by the search index; trends of items by the signals.
 *
 * Beside the refusals of stores they refuse with `search_busy` while too many questions wait. A question is answered
 * from one state of the index.
 */
export interface FeedSearch {
  /**
   * Items that hold the words of a text, best first. No text is an error.
   *
   * @throws Refusal `invalid_cursor` for a cursor that belongs to no earlier answer to the same question
   */
  search(question: SearchQuestion): Promise<SearchPage>
  /**
   * Items like another, most alike first, the item itself left out.
   *
   * @param key save key
   * @param limit 1 to {@link LIMIT_MAX}
   * @throws Refusal `item_not_found`
   */
  similar(key: string, limit: number): Promise<SimilarItem[]>
  /**
   * Points and rank of an item on every day it was observed.
   *
   * @throws Refusal `item_not_found`
   */
  itemTrend(key: string): Promise<ItemTrend>
  /** How many items of each day mention a term; every text is a term. */
  termTrend(question: TermTrendQuestion): Promise<TermTrend>
}

/** How far a step of indexing came. */
export interface IndexProgress {
  /** Events taken in by this step. */
  indexed: number
  /** True when nothing is left to do. */
  done: boolean
}

/** The search index as its writers see it. Every step is one transaction; a process may end between any two. */
export interface SearchIndex {
  /** False when another release's rules cut the words of the index: it must be rebuilt. */
  isCurrent(): Promise<boolean>
  /** Takes in some of the events that changed since. Several processes may do so at once. */
  refresh(): Promise<IndexProgress>
  /** Begins a rebuild beside the index that answers, and ends any other; returns its number. */
  beginRebuild(): Promise<number>
  /**
   * Takes some events into a rebuild; the step that is done puts it in the place of the index that answered.
   *
   * @throws Refusal `rebuild_superseded` when another rebuild has begun
   */
  rebuild(build: number): Promise<IndexProgress>
}

/** Refusals of {@link SearchIndex}. */
export type SearchIndexRefusal = 'rebuild_superseded'
