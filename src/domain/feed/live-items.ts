import { formatInstant } from '../time.ts'
import type { ItemDetails } from './item-details.ts'
import type { LiveFeed, LiveItem } from './live-schema.ts'
import type { LiveEntry } from './rank-live.ts'
import { discussionUrl, hypeProviderOf } from './source.ts'

/** Entries as items of the wire: the product's own fields, then the source's own names (docs/feed-api.md). */

type HackerNewsItem = LiveFeed['hackerNews'][number]
type LobstersItem = LiveFeed['lobsters'][number]
type LessWrongItem = LiveFeed['lessWrong'][number]
type HypeItem = LiveFeed['hypeReplicate'][number]
type PopularItem = LiveFeed['popular'][number]

/** What sources say of items beside their numbers, by save key. */
export type Details = ReadonlyMap<string, ItemDetails>

/** An entry in the product's own fields alone. */
export function itemOf({ event, key, rank, percentile, aggScore }: LiveEntry): LiveItem {
  const provider = hypeProviderOf(event.source)
  return {
    key,
    source: event.source,
    ...(provider === null ? {} : { provider }),
    sourceId: event.sourceId,
    rank,
    title: event.title,
    url: event.url,
    discussionUrl: discussionUrl(event.source, event.sourceId),
    points: event.points,
    comments: event.comments,
    publishedAt: formatInstant(event.publishedAt),
    percentile,
    agg_score: aggScore,
    event_title_verified: event.titleProvenance !== null,
    title_provenance: event.titleProvenance,
  }
}

export function hackerNewsItem(entry: LiveEntry, details: Details): HackerNewsItem {
  const { sourceId, points, comments, publishedAt } = entry.event
  return {
    ...itemOf(entry),
    id: /^[1-9]\d{0,14}$/.test(sourceId) ? Number(sourceId) : sourceId,
    score: points,
    descendants: comments,
    by: details.get(entry.key)?.author ?? null,
    time: Math.floor(publishedAt / 1000),
  }
}

export function lobstersItem(entry: LiveEntry, details: Details): LobstersItem {
  const item = itemOf(entry)
  return {
    ...item,
    comments_url: item.discussionUrl ?? '',
    score: item.points,
    comment_count: item.comments,
    created_at: item.publishedAt,
    submitter_user: details.get(entry.key)?.author ?? null,
    tags: [...(details.get(entry.key)?.tags ?? [])],
  }
}

export function lessWrongItem(entry: LiveEntry, details: Details): LessWrongItem {
  const item = itemOf(entry)
  return {
    ...item,
    author: details.get(entry.key)?.author ?? null,
    baseScore: item.points,
    commentCount: item.comments,
    postedAt: item.publishedAt,
  }
}

/** An id of the form `owner/name` tells both; anything else has its author and its title. */
export function hypeItem(entry: LiveEntry, details: Details): HypeItem {
  const item = itemOf(entry)
  const [, owner, name] = /^([^/]+)\/([^/]+)$/.exec(item.sourceId) ?? []
  const { author = null, description = null } = details.get(entry.key) ?? {}
  return {
    ...item,
    id: item.sourceId,
    username: author ?? owner ?? null,
    name: name ?? item.title,
    stars: item.points,
    description,
    created_at: item.publishedAt,
  }
}

/** An entry of `popular` under the names of the source it comes from. */
export function popularItem(entry: LiveEntry, details: Details): PopularItem {
  switch (entry.event.source) {
    case 'hn':
      return hackerNewsItem(entry, details)
    case 'lobsters':
      return lobstersItem(entry, details)
    default:
      return lessWrongItem(entry, details)
  }
}
