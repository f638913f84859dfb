import { z } from 'zod'
import { LITE_SUITE } from './lite/suite.ts'

/**
 * What is known of a model's health: `passed` answered as asked, `imperfect` answered in another form, or the failure
 * (docs/free-models.md).
 */
export type HealthStatus = 'passed' | 'imperfect' | 'not_probed' | 'timeout' | 'failed' | `http_${number}`

/** Whose rate limit was met last: the account's, or the model's or its provider's. */
export type RateLimitKind = 'account' | 'model' | 'none'

/** Every {@link HealthStatus}. */
export const HEALTH_STATUS_PATTERN = /^(?:passed|imperfect|not_probed|timeout|failed|http_[1-5]\d\d)$/

/** Points of a health status, 0 to 400. */
export function healthScoreOf(status: HealthStatus): number {
  if (status === 'passed') return 400
  if (status === 'imperfect') return 250
  return status === 'not_probed' || status === 'http_429' ? 100 : 0
}

/** Points of a latency in milliseconds, 5 to 75; 25 for one that was not measured. */
export function latencyScoreOf(latencyMs: number | null): number {
  if (latencyMs === null) return 25
  if (latencyMs <= 1_000) return 75
  if (latencyMs <= 2_000) return 60
  if (latencyMs <= 3_000) return 40
  return latencyMs <= 5_000 ? 20 : 5
}

/**
 * Wire schemas of the free-model interface (docs/free-models.md), keys in the order in which they are sent. The job
 * seals what fits them, the server serves the seed for stored bytes that do not, the OpenAPI document is derived from
 * them.
 */

const instant = z.iso.datetime({ precision: 3 }).describe('ISO-8601 with milliseconds and Z')
const count = z.int().min(0)
const modelId = z.string().min(3)

const taskSchema = z.object({
  id: z.enum(['task_files_lite', 'task_shell_command_lite', 'babylonian_clock_lite']),
  source: z.string(),
  points: z.number().min(0),
  maxPoints: z.number().min(0),
  score: z.number().min(0).max(1).describe('points / maxPoints, three decimals'),
  status: z.enum(['passed', 'partial', 'failed', 'http_timeout_or_error']),
  details: z.record(z.string(), z.unknown()),
})

const evalSummarySchema = z
  .object({
    suite: z.literal(LITE_SUITE),
    status: z.enum(['completed', 'cached_recent', 'not_evaluated']),
    passed: count,
    total: count,
    updatedAt: instant.nullable().describe('null while no question was answered'),
    tasks: z.array(taskSchema),
    cachedFromUpdatedAt: instant.optional().describe('only when cached'),
    cacheAgeDays: z.int().min(1).optional().describe('only when cached: UTC days'),
    cacheMultiplier: z.number().optional().describe('only when cached: 0.9, 0.8 or 0.7'),
  })
  .meta({ id: 'FreeModelEvalSummary' })

const rankedModelSchema = z
  .object({
    rank: z.int().min(1).describe('contiguous in the unfiltered list'),
    id: modelId.describe('as the routing service names it, ending in `:free`'),
    name: z.string().min(1),
    score: z.int().describe('metadata + health + latency + lite evaluation - penalty, exactly'),
    metadataScore: count.max(600),
    healthScore: count.max(400),
    latencyScore: count.max(75),
    liteEvalScore: count.max(750),
    contextLength: count.describe('tokens'),
    maxCompletionTokens: count.nullable().describe('tokens; null when not published'),
    supportsTools: z.boolean().describe('claimed by the catalogue; `toolUse` is measured'),
    supportsToolChoice: z.boolean(),
    supportsStructuredOutputs: z.boolean(),
    supportsResponseFormat: z.boolean(),
    supportsReasoning: z.boolean(),
    supportsIncludeReasoning: z.boolean(),
    supportsSeed: z.boolean(),
    supportsStop: z.boolean(),
    latencyMs: count.nullable().describe('null when not probed'),
    healthStatus: z.string().regex(HEALTH_STATUS_PATTERN),
    evalSuite: z.literal(LITE_SUITE),
    evalSummary: evalSummarySchema,
    reason: z.string().describe('up to three capabilities, then `; lite eval <passed>/<total>`'),
    instabilityPenalty: count.max(150),
    previousRank: z.int().min(1).nullable().describe('rank in the recommendation before; null when new'),
    toolUse: z.enum(['proven', 'disproven', 'unknown']).describe('measured, not claimed'),
    rateLimitKind: z.enum(['account', 'model', 'none']).describe('whose rate limit was met last'),
    checkedAt: instant.nullable().describe('when health and latency were measured'),
  })
  .meta({ id: 'RankedFreeModel' })

