import type { H3Event } from 'h3'
import {
  healthPayload,
  recommendationPayload,
  statusPayload,
  topModelsPayload,
} from '../../domain/models/payloads.ts'
import type { Served } from '../../domain/models/payloads.ts'
import { parseShortlistQuery } from '../../domain/models/shortlist-query.ts'
import type { Clock } from '../../domain/ports.ts'
import { published, respondPublished } from '../published.ts'
import { route } from '../route.ts'
import type { Route } from '../route.ts'
import {
  CACHE_CONTROL,
  freeModelsHealthContract,
  freeModelsStatusContract,
  recommendationContract,
  SEED_HEADER,
  topModelsContract,
} from './contracts.ts'
import type { ServedRecommendation } from './served-recommendation.ts'

/** The free-model interface: parse the question, read what is stored, answer from it alone. */
export function freeModelRoutes(served: ServedRecommendation, clock: Clock): Route[] {
  return [
    route(recommendationContract, async (event) => {
      const current = await served()
      return answer(event, current, recommendationPayload(current, clock()))
    }),
    route(topModelsContract, async (event) => {
      const query = parseShortlistQuery(event.url.searchParams)
      const current = await served()
      return answer(event, current, topModelsPayload(current, query, clock()))
    }),
    route(freeModelsHealthContract, async (event) => {
      const current = await served()
      return answer(event, current, healthPayload(current, clock()))
    }),
    route(freeModelsStatusContract, async (event) => {
      const current = await served()
      return answer(event, current, statusPayload(current, clock()))
    }),
  ]
}

function answer(event: H3Event, { seed }: Served, payload: unknown): Response {
  const as = {
    contentType: 'application/json; charset=utf-8',
    cacheControl: CACHE_CONTROL,
    headers: seed ? { [SEED_HEADER]: 'true' } : {},
  }
  const body = Buffer.from(JSON.stringify(payload))
  return respondPublished(event, recommendationContract.headers, published(body, as))
}
