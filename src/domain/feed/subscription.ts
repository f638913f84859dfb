import { compareCodeUnits } from '../text.ts'
import { COLUMN_LENGTH } from './columns.ts'
import type { LiveFeed, LiveItem } from './live-items.ts'
import { factsOf } from './source.ts'

/** One item of the feeds that people subscribe to (docs/api.md); its rank is the one in this feed. */
export interface SubscriptionItem extends LiveItem {
  /** The item itself, or its discussion where it has no page of its own; null where it has neither. */
  link: string | null
  unit: string
  author: string | null
  tags: readonly string[]
  /** One line in plain text: the numbers, and what the source says of the item. */
  summary: string
}

/** An item of any list, under whichever names its source has for these. */
type AnyItem = LiveItem & {
  by?: string | null
  submitter_user?: string | null
  author?: string | null
  username?: string | null
  tags?: readonly string[]
  description?: string | null
}

/**
 * The items of a subscription: `popular`, the hype column and the images as one list in the order of `agg_score`, which
 * compares them; among equals by save key. The first hundred.
 */
export function subscriptionItems({ popular, hypeReplicate, midjourney }: LiveFeed): SubscriptionItem[] {
  const items: AnyItem[] = [...popular, ...hypeReplicate, ...midjourney]
  return items
    .sort((a, b) => b.agg_score - a.agg_score || compareCodeUnits(a.key, b.key))
    .slice(0, COLUMN_LENGTH)
    .map((item, index) => ({
      ...item,
      rank: index + 1,
      link: item.url ?? item.discussionUrl,
      unit: unitOf(item.source),
      author: authorOf(item),
      tags: (item.tags ?? []).filter((tag) => tag.trim() !== ''),
      summary: summaryOf(item),
    }))
}

function authorOf({ by, submitter_user, author, username }: AnyItem): string | null {
  const name = by ?? submitter_user ?? author ?? username ?? ''
  return name.trim() === '' ? null : name
}

function summaryOf({ source, points, comments, description }: AnyItem): string {
  const commentText = comments === null ? '' : `, ${withUnit(comments, 'comments')}`
  const numbers = `${withUnit(points, unitOf(source))}${commentText} on ${nameOfSource(source)}`
  const descriptionText = description?.trim() ?? ''
  return descriptionText === '' ? numbers : `${numbers}: ${descriptionText}`
}

function withUnit(count: number, plural: string): string {
  return `${count} ${count === 1 ? plural.replace(/s$/, '') : plural}`
}

/** The unit of a source's points, in the plural: `points`, `karma`, `stars`, `likes`, `runs` or `upvotes`. */
export function unitOf(source: string): string {
  return factsOf(source)?.unit ?? 'points'
}

/** A source's name as people write it; the source itself where it has none. */
export function nameOfSource(source: string): string {
  return factsOf(source)?.name ?? source
}