const evalCoverageSchema = z
  .object({
    evaluated: count.describe('ranked models with a complete evaluation that counts'),
    completedToday: count.describe('of these, evaluated on the UTC day of the update'),
    attemptedToday: count.describe('evaluations begun that UTC day, failed ones too'),
    totalRanked: count,
    candidatePool: count,
    unevaluatedCanStillWin: z.boolean(),
    unevaluatedThreatCount: count,
    topUnevaluatedThreat: modelId.nullable(),
    maxUnevaluatedPossibleScore: z
      .int()
      .nullable()
      .describe('null when every ranked model has a complete evaluation'),
  })
  .meta({ id: 'FreeModelEvalCoverage' })

/** The fields both payloads begin with. */
const head = {
  updatedAt: instant,
  source: z.enum(['openrouter-models-api', 'seed']),
  rankingVersion: z.string().regex(/^\d{4}-\d{2}-\d{2}\.v\d{1,6}$/),
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

/** The fields both payloads end with. */
const tail = {
  notes: z.array(z.string()),
  seed: z.boolean().describe('true for the built-in seed'),
  stale: z.boolean().describe('true when older than the health endpoint allows'),
  ageHours: count.describe('whole hours since `updatedAt`'),
  nextUpdateAt: instant.nullable().describe('when the next update is due; null for the seed'),
}

export const topModelsSchema = z
  .object({ ...head, count, models: z.array(rankedModelSchema), ...tail })
  .meta({ id: 'FreeModelShortlist' })

export const recommendationSchema = z
  .object({ ...head, primary: rankedModelSchema, alternatives: z.array(rankedModelSchema), ...tail })
  .meta({ id: 'FreeModelRecommendation' })

const health = {
  ok: z.boolean().describe('a stored recommendation no older than `maxFreshHours`'),
  lastUpdatedAt: instant.nullable().describe('null while the seed is served'),
  ageHours: z.number().min(0).nullable().describe('two decimals; null while the seed is served'),
  maxFreshHours: z.number(),
  usingSeedFallback: z.boolean(),
  hasKvBinding: z.boolean().describe('the store of recommendations is configured and answers'),
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

/** Reasons and evidence of one model's score, kept for whoever asks why. */
const componentSchema = z.object({
  name: z.string(),
  points: z.int(),
  most: z.int(),
  evidence: z.string(),
})

/** What a run leaves in the store: everything both endpoints need, and why it came about. */
export const storedRunSchema = z.object({
  ...head,
  models: z.array(rankedModelSchema).min(1),
  notes: z.array(z.string()),
  rejections: z.array(z.object({ id: z.string(), reason: z.string() })),
  explanations: z.record(z.string(), z.array(componentSchema)),
})

export type EvalSummary = z.infer<typeof evalSummarySchema>
export type RankedModel = z.infer<typeof rankedModelSchema>
export type EvalCoverage = z.infer<typeof evalCoverageSchema>
export type TopModels = z.infer<typeof topModelsSchema>
export type Recommendation = z.infer<typeof recommendationSchema>
export type Health = z.infer<typeof healthSchema>
export type Status = z.infer<typeof statusSchema>
export type StoredRun = z.infer<typeof storedRunSchema>

/**
 * Text of a service as it may be published: well-formed Unicode, control characters as spaces, cut by code point.
 *
 * @param most code points kept
 */
export function publishedText(text: string, most: number): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
  // No code point is longer than two units: what is behind need not be looked at.
  const points = Array.from(plain.slice(0, 2 * most + 2).toWellFormed())
  return points.length > most ? `${points.slice(0, most - 1).join('')}…` : plain
}

/**
 * A published text that no reader takes for a recommendation: readers collect every text with a slash and `:free` as the
 * id of a model to use.
 */
export function withoutModelIds(text: string): string {
  return text.replaceAll(':free', ' (free)')
}

/** A JSON value with every text changed, names of fields included. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, change)]),
  )
}

/** A JSON value whose every text, names of fields included, is well-formed Unicode. */
export function wellFormed(value: unknown): unknown {
  return mapTexts(value, (text) => text.toWellFormed())
}
