import { compareCodeUnits } from '../order.ts'
import { COLUMN_LENGTH } from './columns.ts'
import type { LiveFeed, LiveItem } from './live-items.ts'

/** One item of the feeds that people subscribe to (docs/feed-api.md). */
export interface SubscriptionItem {
  key: string
  source: string
  /** 1 is first in this feed. */
  rank: number
  title: string
  titleVerified: boolean
  /** The item itself, or its discussion where it has no page of its own; null where it has neither. */
  link: string | null
  discussionUrl: string | null
  points: number
  unit: string
  comments: number | null
  aggScore: number
  publishedAt: string
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
 * What a subscription carries: `popular`, the hype column and the images as one list in the order of `agg_score`, which
 * compares them; among equals by save key. The first hundred.
 */
export function subscriptionItems({ popular, hypeReplicate, midjourney }: LiveFeed): SubscriptionItem[] {
  const items: AnyItem[] = [...popular, ...hypeReplicate, ...midjourney]
  return items
    .sort((a, b) => b.agg_score - a.agg_score || compareCodeUnits(a.key, b.key))
    .slice(0, COLUMN_LENGTH)
    .map((item, index) => ({
      key: item.key,
      source: item.source,
      rank: index + 1,
      title: item.title,
      titleVerified: item.event_title_verified,
      link: item.url ?? item.discussionUrl,
      discussionUrl: item.discussionUrl,
      points: item.points,
      unit: unitOf(item.source),
      comments: item.comments,
      aggScore: item.agg_score,
      publishedAt: item.publishedAt,
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
  const said = comments === null ? '' : `, ${counted(comments, 'comments')}`
  const numbers = `${counted(points, unitOf(source))}${said} on ${nameOfSource(source)}`
  const words = description?.trim() ?? ''
  return words === '' ? numbers : `${numbers}: ${words}`
}

function counted(count: number, plural: string): string {
  return `${count} ${count === 1 ? plural.replace(/s$/, '') : plural}`
}

/** What the points of a source count; sources that are not named here count points. */
const UNITS: Readonly<Record<string, string>> = {
  lesswrong: 'karma',
  'hype:github': 'stars',
  'hype:huggingface': 'likes',
  'hype:replicate': 'runs',
  'hype:reddit': 'upvotes',
}

/** The unit of a source's points, in the plural: `points`, `karma`, `stars`, `likes`, `runs` or `upvotes`. */
export function unitOf(source: string): string {
  return UNITS[source] ?? 'points'
}

const NAMES: Readonly<Record<string, string>> = {
  hn: 'Hacker News',
  lobsters: 'Lobsters',
  lesswrong: 'LessWrong',
  'hype:github': 'GitHub',
  'hype:huggingface': 'Hugging Face',
  'hype:replicate': 'Replicate',
  'hype:reddit': 'Reddit',
  midjourney: 'Midjourney',
}

/** A source's name as people write it; the source itself where nobody named it. */
export function nameOfSource(source: string): string {
  return NAMES[source] ?? source
}
