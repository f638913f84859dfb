import { compareCodeUnits } from '../text.ts'
import { COLUMN_LENGTH, takeDistinct } from './columns.ts'
import type { LiveFeed, LiveItem } from './live-items.ts'
import { applyRule } from './rule.ts'
import type { FeedRule } from './rule.ts'
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
type AnyItem = LiveItem &
  Partial<Record<'by' | 'submitter_user' | 'author' | 'username' | 'description', string | null>> & {
    tags?: readonly string[]
  }

/**
 * The items of a subscription in one list by `agg_score`, then by save key, at most a hundred. Without a rule: `popular`,
 * the hype column and the images. With a rule: the matching items of every list, each exact URL and title once, at most
 * `top`.
 */
export function subscriptionItems(feed: LiveFeed, rule: FeedRule | null = null): SubscriptionItem[] {
  const { popular, hypeReplicate, midjourney } = feed
  const items = rule === null ? inOrder([popular, hypeReplicate, midjourney]) : matchingItems(feed, rule)
  return items.slice(0, rule?.top ?? COLUMN_LENGTH).map((item, index) => ({
    ...item,
    rank: index + 1,
    link: item.url ?? item.discussionUrl,
    unit: unitOf(item.source),
    author: authorOf(item),
    tags: (item.tags ?? []).filter((tag) => tag.trim() !== ''),
    summary: summaryOf(item),
  }))
}

function inOrder(lists: readonly (readonly AnyItem[])[]): AnyItem[] {
  return lists.flat().sort((a, b) => b.agg_score - a.agg_score || compareCodeUnits(a.key, b.key))
}

function matchingItems(feed: LiveFeed, rule: FeedRule): AnyItem[] {
  const { popular, hackerNews, lobsters, lessWrong, hypeReplicate, midjourney } = applyRule(feed, {
    ...rule,
    top: null,
  })
  const items = inOrder([popular, hackerNews, lobsters, lessWrong, hypeReplicate, midjourney])
  return takeDistinct(items, { urlOf: ({ url }) => url, titleOf: ({ title }) => title })
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

/** Describes a rule in words: `postgres, Hacker News, at least 50 points`. */
export function describeRule({ q, source, minPoints, minComments, top }: FeedRule): string {
  return [
    q === null ? [] : [q],
    source.map(nameOfSource),
    minPoints === null ? [] : [`at least ${withUnit(minPoints, 'points')}`],
    minComments === null ? [] : [`at least ${withUnit(minComments, 'comments')}`],
    top === null ? [] : [`top ${top}`],
  ]
    .flat()
    .join(', ')
}

/** The unit of a source's points, in the plural: `points`, `karma`, `stars`, `likes`, `runs` or `upvotes`. */
export function unitOf(source: string): string {
  return factsOf(source)?.unit ?? 'points'
}

/** The display name of a source; its id when it has none. */
export function nameOfSource(source: string): string {
  return factsOf(source)?.name ?? source
}
