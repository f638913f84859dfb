import { HISTORY_OF_YEAR, LIVE_SORTS, liveQuery, parseLiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveRefusal } from '../../domain/feed/live-sort.ts'
import { COLUMN_LENGTH } from '../../domain/feed/columns.ts'
import { MINIMUM_RULES, SOURCES_RULE } from '../../domain/feed/search/search.ts'
import { liveFeedSchema, liveItemSchema } from '../../domain/feed/live-items.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import { RULE_QUERY_MAX_LENGTH, applyRule, parseRule, ruleFields } from '../../domain/feed/subscription.ts'
import type { FeedRule } from '../../domain/feed/subscription.ts'
import { Refusal } from '../../domain/refusal.ts'
import { onceFor } from '../../domain/once.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import type { Compute } from '../computed-requests.ts'
import { CSV_TYPE, csvContract, namedCsv, writeListsCsv } from '../csv.ts'
import { JSON_TYPE } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import {
  METHOD_NOT_ALLOWED,
  invalidValues,
  publicAccess,
  publishedHeaders,
  publishedRoute,
} from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { FEED_DOCS, jsonFeedSchema, subscriptionFeed, feedContracts, feedRoutes } from './feeds.ts'
import type { FeedHost } from './feeds.ts'
import type { FeedDocument } from './formats.ts'
import { LIVE_CACHE, parseFeed, publishedFrom } from './proved-snapshots.ts'
import type { ProvedFeed, ProvedSnapshots } from './proved-snapshots.ts'

type LiveContract = Contract<LiveRefusal>

/** Publishes a verified feed in the format of a route: the whole, or the part that a rule selects. */
type Render = (proved: ProvedFeed, rule: FeedRule | null) => PublishedBody

/** Routes of the live feed and its three subscription formats (docs/api.md). */
export function liveRoutes(snapshots: ProvedSnapshots, host: () => FeedHost, compute: Compute): Route[] {
  const live = (contract: LiveContract, render: Render): Route => {
    const whole = onceFor((proved: ProvedFeed) => render(proved, null))
    return publishedRoute(contract, async (params, event) => {
      const sort = parseLiveSort(params)
      const rule = parseRule(params)
      const proved = await snapshots.newest(sort)
      if (!proved) throw new Refusal<LiveRefusal>('no_snapshot')
      return rule === null ? whole(proved) : compute(event, async () => render(proved, rule))
    })
  }

  const subscription = (contract: LiveContract, write: (feed: FeedDocument) => string): Route =>
    live(contract, (proved, rule) => {
      const text = write(subscriptionFeed(parseFeed(proved), host(), contract.path, rule))
      return publishedFrom(proved.snapshot, text, `${contract.contentType}; charset=utf-8`)
    })

  return [
    live(liveContract, liveJson),
    live(liveCsvContract, liveCsv),
    ...feedRoutes(SUBSCRIPTION_CONTRACTS, subscription),
  ]
}

/** Without a rule, the stored bytes. */
function liveJson(proved: ProvedFeed, rule: FeedRule | null): PublishedBody {
  if (rule === null) return proved.published
  return publishedFrom(proved.snapshot, JSON.stringify(selectedFeed(proved, rule)), JSON_TYPE)
}

function liveCsv(proved: ProvedFeed, rule: FeedRule | null): PublishedBody {
  const feed = selectedFeed(proved, rule)
  const csv = publishedFrom(proved.snapshot, writeListsCsv(liveItemSchema, feed), CSV_TYPE)
  return namedCsv(csv, `dash-${feed.sortMode}-${feed.generatedAt.slice(0, 10)}`)
}

function selectedFeed(proved: ProvedFeed, rule: FeedRule | null): LiveFeed {
  return rule === null ? parseFeed(proved) : applyRule(parseFeed(proved), rule)
}

/** The refusal of a rule, for the contracts of its users. */
export const INVALID_RULE = invalidValues({
  q: `text of at most ${RULE_QUERY_MAX_LENGTH} characters that is not blank`,
  source: SOURCES_RULE,
  ...MINIMUM_RULES,
  top: `an integer from 1 to ${COLUMN_LENGTH}`,
})

const REFUSALS = {
  invalid_sort: invalidValues({ sort: `one of ${LIVE_SORTS.join(', ')}` }),
  year_is_archived: {
    status: 400,
    when: '`sort` is `year`, which is not a live period; `history` is its address',
    memberSchemas: { history: { type: 'string', enum: [HISTORY_OF_YEAR] } },
  },
  invalid_rule: INVALID_RULE,
  busy: BUSY_REFUSAL,
  no_snapshot: { status: 404, when: 'no snapshot of the live feed is stored yet' },
  method_not_allowed: METHOD_NOT_ALLOWED,
  feed_storage_unavailable: { status: 503, when: 'the feed database cannot be opened or reached' },
  feed_snapshot_corrupt: {
    status: 503,
    when: 'the newest snapshot fails verification; no older snapshot replaces it',
  },
  feed_lookup_failed: { status: 503, when: 'any other failure' },
} satisfies LiveContract['refusals']

const COMMON = {
  tag: 'Live feed',
  query: liveQuery.extend(ruleFields),
  successHeaders: publishedHeaders(LIVE_CACHE, { 'Last-Modified': "the snapshot's instant, to the second" }),
  refusals: REFUSALS,
  storage: {
    storage_unavailable: 'feed_storage_unavailable',
    storage_damaged: 'feed_snapshot_corrupt',
  },
  fault: 'feed_lookup_failed',
  ...publicAccess(FEED_DOCS, ['ETag', 'Last-Modified', 'Link']),
} as const

export const liveContract: LiveContract = {
  ...COMMON,
  path: '/api/feed',
  operationId: 'getLiveFeed',
  summary: 'Get the newest ranking of a live period',
  description: [
    'Serves the stored payload of the newest snapshot. `generatedAt` is its time.',
    'Every item has common fields and the fields of its source under the names the source uses.',
    'With `q`, `source`, `minPoints`, `minComments` or `top`, each list has the matching items alone.',
  ].join(' '),
  success: liveFeedSchema,
  successDescription: 'The feed; without a rule, byte for byte from the snapshot',
}

export const liveCsvContract = csvContract(liveContract)

export const SUBSCRIPTION_CONTRACTS = feedContracts<LiveRefusal>({
  ...COMMON,
  content: 'the live feed',
  addresses: [
    ['/api/rss', 'getRss'],
    ['/api/atom', 'getAtom'],
    ['/api/feed.json', 'getJsonFeed'],
  ],
  description: [
    'Popular, hype and image items of the newest snapshot as one list, the first 100 by `agg_score`. With `q`,',
    '`source`, `minPoints`, `minComments` or `top`: the matching items of every list.',
  ].join(' '),
  jsonFeed: jsonFeedSchema,
})
