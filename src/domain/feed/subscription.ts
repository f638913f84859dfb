import { compareCodeUnits } from '../text.ts'
import { COLUMN_LENGTH } from './columns.ts'
import type { LiveFeed, LiveItem } from './live-items.ts'
import { factsOf } from './source.ts'

/** One item of the subscription feeds (docs/api.md); its rank is the one in this feed. */
export interface SubscriptionItem extends LiveItem {
  /** URL of the item, else of its discussion; null when both are missing. */
  link: string | null
  unit: string
  author: string | null
  tags: readonly string[]
  /** One line of plain text: the numbers and the description. */
  summary: string
}

/** An item of any list, with the source's own member names. */
type AnyItem = LiveItem & {
  by?: string | null
  submitter_user?: string | null
  author?: string | null
  username?: string | null
  tags?: readonly string[]
  description?: string | null
}

/**
 * The items of a subscription: `popular`, the hype column and the images in one list by `agg_score`, then by save key.
 * The first hundred.
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

/** The display name of a source; its id when it has none. */
export function nameOfSource(source: string): string {
  return factsOf(source)?.name ?? source
}
