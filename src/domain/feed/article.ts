import type { Instant } from '../time.ts'

/** The text of an item, kept with where and when it was read. */
export interface Article {
  source: string
  sourceId: string
  /** Plain text: no markup, no control characters, bounded. */
  text: string
  /** `<channel>`: how the text was read. */
  provenance: string
  fetchedAt: Instant
}
