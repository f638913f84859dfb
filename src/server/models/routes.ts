import { z } from 'zod'
import {
  healthSchema,
  publishedText,
  rankedModelSchema,
  recommendationSchema,
  statusSchema,
  topModelsSchema,
} from '../../domain/models/schema.ts'
import {
  NEED_NAMES,
  deprecationOf,
  healthPayload,
  parseShortlistQuery,
  recommendationPayload,
  shortlistQuery,
  statusPayload,
  topModelsPayload,
} from '../../domain/models/shortlist.ts'
import type { FreeModelsRefusal, ServedRun } from '../../domain/models/shortlist.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Objects } from '../../domain/year/ports.ts'
import type { Instant } from '../../domain/time.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { seedRun } from '../../domain/models/recommend.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import { Refusal } from '../../domain/refusal.ts'
import { CSV_TYPE, csvContract, namedCsv, writeCsv } from '../csv.ts'
import { publishedBody, publishedJson } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import {
  METHOD_NOT_ALLOWED,
  invalidValues,
  publicAccess,
  publishedHeaders,
  publishedRoute,
} from '../route.ts'
import type { Contract, Route, Log } from '../route.ts'
import { singleFlight } from '../single-flight.ts'

/** Routes of the free-model interface, which respond from the stored recommendation alone. */
export function freeModelRoutes(served: ServedRecommendation, demo: boolean, clock: Clock): Route[] {
  const json = async (payloadOf: (current: ServedRun, now: Instant) => unknown): Promise<PublishedBody> => {
    const current = await served()
    return publishedJson(payloadOf(current, clock()), CACHE_CONTROL, seedHeader(current))
  }
  return [
    publishedRoute(recommendationContract, async () => {
      const current = await served()
      const now = clock()
      const payload = recommendationPayload(current, now)
      const ending = deprecationHeaders(current.run, payload.primary.id, now)
      return publishedJson(payload, CACHE_CONTROL, { ...ending, ...seedHeader(current) })
    }),
    publishedRoute(topModelsContract, async (params) => {
      const query = parseShortlistQuery(params)
      return json((current, now) => topModelsPayload(current, query, now))
    }),
    publishedRoute(topModelsCsvContract, async (params) => {
      const query = parseShortlistQuery(params)
      const current = await served()
      const { models, updatedAt } = topModelsPayload(current, query, clock())
      const csv = publishedBody(writeCsv(rankedModelSchema, models), {
        contentType: CSV_TYPE,
        cacheControl: CACHE_CONTROL,
        headers: seedHeader(current),
      })
      return namedCsv(csv, `dash-free-models-${updatedAt.slice(0, 10)}`)
    }),
    publishedRoute(freeModelsHealthContract, () => json(healthPayload)),
    publishedRoute(freeModelsStatusContract, () => json(statusPayload)),
    publishedRoute(badgeContract, () => json((current, now) => badgeOf(current, demo, now))),
  ]
}

/**
 * The headers that announce the end of a ranked model: `Deprecation` (RFC 9745) and `Sunset` (RFC 8594); none for a
 * model without an end within 14 days (docs/free-models.md#models-that-end).
 *
 * @param id of the model, as it is ranked
 */
export function deprecationHeaders(
  run: StoredRun,
  id: string,
  now: Instant,
): Readonly<Record<string, string>> {
  const ending = deprecationOf(run, id, now)
  if (ending === null) return {}
  const { deprecatedAt, sunsetAt } = ending
  return { deprecation: `@${deprecatedAt / 1000}`, sunset: new Date(sunsetAt).toUTCString() }
}

function seedHeader({ seed }: ServedRun): Record<string, string> {
  return seed ? { 'x-free-llm-seed': 'true' } : {}
}

/** Path of the page that documents this interface. */
export const FREE_MODELS_DOCS = '/docs/api/free-llm'

/** `Cache-Control` of every success. */
export const CACHE_CONTROL = 'public, max-age=300, stale-while-revalidate=3600'

type PlainRefusal = Exclude<FreeModelsRefusal, 'invalid_limit' | 'invalid_filter'>

/** The contract of a route of the interface that takes no query. */
export type FreeModelContract = Contract<PlainRefusal>

const REFUSALS = {
  method_not_allowed: METHOD_NOT_ALLOWED,
  internal_error: {
    status: 500,
    when: 'an unexpected error; if the store fails, the response is the seed',
  },
} satisfies Record<PlainRefusal, { status: number; when: string }>

const SHORTLIST_REFUSALS = {
  invalid_limit: invalidValues({ limit: 'a whole number of at least 1' }),
  invalid_filter: invalidValues({
    needs: `a comma-separated list of ${NEED_NAMES.join(', ')}`,
    minContext: 'a whole number of at least 1',
    health: '`passed`',
  }),
  ...REFUSALS,
} satisfies Record<FreeModelsRefusal, { status: number; when: string }>

const { Link = '', ...DIGESTS } = publishedHeaders(CACHE_CONTROL)

/** Members shared by the contracts. A store that fails is no error here: the seed is served. */
export const COMMON = {
  tag: 'Free models',
  query: z.object({}),
  successHeaders: {
    ...DIGESTS,
    'X-Free-LLM-Seed': '`true` while the built-in seed is served; absent otherwise',
    Link,
  },
  fault: 'internal_error',
  ...publicAccess(FREE_MODELS_DOCS, ['ETag', 'Link', 'X-Free-LLM-Seed', 'Deprecation', 'Sunset']),
  refusals: REFUSALS,
} as const

