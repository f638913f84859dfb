import type { Day } from '../time.ts'
import type { IndexedItem } from './search.ts'

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
