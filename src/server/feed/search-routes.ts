import type { H3Event } from 'h3'
import {
  LIMIT_MAX,
  MINIMUM_RULES,
  SOURCES_RULE,
  QUERY_MAX_LENGTH,
  QUERY_TIMEOUT_MS,
  SEARCH_SORTS,
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
import { CSV_TYPE, csvContract, namedCsv, writeCsv } from '../csv.ts'
import { publishedBody, publishedJson, respondPublished } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import {
  METHOD_NOT_ALLOWED,
  invalidValues,
  publicAccess,
  publishedHeaders,
  publishedRoute,
  route,
} from '../route.ts'
import type { Contract, Route } from '../route.ts'

/** Routes of the search, of similar items and of trends (docs/api.md). */
export function searchRoutes(search: Pick<FeedSearch, 'by'>, compute: Compute): Route[] {
  const ask = <T>(event: H3Event, read: (search: CallerSearch) => Promise<T>): Promise<T> => {
    const caller = { group: 'others', signal: event.req.signal } as const
    return compute(event, () => read(search.by(caller)))
  }
  const query = async (
    event: H3Event,
    read: (search: CallerSearch) => Promise<object>,
  ): Promise<PublishedBody> => publishedJson(await ask(event, read), CACHE_CONTROL)
  return [
    publishedRoute(searchContract, (params, event) => {
      const request = parseSearchRequest(params)
      return query(event, (caller) => caller.search(request))
    }),
    route(searchCsvContract, async (event) => {
      const params = event.url.searchParams
      const request = parseSearchRequest(params)
      const page = await ask(event, (caller) => caller.search(request))
      const csv = writeCsv(searchPageSchema.shape.items.element, page.items)
      const options = { contentType: CSV_TYPE, cacheControl: CACHE_CONTROL }
      const words = request.query.toLowerCase().match(/[a-z0-9]+/g) ?? []
      const name = ['dash-search', ...words].join('-').slice(0, FILE_NAME_MAX_LENGTH)
      const headers = { ...searchCsvContract.headers, link: linksOf(page.cursor, params) }
      return respondPublished(event, headers, namedCsv(publishedBody(csv, options), name))
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

/** The `Link` field of a page of results as CSV, which has no place for the cursor of the next one. */
function linksOf(cursor: string | null, params: URLSearchParams): string {
  const { headers, path } = searchCsvContract
  if (cursor === null) return headers['link'] ?? ''
  const next = new URLSearchParams({ ...Object.fromEntries(params), cursor })
  return `${headers['link']}, <${path}?${String(next)}>; rel="next"`
}

const FILE_NAME_MAX_LENGTH = 80

const CACHE_CONTROL = 'public, max-age=60'

/** Path of the page that documents this interface. */
export const SEARCH_DOCS = '/docs/api/search'

const TYPED_TEXT_RULE = `text of at most ${QUERY_MAX_LENGTH} characters that is not blank`

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
  invalid_query: invalidValues({ q: TYPED_TEXT_RULE }),
  invalid_source: invalidValues({ source: SOURCES_RULE }),
  invalid_minimum: invalidValues(MINIMUM_RULES),
  invalid_time: invalidValues({
    from: 'an existing day YYYY-MM-DD that is not after `to`',
    to: 'an existing day YYYY-MM-DD',
  }),
  invalid_sort: invalidValues({ sort: `one of ${SEARCH_SORTS.join(', ')}` }),
  invalid_limit: invalidValues({ limit: `an integer from 1 to ${LIMIT_MAX}` }),
  invalid_cursor: invalidValues({ cursor: 'the cursor of a response to the same query' }),
  ...STORE_REFUSALS,
} satisfies Partial<Record<SearchRefusal, RefusalContract>>

const { invalid_time, invalid_limit } = ITEMS_REFUSALS

const { invalid_key, invalid_trend, item_not_found } = {
  invalid_key: invalidValues({ key: 'a save key such as `hn-1`' }),
  invalid_trend: invalidValues({
    term: `${TYPED_TEXT_RULE} (or give \`key\`)`,
    from: 'absent if `key` is given',
    to: 'absent if `key` is given',
  }),
  item_not_found: { status: 404, when: 'no item with this key is stored' },
} satisfies Partial<Record<SearchRefusal, RefusalContract>>

const COMMON = {
  tag: 'Search',
  successHeaders: publishedHeaders(CACHE_CONTROL),
  storage: { storage_unavailable: 'search_unavailable', storage_damaged: 'search_damaged' },
  fault: 'search_failed',
  ...publicAccess(SEARCH_DOCS, ['ETag', 'Link']),
} as const

type ItemsRefusal = keyof typeof ITEMS_REFUSALS

export const searchContract: Contract<ItemsRefusal> = {
  ...COMMON,
  path: '/api/search',
  operationId: 'search',
  summary: 'Search stored items by words of their titles and texts',
  description: [
    'By relevance, items with every word come first, then items with the last word as a prefix, then items with some of',
    'the words. `"…"` matches a phrase, `word*` a prefix. No query is a syntax error.',
  ].join(' '),
  query: searchQuery,
  success: searchPageSchema,
  successDescription: 'The items, best first',
  refusals: ITEMS_REFUSALS,
}

export const searchCsvContract = csvContract({
  ...searchContract,
  successHeaders: {
    ...searchContract.successHeaders,
    Link: 'the documentation, the OpenAPI description, and the next page (`next`) unless this is the last',
  },
})

type SimilarRefusal = keyof typeof STORE_REFUSALS | 'invalid_key' | 'invalid_limit' | 'item_not_found'

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
