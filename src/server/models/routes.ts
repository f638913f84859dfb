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
import { badgeSvg } from './badge.ts'
import {
  badgeContract,
  CACHE_CONTROL,
  freeModelsHealthContract,
  freeModelsStatusContract,
  recommendationContract,
  SEED_HEADER,
  topModelsContract,
} from './contracts.ts'
import type { ServedRecommendation } from './served-recommendation.ts'

/** The free-model interface: parse the question, read what is stored, answer from it alone. */
export function freeModelRoutes(served: ServedRecommendation, demo: boolean, clock: Clock): Route[] {
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
    route(badgeContract, async (event) => {
      const current = await served()
      const picture = Buffer.from(badgeSvg(current, demo, clock()))
      return answerBytes(event, current, picture, 'image/svg+xml; charset=utf-8', BADGE_HEADERS)
    }),
  ]
}

/** A picture opened by itself may load and run nothing. */
const BADGE_HEADERS = {
  'content-security-policy': "default-src 'none'",
  'x-content-type-options': 'nosniff',
}

function answer(event: H3Event, served: Served, payload: unknown): Response {
  const contentType = 'application/json; charset=utf-8'
  return answerBytes(event, served, Buffer.from(JSON.stringify(payload)), contentType)
}

function answerBytes(
  event: H3Event,
  { seed }: Served,
  body: Buffer,
  contentType: string,
  own: Readonly<Record<string, string>> = {},
): Response {
  const headers = { ...own, ...(seed ? { [SEED_HEADER]: 'true' } : {}) }
  const as = { contentType, cacheControl: CACHE_CONTROL, headers }
  return respondPublished(event, recommendationContract.headers, published(body, as))
}
