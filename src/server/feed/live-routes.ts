import type { LiveRefusal } from '../../domain/feed/live-refusals.ts'
import { parseLiveSort } from '../../domain/feed/live-sort.ts'
import { Refusal } from '../../domain/refusal.ts'
import { respondPublished } from '../published.ts'
import type { Published } from '../published.ts'
import { route } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { writeAtom } from './atom.ts'
import { atomContract, FEED_DOCS, jsonFeedContract, liveContract, rssContract } from './contract.ts'
import { writeJsonFeed } from './json-feed.ts'
import { parseFeed } from './parse-feed.ts'
import { publishedFrom } from './proved-snapshots.ts'
import type { ProvedFeed, ProvedSnapshots } from './proved-snapshots.ts'
import { writeRss } from './rss.ts'
import { subscriptionFeed } from './subscription-feed.ts'
import type { Host, SubscriptionFeed } from './subscription-feed.ts'

/** The live feed and the three formats people subscribe to it in (docs/feed-api.md). */
export function liveRoutes(snapshots: ProvedSnapshots, host: () => Host): Route[] {
  const written = new WeakMap<ProvedFeed, Map<string, Published>>()

  const subscription = (contract: Contract<LiveRefusal>, write: (feed: SubscriptionFeed) => string): Route =>
    serve(contract, snapshots, (proved) => {
      const known = written.get(proved) ?? new Map<string, Published>()
      written.set(proved, known)
      const made =
        known.get(contract.path) ??
        publishedFrom(
          proved.snapshot,
          Buffer.from(write(subscriptionFeed(parseFeed(proved), host(), contract.path, FEED_DOCS))),
          `${contract.contentType}; charset=utf-8`,
        )
      known.set(contract.path, made)
      return made
    })

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
  answer: (proved: ProvedFeed) => Published,
): Route {
  return route(contract, async (event) => {
    const proved = await snapshots.newest(parseLiveSort(event.url.searchParams))
    if (!proved) throw new Refusal<LiveRefusal>('no_snapshot')
    return respondPublished(event, contract.headers, answer(proved))
  })
}
