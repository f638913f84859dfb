import type { H3Event } from 'h3'
import {
  parseSearchRequest,
  parseSimilarRequest,
  parseTrendRequest,
} from '../../domain/feed/search-request.ts'
import type { SearchCaller } from '../../domain/feed/search.ts'
import type { FeedSearch, SharedFeedSearch } from '../../domain/ports.ts'
import { published, respondPublished } from '../published.ts'
import { route } from '../route.ts'
import type { Route } from '../route.ts'
import { searchContract, similarContract, trendContract } from './search-contracts.ts'

/** Questions about stored items (docs/search.md). */
export function searchRoutes(shared: SharedFeedSearch, callerOf: (event: H3Event) => SearchCaller): Route[] {
  const by = (event: H3Event): FeedSearch => shared.by(callerOf(event))
  return [
    route(searchContract, async (event) =>
      answer(event, searchContract, await by(event).search(parseSearchRequest(event.url.searchParams))),
    ),
    route(similarContract, async (event) => {
      const { key, limit } = parseSimilarRequest(event.url.searchParams)
      return answer(event, similarContract, { key, items: await by(event).similar(key, limit) })
    }),
    route(trendContract, async (event) => {
      const asked = parseTrendRequest(event.url.searchParams)
      if ('key' in asked) return answer(event, trendContract, await by(event).itemTrend(asked.key))
      return answer(event, trendContract, { term: asked.term, ...(await by(event).termTrend(asked)) })
    }),
  ]
}

function answer(
  event: H3Event,
  contract: { headers: Readonly<Record<string, string>> },
  value: object,
): Response {
  const body = Buffer.from(JSON.stringify(value))
  const as = { contentType: 'application/json; charset=utf-8', cacheControl: 'public, max-age=60' }
  return respondPublished(event, contract.headers, published(body, as))
}