const recommendationContract: FreeModelContract = {
  ...COMMON,
  successHeaders: {
    ...COMMON.successHeaders,
    Deprecation:
      'start of the last 14 days of the primary model (RFC 9745); absent while no end is announced',
    Sunset: 'start of the day on which the primary model ends (RFC 8594); absent while no end is announced',
  },
  path: '/api/free-llm/recommendation',
  operationId: 'getFreeModelRecommendation',
  summary: 'Get the free text model to use now',
  description: [
    'The current recommendation for general developer use, every other ranked model as its alternatives, best first,',
    'and a stable fallback router. While no stored recommendation can be read, the built-in seed is served.',
  ].join(' '),
  success: recommendationSchema,
  successDescription: 'The recommendation',
}

export const topModelsContract: Contract<FreeModelsRefusal> = {
  ...COMMON,
  path: '/api/free-llm/top-models',
  operationId: 'getTopFreeModels',
  summary: 'Get the ordered shortlist behind the recommendation',
  description: [
    'Every ranked model, best first, for a daily poll. Filters remove models and keep the ranks of the others;',
    '`limit` shortens the result.',
  ].join(' '),
  query: shortlistQuery,
  success: topModelsSchema,
  successDescription: 'The shortlist; empty when no model passes the filters',
  refusals: SHORTLIST_REFUSALS,
}

export const topModelsCsvContract = csvContract(topModelsContract)

const freeModelsHealthContract: FreeModelContract = {
  ...COMMON,
  path: '/api/free-llm/health',
  operationId: 'getFreeModelHealth',
  summary: 'Get the age of the stored recommendation',
  description: 'Always 200; `ok` is true if a fresh recommendation is stored.',
  success: healthSchema,
  successDescription: 'Freshness',
}

export const freeModelsStatusContract: FreeModelContract = {
  ...COMMON,
  path: '/api/status/free-llm',
  operationId: 'getFreeModelStatus',
  summary: 'Get the health and the recommended model',
  description:
    'The health payload with the id of the primary model and the version and confidence of the ranking.',
  success: statusSchema,
  successDescription: 'Status',
}

const badgeSchema = z
  .object({
    schemaVersion: z.literal(1),
    label: z.string(),
    message: z.string().describe('id of the primary model, marked if it is stale or the built-in seed'),
    color: z.string().describe('hexadecimal, with a number sign'),
    isError: z.boolean().describe('true while the built-in seed is served'),
  })
  .meta({ id: 'FreeModelBadge' })

const badgeContract: FreeModelContract = {
  ...COMMON,
  path: '/badge/free-model.json',
  operationId: 'getFreeModelBadgeJson',
  summary: 'Get the recommended model for a badge service',
  description:
    'The badge as JSON in the format of the endpoint badge of shields.io, for services that draw badges.',
  success: badgeSchema,
  successDescription: 'The parts of a badge',
}

/** Contracts of the recommendation and the badge, as the document of the interface lists them. */
export const FREE_MODELS_CONTRACTS = [
  recommendationContract,
  topModelsContract,
  freeModelsHealthContract,
  freeModelsStatusContract,
  badgeContract,
  topModelsCsvContract,
] as const

/** Longest id on the badge, in code points; a longer one is truncated. */
const ID_MAX_LENGTH = 60

const LABEL = 'free model'

/** Background colours, dark enough for white text. */
const COLOURS = { fresh: '#17642f', stale: '#804500', seed: '#585d66' } as const

/** The recommended model as a badge, marked if the recommendation is stale or the built-in seed. */
function badgeOf(served: ServedRun, demo: boolean, now: Instant): z.infer<typeof badgeSchema> {
  const { primary, ok, usingSeedFallback } = statusPayload(served, now)
  const state = usingSeedFallback ? 'seed' : ok ? 'fresh' : 'stale'
  const id = publishedText(primary, ID_MAX_LENGTH)
  return {
    schemaVersion: 1,
    label: demo ? `DEMO: ${LABEL}` : LABEL,
    message: state === 'fresh' ? id : `${id} (${state})`,
    color: COLOURS[state],
    isError: state === 'seed',
  }
}

export type ServedRecommendation = () => Promise<ServedRun>

/**
 * Reads and verifies the stored recommendation for every request. If it is missing, unreadable or damaged, the built-in
 * seed is served (docs/free-models.md) and an error is logged.
 *
 * @param publishedBaseUrl URL of the routing service to publish instead of the stored one
 */
export function servedRecommendation(
  store: Pick<Objects['recommendations'], 'current'>,
  publishedBaseUrl: string,
  log: Log,
): ServedRecommendation {
  const publishedSeedRun = { ...seedRun(), baseUrl: publishedBaseUrl }
  const seed = { run: publishedSeedRun, seed: true }
  // Verify the same bytes only once: they change only with a new run.
  let proved: { bytes: Uint8Array; run: StoredRun } | null = null
  return singleFlight(async (): Promise<ServedRun> => {
    let bytes: Uint8Array | null | undefined
    try {
      bytes = await store.current()
      if (bytes === null) return { ...seed, storeAvailable: true }
      if (proved === null || Buffer.compare(proved.bytes, bytes) !== 0)
        proved = { bytes, run: { ...proveRun(bytes), baseUrl: publishedBaseUrl } }
      return { run: proved.run, seed: false, storeAvailable: true }
    } catch (error) {
      const code = error instanceof Refusal ? error.code : 'internal_error'
      const problem = bytes ? 'is damaged' : 'cannot be read'
      log.error({ code, err: error }, `the stored recommendation ${problem}; the seed is served`)
      // A store that reports damage was reachable.
      const storeAvailable = bytes !== undefined || code === 'storage_damaged'
      return { ...seed, storeAvailable, isUnreadable: true }
    }
  })
}
