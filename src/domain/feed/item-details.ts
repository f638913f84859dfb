import type { Instant } from '../time.ts'

/** What a source says of an item beside its daily numbers; shown with it, never ranked by. */
export interface ItemDetails {
  source: string
  sourceId: string
  /** Name or account of who submitted or wrote it; null where the source names nobody. */
  author: string | null
  /** The source's own tags, as it spells them. */
  tags: readonly string[]
  /** A line or two from the source itself, or null. */
  description: string | null
  collectedAt: Instant
}
