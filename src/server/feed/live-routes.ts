import { z } from 'zod'
import { liveQuery, parseLiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveRefusal } from '../../domain/feed/live-sort.ts'
import { liveFeedSchema } from '../../domain/feed/live-items.ts'
import { Refusal } from '../../domain/refusal.ts'
import { respondPublished } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import { publicAccess, route } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { onceFor } from '../single-flight.ts'
import { jsonFeedSchema, subscriptionFeed, writeAtom, writeJsonFeed, writeRss } from './feeds.ts'
import type { FeedHost, SubscriptionFeed } from './feeds.ts'
import { parseFeed, publishedFrom } from './proved-snapshots.ts'
import type { ProvedFeed, ProvedSnapshots } from './proved-snapshots.ts'

/** Routes of the live feed and its three subscription formats (docs/api.md). */
export function liveRoutes(snapshots: ProvedSnapshots, host: () => FeedHost): Route[] {
  const subscription = (
    contract: Contract<LiveRefusal>,
    write: (feed: SubscriptionFeed) => string,
  ): Route => {
    const type = `${contract.contentType}; charset=utf-8`
    const render = onceFor((proved: ProvedFeed): PublishedBody => {
      const text = write(subscriptionFeed(parseFeed(proved), host(), contract.path, FEED_DOCS))
      return publishedFrom(proved.snapshot, Buffer.from(text), type)
    })
    return serve(contract, snapshots, render)
  }

  return [
    serve(liveContract, snapshots, ({ published }) => published),
    subscription(rssContract, writeRss),
    subscription(atomContract, writeAtom),
    subscription(jsonFeedContract, writeJsonFeed),
  ]
}

function serve(
  contract: Contract<LiveRefusal>,
  snapshots: ProvedSnapshots,
  publishedOf: (proved: ProvedFeed) => PublishedBody,
): Route {
  return route(contract, async (event) => {
    const proved = await snapshots.newest(parseLiveSort(event.url.searchParams))
    if (!proved) throw new Refusal<LiveRefusal>('no_snapshot')
    return respondPublished(event, contract.headers, publishedOf(proved))
  })
}

/** Path of the page that documents this interface. */
export const FEED_DOCS = '/docs/api/feed'

const REFUSALS = {
  invalid_sort: {
    status: 400,
    when: '`sort` is given twice, empty, or not one of `trending`, `day`, `week` and `month`',
  },
  year_is_archived: {
    status: 400,
    when: '`sort` is `year`, which is not a live period; `history` is its address',
    members: { history: '/api/feed/history?sort=year' },
  },
  no_snapshot: { status: 404, when: 'no snapshot of the live feed is stored yet' },
  method_not_allowed: {
    status: 405,
    when: 'the method is neither GET nor OPTIONS; the response has `Allow: GET`',
  },
  feed_storage_unavailable: { status: 503, when: 'the feed database cannot be opened or reached' },
  feed_snapshot_corrupt: {
    status: 503,
    when: 'the newest snapshot fails verification; no older snapshot replaces it',
  },
  feed_lookup_failed: { status: 503, when: 'any other failure' },
} satisfies Record<LiveRefusal, { status: number; when: string; members?: Record<string, string> }>

/** Members shared by the four contracts. */
const COMMON = {
  tag: 'Live feed',
  query: liveQuery,
  successHeaders: {
    'Cache-Control': '`public, max-age=60, stale-while-revalidate=300`',
    ETag: 'strong: the SHA-256 of the body in hexadecimal, quoted',
    'Last-Modified': "the snapshot's instant, to the second",
    'Content-Digest': 'SHA-256 of the content (RFC 9530)',
    'Repr-Digest': 'SHA-256 of the representation (RFC 9530)',
    Link: 'the documentation and the OpenAPI description',
  },
  refusals: REFUSALS,
  storage: {
    storage_unavailable: 'feed_storage_unavailable',
    storage_damaged: 'feed_snapshot_corrupt',
  },
  fault: 'feed_lookup_failed',
  ...publicAccess(FEED_DOCS, ['ETag', 'Last-Modified', 'Link']),
} as const

/** `GET /api/feed` (docs/api.md). */
export const liveContract: Contract<LiveRefusal> = {
  ...COMMON,
  path: '/api/feed',
  operationId: 'getLiveFeed',
  summary: 'Get the newest ranking of a live period',
  description: [
    'Serves the stored payload of the newest snapshot. `generatedAt` is its time.',
    'Every item has common fields and the fields of its source under the names the source uses.',
  ].join(' '),
  success: liveFeedSchema,
  successDescription: 'The feed, byte for byte from the snapshot',
}

/** `GET /api/rss` (docs/api.md). */
export const rssContract: Contract<LiveRefusal> = {
  ...COMMON,
  path: '/api/rss',
  operationId: 'getRss',
  summary: 'Get the live feed as RSS 2.0',
  description:
    'Popular, hype and image items of the newest snapshot as one list in the order of `agg_score`.',
  contentType: 'application/rss+xml',
  success: z.string(),
  successDescription: 'An RSS 2.0 document',
}

/** `GET /api/atom` (docs/api.md). */
export const atomContract: Contract<LiveRefusal> = {
  ...rssContract,
  path: '/api/atom',
  operationId: 'getAtom',
  summary: 'Get the live feed as Atom',
  contentType: 'application/atom+xml',
  successDescription: 'An Atom 1.0 document',
}

/** `GET /api/feed.json` (docs/api.md). */
export const jsonFeedContract: Contract<LiveRefusal> = {
  ...rssContract,
  path: '/api/feed.json',
  operationId: 'getJsonFeed',
  summary: 'Get the live feed as JSON Feed',
  contentType: 'application/feed+json',
  success: jsonFeedSchema,
  successDescription: 'A JSON Feed 1.1 document',
}
