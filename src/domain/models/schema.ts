import { z } from 'zod'
import { firstCodePoints } from '../text.ts'
import { countField, instantField } from '../wire-format.ts'
import { LITE_SUITE, taskSchema } from './lite/suite.ts'

/**
 * `passed`: responded in the requested form; `imperfect`: responded in another form; otherwise the failure
 * (docs/free-models.md).
 */
export type HealthStatus = 'passed' | 'imperfect' | 'not_probed' | 'timeout' | 'failed' | `http_${number}`

/** Matches every {@link HealthStatus}. */
export const HEALTH_STATUS_PATTERN = /^(?:passed|imperfect|not_probed|timeout|failed|http_[1-5]\d\d)$/

/**
 * Capabilities that the catalogue claims for a model: the published field, the service's parameter, and the name in a
 * filter of the shortlist.
 */
export const CAPABILITIES = {
  supportsTools: { parameter: 'tools', need: 'tools' },
  supportsToolChoice: { parameter: 'tool_choice', need: 'toolChoice' },
  supportsStructuredOutputs: { parameter: 'structured_outputs', need: 'structured' },
  supportsResponseFormat: { parameter: 'response_format', need: 'responseFormat' },
  supportsReasoning: { parameter: 'reasoning', need: 'reasoning' },
  supportsIncludeReasoning: { parameter: 'include_reasoning', need: null },
  supportsSeed: { parameter: 'seed', need: 'seed' },
  supportsStop: { parameter: 'stop', need: 'stop' },
} as const
export type Capability = keyof typeof CAPABILITIES

export function mapCapabilities<T>(
  valueOf: (capability: (typeof CAPABILITIES)[Capability]) => T,
): Record<Capability, T> {
  const entries = Object.entries(CAPABILITIES).map(([field, capability]) => [field, valueOf(capability)])
  return Object.fromEntries(entries) as Record<Capability, T>
}

/** Version of a ranking: `<UTC day>.v1`; a second run of the day is `.v2`. */
export const RANKING_VERSION = /^\d{4}-\d{2}-\d{2}\.v\d{1,6}$/

/**
 * Wire schemas of the free-model API (docs/free-models.md), keys in wire order. The job seals valid data only, the
 * server serves the seed in place of invalid stored bytes, and the OpenAPI document derives from them.
 */

const instant = instantField.describe('ISO-8601 with milliseconds and Z')
const modelId = z.string().min(3)

const evalSummarySchema = z
  .object({
    suite: z.literal(LITE_SUITE),
    status: z.enum(['completed', 'cached_recent', 'not_evaluated']),
    passed: countField,
    total: countField,
    updatedAt: instant.nullable().describe('null if no test got a response'),
    tasks: z.array(taskSchema),
    cachedFromUpdatedAt: instant.optional().describe('only when cached'),
    cacheAgeDays: z.int().min(1).optional().describe('only when cached: UTC days'),
    cacheMultiplier: z.number().optional().describe('only when cached: 0.9, 0.8 or 0.7'),
  })
  .meta({ id: 'FreeModelEvalSummary' })

export const rankedModelSchema = z
  .object({
    rank: z.int().min(1).describe('contiguous in the unfiltered list'),
    id: modelId.describe('as the routing service names it, ending in `:free`'),
    name: z.string().min(1),
    score: z.int().describe('exactly metadata + health + latency + lite evaluation - penalty'),
    metadataScore: countField.max(600),
    healthScore: countField.max(400),
    latencyScore: countField.max(75),
    liteEvalScore: countField.max(750),
    contextLength: countField.describe('tokens'),
    maxCompletionTokens: countField.nullable().describe('tokens; null if not published'),
    ...mapCapabilities(() => z.boolean()),
    supportsTools: z.boolean().describe('claimed by the catalogue; `toolUse` is measured'),
    latencyMs: countField.nullable().describe('null if not probed'),
    healthStatus: z.string().regex(HEALTH_STATUS_PATTERN),
    evalSuite: z.literal(LITE_SUITE),
    evalSummary: evalSummarySchema,
    reason: z.string().describe('up to three capabilities, then `; lite eval <passed>/<total>`'),
    instabilityPenalty: countField.max(150),
    previousRank: z.int().min(1).nullable().describe('rank in the previous recommendation; null if new'),
    toolUse: z.enum(['proven', 'disproven', 'unknown']).describe('measured, not claimed'),
    rateLimitKind: z.enum(['account', 'model', 'none']).describe('origin of the last rate limit'),
    checkedAt: instant.nullable().describe('time of the health and latency measurement'),
  })
  .meta({ id: 'RankedFreeModel' })

const evalCoverageSchema = z
  .object({
    evaluated: countField.describe('ranked models with a valid evaluation'),
    completedToday: countField.describe('ranked models evaluated on the UTC day of the update'),
    attemptedToday: countField.describe('evaluations started on that UTC day, including failed ones'),
    totalRanked: countField,
    candidatePool: countField,
    unevaluatedCanStillWin: z.boolean(),
    unevaluatedThreatCount: countField,
    topUnevaluatedThreat: modelId.nullable(),
    maxUnevaluatedPossibleScore: z
      .int()
      .nullable()
      .describe('null if every ranked model that is served has a valid evaluation'),
  })
  .meta({ id: 'FreeModelEvalCoverage' })

