import type { Instant } from '../time.ts'

/** An event at the values of its latest signal up to some day; published, with known points. */
export interface FeedEvent {
  source: string
  sourceId: string
  title: string
  url: string | null
  points: number
  comments: number | null
  publishedAt: Instant
  /** Null for a legacy signal, whose title nobody vouched for. */
  titleProvenance: string | null
}
