import type { H3Event } from 'h3'
import {
  LIMIT_MAX,
  MINIMUM_MAX,
  QUERY_MAX_LENGTH,
  QUERY_TIMEOUT_MS,
  parseSearchRequest,
  parseSimilarRequest,
  parseTrendRequest,
  searchPageSchema,
  searchQuery,
  similarQuery,
  similarSchema,
  trendQuery,
  trendSchema,
} from '../../domain/feed/search/search.ts'
import type { SearchRefusal } from '../../domain/feed/search/search.ts'
import type { CallerSearch, FeedSearch } from '../../domain/ports.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import type { Compute } from '../computed-requests.ts'
import { publishedJson } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import { METHOD_NOT_ALLOWED, publicAccess, publishedHeaders, publishedRoute } from '../route.ts'
import type { Contract, Route } from '../route.ts'

/** Routes of the search, of similar items and of trends (docs/api.md). */
export function searchRoutes(search: Pick<FeedSearch, 'by'>, compute: Compute): Route[] {
  const query = async (
    event: H3Event,
    read: (search: CallerSearch) => Promise<object>,
  ): Promise<PublishedBody> => {
    const caller = { group: 'others', signal: event.req.signal } as const
    return publishedJson(await compute(event, () => read(search.by(caller))), CACHE_CONTROL)
  }
  return [
    publishedRoute(searchContract, (params, event) => {
      const request = parseSearchRequest(params)
      return query(event, (caller) => caller.search(request))
    }),
    publishedRoute(similarContract, (params, event) => {
      const { key, limit } = parseSimilarRequest(params)
      return query(event, async (caller) => ({ key, items: await caller.similar(key, limit) }))
    }),
    publishedRoute(trendContract, (params, event) => {
      const request = parseTrendRequest(params)
      return query(event, async (caller) =>
        'key' in request
          ? caller.itemTrend(request.key)
          : { term: request.term, ...(await caller.termTrend(request)) },
      )
    }),
  ]
}

const CACHE_CONTROL = 'public, max-age=60'

/** Path of the page that documents this interface. */
export const SEARCH_DOCS = '/docs/api/search'

type RefusalContract = Contract<SearchRefusal>['refusals'][SearchRefusal]

const STORE_REFUSALS = {
  method_not_allowed: METHOD_NOT_ALLOWED,
  busy: BUSY_REFUSAL,
  search_unavailable: {
    status: 503,
    when: 'the feed database cannot be opened or reached or stays locked, or its index must be rebuilt',
  },
  search_damaged: { status: 503, when: 'the feed database is damaged' },
  search_failed: {
    status: 503,
    when: `the query took more than ${QUERY_TIMEOUT_MS / 1_000} s, or any other failure`,
  },
} satisfies Partial<Record<SearchRefusal, RefusalContract>>

const ITEMS_REFUSALS = {
  invalid_query: {
    status: 400,
    when: `\`q\` is missing, blank, given twice, or longer than ${QUERY_MAX_LENGTH} characters`,
  },
  invalid_source: {
    status: 400,
    when: '`source` is a comma-separated list of at most 20 of hn, lobsters, lesswrong, midjourney, github and hype:<provider>',
  },
  invalid_minimum: {
    status: 400,
    when: `\`minPoints\` or \`minComments\` is not an integer from 0 to ${MINIMUM_MAX}`,
  },
  invalid_time: {
    status: 400,
    when: '`from` or `to` is not an existing day, YYYY-MM-DD, or `from` is after `to`',
  },
  invalid_limit: { status: 400, when: `\`limit\` is not an integer from 1 to ${LIMIT_MAX}` },
  invalid_cursor: { status: 400, when: '`cursor` is not from a response to the same query' },
  ...STORE_REFUSALS,
} satisfies Partial<Record<SearchRefusal, RefusalContract>>

const { invalid_time, invalid_limit } = ITEMS_REFUSALS

const { invalid_key, invalid_trend, item_not_found } = {
  invalid_key: { status: 400, when: '`key` is missing, given twice, or not a save key' },
  invalid_trend: {
    status: 400,
    when: 'neither or both of `key` and `term` are given, `key` has a time, or the term is blank or too long',
  },
  item_not_found: { status: 404, when: 'no item with this key is stored' },
} satisfies Partial<Record<SearchRefusal, RefusalContract>>

/** Members shared by the three contracts. */
const COMMON = {
  tag: 'Search',
  successHeaders: publishedHeaders(CACHE_CONTROL),
  storage: { storage_unavailable: 'search_unavailable', storage_damaged: 'search_damaged' },
  fault: 'search_failed',
  ...publicAccess(SEARCH_DOCS, ['ETag', 'Link']),
} as const

type ItemsRefusal = keyof typeof ITEMS_REFUSALS

/** `GET /api/search` (docs/api.md). */
export const searchContract: Contract<ItemsRefusal> = {
  ...COMMON,
  path: '/api/search',
  operationId: 'search',
  summary: 'Search stored items by words of their titles and texts',
  description: [
    'Items with every word come first, then items with the last word as a prefix, then items with some of the',
    'words. `"…"` matches a phrase, `word*` a prefix. No query is a syntax error.',
  ].join(' '),
  query: searchQuery,
  success: searchPageSchema,
  successDescription: 'The items, best first',
  refusals: ITEMS_REFUSALS,
}

type SimilarRefusal = keyof typeof STORE_REFUSALS | 'invalid_key' | 'invalid_limit' | 'item_not_found'

/** `GET /api/similar` (docs/api.md). */
export const similarContract: Contract<SimilarRefusal> = {
  ...COMMON,
  path: '/api/similar',
  operationId: 'similar',
  summary: 'Find items similar to another, each with the reason',
  description: [
    'Items of the same page come first (`same-discussion`), then items with the most similar titles',
    '(`near-duplicate-title`, `same-subject`).',
  ].join(' '),
  query: similarQuery,
  success: similarSchema,
  successDescription: 'The items, most similar first',
  refusals: { invalid_key, invalid_limit, item_not_found, ...STORE_REFUSALS },
}

type TrendRefusal =
  keyof typeof STORE_REFUSALS | 'invalid_key' | 'invalid_trend' | 'invalid_time' | 'item_not_found'

/** `GET /api/trend` (docs/api.md). */
export const trendContract: Contract<TrendRefusal> = {
  ...COMMON,
  path: '/api/trend',
  operationId: 'trend',
  summary: 'Get points and rank of an item by day, or mentions of a term by day',
  description: [
    'With `key`: every day the item was observed. With `term`: how many items of each day mention it in title or text;',
    'days without a mention are left out.',
  ].join(' '),
  query: trendQuery,
  success: trendSchema,
  successDescription: 'The days, ascending',
  refusals: { invalid_key, invalid_trend, invalid_time, item_not_found, ...STORE_REFUSALS },
}
