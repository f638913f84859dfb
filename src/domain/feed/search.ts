import type { PlaceBounds } from '../fair-queue.ts'
import type { Day } from '../time.ts'

/** Questions about stored items and their answers (docs/search.md). */

/** Most items one answer holds. */
export const LIMIT_MAX = 100
export const LIMIT_DEFAULT = 20

/** How far down a ranking pages reach. */
export const REACH_MAX = 1_000

/** Longest text a query may hold, in UTF-16 units, and the most words of it that are looked for. */
export const QUERY_MAX_LENGTH = 1_000
export const QUERY_MAX_WORDS = 32

/** Most days a trend of a term covers. */
export const TREND_MAX_DAYS = 3_660

export interface SearchQuestion {
  /** What a person typed; no text is an error (docs/search.md tells how it is read). */
  query: string
  /** Sources as in a signal; none: all. */
  sources: readonly string[]
  /** Days of items, both included. */
  from: Day | null
  to: Day | null
  /** 1 to {@link LIMIT_MAX}. */
  limit: number
  /** From the page before; null for the first. */
  cursor: string | null
}

/** A stored item, at the values of its latest signal. */
export interface IndexedItem {
  /** Save key. */
  key: string
  source: string
  sourceId: string
  title: string
  url: string | null
  discussionUrl: string | null
  /** UTC day of its publication, or of its first observation where the source told no publication. */
  day: Day
  publishedAt: string | null
  firstDay: Day
  lastDay: Day
  points: number | null
  comments: number | null
}

/** How much of a question an item holds: every word, every word with the last one begun, or some. */
export const MATCHES = ['all', 'prefix', 'some'] as const
export type Match = (typeof MATCHES)[number]

export interface SearchHit extends IndexedItem {
  match: Match
}

export interface SearchPage {
  items: SearchHit[]
  /** Asks for the next page; null on the last. */
  cursor: string | null
}

/** Why an item is similar to another. */
export const SIMILARITIES = ['same-discussion', 'near-duplicate-title', 'same-subject'] as const
export type Similarity = (typeof SIMILARITIES)[number]

export interface SimilarItem extends IndexedItem {
  /** At least one, strongest first. */
  reasons: Similarity[]
  /** How alike the titles are, 0 to 1. */
  score: number
  /** Words both titles hold, rarest first. */
  sharedWords: string[]
}

/** An item as it was observed on one day. */
interface TrendPoint {
  day: Day
  points: number | null
  comments: number | null
  /** Place by points among the items its source was observed with on that day; null without points. */
  rank: number | null
  /** How many items with points its source was observed with on that day. */
  of: number
}

export interface ItemTrend {
  key: string
  title: string
  days: TrendPoint[]
}

export interface TermTrendQuestion {
  term: string
  from: Day | null
  to: Day | null
}

export interface TermTrend {
  /** Items that mention the term. */
  mentions: number
  /** Days with a mention, ascending; at most {@link TREND_MAX_DAYS}, the latest. */
  days: { day: Day; mentions: number }[]
}

/** Open queries: of one address, of one network, and in all (docs/search.md). */
export const SEARCH_PLACES: PlaceBounds = { perAddress: 4, perNetwork: 16, all: 64 }

/** Longest time of a query, from its turn on. */
export const QUERY_TIMEOUT_MS = 2_000

/** When a refused caller may try again: every query that ran has ended by then. */
export const SEARCH_RETRY_AFTER_SECONDS = QUERY_TIMEOUT_MS / 1_000

/** Who asks the search. */
export interface SearchCaller {
  /** As `clientAddress` gives it: open queries are counted by it, and addresses are served in turn. */
  address: string
  /** True for the chat's tools: their queries go before all others. */
  isChat: boolean
  /** Aborted when the caller no longer waits: a query that waits for its turn is then dropped. Null: never. */
  signal: AbortSignal | null
}

/** The pages of the server: what they read, all visitors share. It has places and turns beside those of all clients. */
export const PAGES_CALLER: SearchCaller = { address: 'pages', isChat: false, signal: null }

/** The program itself, where nobody else asks. */
export const LOCAL_CALLER: SearchCaller = { address: 'local', isChat: false, signal: null }

/**
 * What {@link CallerSearch} may decline with, beside the refusals of stores: `search_limit` when the caller's address or
 * network has too many open queries, `search_busy` when all places are taken.
 */
export type FeedSearchRefusal = 'invalid_cursor' | 'item_not_found' | 'search_limit' | 'search_busy'

/** Refusal codes of `/api/search`, `/api/similar` and `/api/trend` (docs/search.md): the whole, closed list. */
export const SEARCH_REFUSALS = [
  'invalid_query',
  'invalid_source',
  'invalid_time',
  'invalid_limit',
  'invalid_cursor',
  'invalid_key',
  'invalid_trend',
  'item_not_found',
  'method_not_allowed',
  'search_limit',
  'search_busy',
  'search_unavailable',
  'search_damaged',
  'search_failed',
] as const
export type SearchRefusal = (typeof SEARCH_REFUSALS)[number]

/** A stored item at the values of its latest signal, under its verified title where there is one. */
export interface StoredItem extends IndexedItem {
  /** What its source says of it beside its numbers; null or none where it said nothing. */
  author: string | null
  tags: readonly string[]
  description: string | null
}

/** UTC day an item counts for: of its publication, or of its first observation where that is unknown. */
export function dayOfItem(publishedAt: string | null, firstDay: Day): Day {
  return publishedAt === null ? firstDay : publishedAt.slice(0, 10)
}

/** How far a step of indexing came. */
export interface IndexProgress {
  /** Events taken in by this step. */
  indexed: number
  /** True when nothing is left to do. */
  done: boolean
}

/** Refusals of indexing. */
export type SearchIndexRefusal = 'rebuild_superseded'
