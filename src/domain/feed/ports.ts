import type { Day, Instant } from '../time.ts'
import type { SourceObservation } from '../year/coverage.ts'
import type { VerifiedTitle, YearEvent } from '../year/rank.ts'
import type { YearWindow } from '../year/window.ts'
import type { FeedEvent } from './event.ts'
import type { Article } from './article.ts'
import type { ArticleReading, ArticleWish, FailedTry, WantedItem } from './article-plan.ts'
import type { ItemDetails } from './item-details.ts'
import type { KeptAnswer } from './live-source.ts'
import type {
  ItemTrend,
  SearchCaller,
  SearchPage,
  SearchQuestion,
  SimilarItem,
  TermTrend,
  TermTrendQuestion,
} from './search.ts'
import type { Signal } from './signal.ts'
import type { ItemRef } from './source.ts'
import type { SealedSnapshot, Snapshot, SnapshotFeed } from './snapshot.ts'
import type { StoredItem } from './stored-item.ts'

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
  /** Day of the signal whose values an event has on an as-of day; null when there is none. */
  latestDay(event: Pick<YearEvent, 'source' | 'sourceId'>, asOfDay: Day): Promise<Day | null>
  /** Stores what sources say of items, in one transaction; an item's newest `collectedAt` wins. */
  saveDetails(details: readonly ItemDetails[]): Promise<void>
  saveVerifiedTitle(source: string, sourceId: string, title: VerifiedTitle, at: Instant): Promise<void>
  ping(): Promise<void>
}

/** What is remembered of sources from one run to the next; whatever is lost of it costs only requests. */
export interface SourceMemory {
  /** The answer kept for a URL, or null when there is none that was kept after `since` and not later than `now`. */
  keptAnswer(url: string, since: Instant, now: Instant): Promise<KeptAnswer | null>
  /** Keeps an answer instead of the one before, and drops every answer kept at or before `since`. */
  keepAnswer(url: string, answer: KeptAnswer, since: Instant): Promise<void>
  /** Until when a host asked not to be asked, over or not; null when it never did. */
  pausedUntil(host: string): Promise<Instant | null>
  /** Remembers what a host asked for; the later of two times stays. */
  pauseUntil(host: string, until: Instant): Promise<void>
}

/**
 * Whether a snapshot was stored and how many others were removed, or which one is not earlier; `generatedAt` is null when
 * its stored time is damaged.
 */
export type SnapshotSaving =
  { saved: true; removed: number } | { saved: false; newest: { id: string; generatedAt: Instant | null } }

/** The live feed: what it is ranked from, and the snapshots of its runs. */
export interface LiveFeedStore {
  /**
   * One consistent reading of the longest live period: every event published in the 30 days up to `now`, inclusive, with
   * known points, at the values of its latest signal of today or earlier, under its verified title where there is one.
   * Cost grows with the events of those days.
   */
  liveEvents(now: Instant): Promise<FeedEvent[]>
  /** What sources say of the given events, by save key; nothing for an event no source told of. */
  details(events: readonly Pick<FeedEvent, 'source' | 'sourceId'>[]): Promise<Map<string, ItemDetails>>
  /**
   * Stores a snapshot that is later than every other, and removes all but the newest ten, in one transaction
   * (docs/operations.md). The newest again changes nothing and counts as stored.
   *
   * @param options `discardLater`: later snapshots are removed first
   */
  saveSnapshot(sealed: SealedSnapshot, options: { discardLater: boolean }): Promise<SnapshotSaving>
  /**
   * The snapshot with the latest instant; null when there is none.
   *
   * @throws Refusal `storage_damaged` when its row cannot be what was written
   */
  newestSnapshot(): Promise<Snapshot | null>
  /** The stored bytes of one of its feeds, undecoded; null when they are absent. */
  snapshotFeed(id: string, feed: SnapshotFeed): Promise<Uint8Array | null>
}

/** The texts of items, and the tries to read one that failed. */
export interface ArticleStore {
  /** Stores a batch in one transaction, later rows of the same item winning, and forgets the items' failed tries. */
  saveArticles(articles: readonly Article[]): Promise<ImportCounts>
  /** Those of some items that the feed has signals of, in no order. */
  storedItems(items: readonly ItemRef[]): Promise<ItemRef[]>
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

/**
 * Questions about stored items (docs/search.md), answered by the search index; trends of items by the signals.
 *
 * Beside the refusals of stores they refuse with `search_limit` and `search_busy` ({@link FeedSearchRefusal}). A query is
 * answered from one state of the index.
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

/** The search as its callers share it: each asks under its own name, and they are served in turn. */
export interface SharedFeedSearch {
  by(caller: SearchCaller): FeedSearch
}

/** Single items as they are stored, and whether anything stored may have changed. */
export interface StoredItems {
  /** The item of a save key; null when none is stored. */
  item(key: string): Promise<StoredItem | null>
  /**
   * Differs whenever signals, article texts or the search index may have changed; null while the index has yet to take
   * something in, so that nothing may be concluded.
   */
  revision(): Promise<string | null>
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
