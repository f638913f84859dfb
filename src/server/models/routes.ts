import type { H3Event } from 'h3'
import { matchesEntityTag } from '../../domain/conditional.ts'
import { sha256Hex } from '../../domain/digest.ts'
import {
  healthPayload,
  recommendationPayload,
  statusPayload,
  topModelsPayload,
} from '../../domain/models/payloads.ts'
import type { Served } from '../../domain/models/payloads.ts'
import { parseShortlistQuery } from '../../domain/models/shortlist-query.ts'
import type { Clock } from '../../domain/ports.ts'
import { respond } from '../respond.ts'
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
      return answerBytes(event, current, picture, BADGE_HEADERS)
    }),
  ]
}

/** A picture opened by itself may load and run nothing. */
const BADGE_HEADERS = {
  'content-type': 'image/svg+xml; charset=utf-8',
  'content-security-policy': "default-src 'none'",
  'x-content-type-options': 'nosniff',
}

function answer(event: H3Event, served: Served, payload: unknown): Response {
  const type = { 'content-type': 'application/json; charset=utf-8' }
  return answerBytes(event, served, Buffer.from(JSON.stringify(payload)), type)
}

function answerBytes(
  event: H3Event,
  { seed }: Served,
  body: Buffer,
  contentHeaders: Readonly<Record<string, string>>,
): Response {
  const etag = `"${sha256Hex(body)}"`
  const headers = {
    ...recommendationContract.headers,
    'cache-control': CACHE_CONTROL,
    etag,
    ...(seed ? { [SEED_HEADER]: 'true' } : {}),
  }
  if (matchesEntityTag(event.req.headers.get('if-none-match'), etag))
    return respond(event, 304, headers, null)
  return respond(event, 200, { ...headers, ...contentHeaders }, body)
}
