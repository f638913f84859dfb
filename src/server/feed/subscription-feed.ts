import type { LiveFeed } from '../../domain/feed/live-schema.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import { subscriptionItems } from '../../domain/feed/subscription.ts'
import type { SubscriptionItem } from '../../domain/feed/subscription.ts'
import { itemId } from './item-id.ts'

/** A feed that people subscribe to, before it is written in one format or another. */
export interface SubscriptionFeed {
  sort: LiveSort
  title: string
  description: string
  homeUrl: string
  /** Address of this very document. */
  selfUrl: string
  /** Page that describes the interface and its own elements. */
  docsUrl: string
  generatedAt: string
  snapshotId: string
  items: readonly (SubscriptionItem & { id: string })[]
}

/** What differs from host to host. */
export interface Host {
  /** Address the server is reached at, without a slash at its end. */
  baseUrl: string
  demo: boolean
}

const SORT_TITLES: Readonly<Record<LiveSort, string>> = {
  trending: 'trending now',
  day: 'the last 24 hours',
  week: 'the last 7 days',
  month: 'the last 30 days',
}

/**
 * @param path of the document, `/api/rss`
 * @param docsPath of the page that describes it
 */
export function subscriptionFeed(
  feed: LiveFeed,
  { baseUrl, demo }: Host,
  path: string,
  docsPath: string,
): SubscriptionFeed {
  const period = SORT_TITLES[feed.sortMode]
  return {
    sort: feed.sortMode,
    title: `${demo ? 'DEMO: ' : ''}dash: ${period}`,
    description: `Hacker News, Lobsters, LessWrong and the hype providers: ${period}, ranked across sources.`,
    homeUrl: `${baseUrl}/`,
    selfUrl: `${baseUrl}${path}?sort=${feed.sortMode}`,
    docsUrl: `${baseUrl}${docsPath}`,
    generatedAt: feed.generatedAt,
    snapshotId: feed.snapshotId,
    items: subscriptionItems(feed).map((item) => ({
      ...item,
      id: itemId(item.key),
      link: item.link === null ? null : uriOf(item.link),
      discussionUrl: item.discussionUrl === null ? null : uriOf(item.discussionUrl),
    })),
  }
}

/** What a URL parser leaves alone although no URI may hold it beyond its host (RFC 3986), but for a second `#`. */
const NOT_OF_A_URI = /[[\]\\^`{|}]|%(?![\dA-Fa-f]{2})/g

/** A stored http(s) URL as a URI: links are kept as their sources wrote them, feeds must hold what every reader takes. */
export function uriOf(url: string): string {
  const { href } = new URL(url)
  const path = href.indexOf('/', href.indexOf('//') + 2)
  const [beforeFragment = '', ...fragment] = href.slice(path).replaceAll(NOT_OF_A_URI, percent).split('#')
  const hash = fragment.length > 0 ? `#${fragment.join('%23')}` : ''
  return href.slice(0, path) + beforeFragment + hash
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