const head = {
  updatedAt: instant,
  source: z.enum(['openrouter-models-api', 'seed']),
  rankingVersion: z.string().regex(RANKING_VERSION),
  probeMode: z.enum(['active', 'passive', 'metadata']),
  refreshMode: z.enum(['metadataOnly', 'healthOnly', 'fullEval', 'forceEval']),
  liteEvalMode: z.enum(['active', 'cached', 'off']),
  liteEvalSuite: z.literal(LITE_SUITE),
  rankingConfidence: z.enum(['high', 'medium', 'low']),
  rankingConfidenceReason: z.string(),
  evalCoverage: evalCoverageSchema,
  baseUrl: z.url(),
  createKeyUrl: z.url(),
  fallback: z.object({ id: modelId, reason: z.string() }),
}

export const HEAD_FIELDS = Object.keys(head) as (keyof typeof head)[]

const tail = {
  notes: z.array(z.string()),
  seed: z.boolean().describe('true for the built-in seed'),
  stale: z.boolean().describe('true if older than `maxFreshHours` of the health endpoint, or of the future'),
  ageHours: countField.describe('whole hours since `updatedAt`'),
  nextUpdateAt: instant
    .nullable()
    .describe('when the next update is due, past while it is late; null for the seed'),
}

export const topModelsSchema = z
  .object({ ...head, count: countField, models: z.array(rankedModelSchema), ...tail })
  .meta({ id: 'FreeModelShortlist' })

export const recommendationSchema = z
  .object({ ...head, primary: rankedModelSchema, alternatives: z.array(rankedModelSchema), ...tail })
  .meta({ id: 'FreeModelRecommendation' })

const health = {
  ok: z
    .boolean()
    .describe('true if the stored recommendation is not older than `maxFreshHours`, and not of the future'),
  lastUpdatedAt: instant.nullable().describe('null if the seed is served'),
  ageHours: z.number().min(0).nullable().describe('two decimals; null if the seed is served'),
  maxFreshHours: z.number(),
  usingSeedFallback: z.boolean(),
  hasKvBinding: z.boolean().describe('true if the store of recommendations is configured and responds'),
}

export const healthSchema = z.object(health).meta({ id: 'FreeModelHealth' })

export const statusSchema = z
  .object({
    ...health,
    service: z.literal('free-llm'),
    primary: modelId,
    rankingVersion: head.rankingVersion,
    rankingConfidence: head.rankingConfidence,
  })
  .meta({ id: 'FreeModelStatus' })

/** One component of a score: its points, the maximum, and one phrase of evidence. */
const componentSchema = z.object({
  name: z.string(),
  points: z.int(),
  most: z.int(),
  evidence: z.string(),
})

/** The stored run: all data of both endpoints, with rejections, explanations and announced ends. */
export const storedRunSchema = z.object({
  ...head,
  models: z.array(rankedModelSchema).min(1),
  notes: z.array(z.string()),
  rejections: z.array(z.object({ id: z.string(), reason: z.string() })),
  explanations: z.record(z.string(), z.array(componentSchema)),
  /** Expiration day by id of the ranked models that have one; runs of older releases have no such member. */
  expirations: z.record(z.string(), z.iso.date()).optional(),
  /** Ids of the ranked models whose status does not come from a test; runs of older releases have no such member. */
  untested: z.array(z.string()).optional(),
})

export type ScoreComponent = z.infer<typeof componentSchema>
export type EvalSummary = z.infer<typeof evalSummarySchema>
export type RankedModel = z.infer<typeof rankedModelSchema>
export type EvalCoverage = z.infer<typeof evalCoverageSchema>
export type TopModels = z.infer<typeof topModelsSchema>
export type Recommendation = z.infer<typeof recommendationSchema>
export type Health = z.infer<typeof healthSchema>
export type Status = z.infer<typeof statusSchema>
export type StoredRun = z.infer<typeof storedRunSchema>

/**
 * Prepares text of a service for publication: well-formed Unicode, control characters as spaces, shortened by code
 * points.
 *
 * @param most most code points
 */
export function publishedText(text: string, most: number): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
  return firstCodePoints(plain, most) === plain ? plain : `${firstCodePoints(plain, most - 1)}…`
}

/**
 * Removes model ids from a published text: consumers collect every text with a slash and `:free` as the id of a
 * recommended model.
 */
export function withoutModelIds(text: string): string {
  return text.replaceAll(':free', ' (free)')
}

/** Maps every text of a JSON value, including member names. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, change)]),
  )
}

/** Makes every text of a JSON value well-formed Unicode, including member names. */
export function wellFormed(value: unknown): unknown {
  return mapTexts(value, (text) => text.toWellFormed())
}
