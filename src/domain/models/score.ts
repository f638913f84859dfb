import { DAY_MS, dayOf } from '../time.ts'
import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'
import { LITE_POINTS_MAX, liteScoreOf } from './evaluation.ts'
import type { CountedEvaluation } from './evaluation.ts'
import type { Measurements } from './history.ts'
import type { HealthStatus, RankedModel, ScoreComponent } from './schema.ts'

type ScoreParts = Pick<
  RankedModel,
  'metadataScore' | 'healthScore' | 'latencyScore' | 'liteEvalScore' | 'instabilityPenalty'
>

export interface ModelScore extends ScoreParts {
  score: number
  /** Every component with its evidence; the points add up to `score`. */
  components: ScoreComponent[]
}

/** The score: metadata, health, latency and lite evaluation, minus the penalty (docs/free-models.md). */
export function scoreOf(parts: ScoreParts): number {
  const { metadataScore, healthScore, latencyScore, liteEvalScore, instabilityPenalty } = parts
  return metadataScore + healthScore + latencyScore + liteEvalScore - instabilityPenalty
}

/** Points of a health status, 0 to 400. */
export function healthScoreOf(status: HealthStatus): number {
  if (status === 'passed') return 400
  if (status === 'imperfect') return 250
  return status === 'not_probed' || status === 'http_429' ? 100 : 0
}

/** Points of a latency in milliseconds, 5 to 75; 25 when it was not measured. */
export function latencyScoreOf(latencyMs: number | null): number {
  if (latencyMs === null) return 25
  if (latencyMs <= 1_000) return 75
  if (latencyMs <= 2_000) return 60
  if (latencyMs <= 3_000) return 40
  return latencyMs <= 5_000 ? 20 : 5
}

/**
 * Scores a model.
 *
 * @param lite the evaluation that counts
 * @param now time from which ages are counted
 */
export function scoreModel(
  {
    model,
    health,
    failuresIn72h,
  }: Pick<Measurements, 'health' | 'failuresIn72h'> & { model: CatalogueModel },
  lite: CountedEvaluation | null,
  now: Instant,
): ModelScore {
  const { status, latencyMs } = health
  const metadata = metadataComponents(model, now)
  const parts: ScoreParts = {
    metadataScore: metadata.reduce((sum, { points }) => sum + points, 0),
    healthScore: healthScoreOf(status),
    latencyScore: latencyScoreOf(latencyMs),
    liteEvalScore: lite === null ? 0 : liteScoreOf(lite),
    instabilityPenalty: Math.min(150, 25 * failuresIn72h),
  }
  const latencyEvidence = latencyMs === null ? 'not measured' : `${latencyMs} ms`
  const liteEvidence =
    lite === null
      ? 'no valid evaluation'
      : `${lite.points} points times ${lite.multiplier}, ${lite.ageDays} days old`
  const failureEvidence = `${failuresIn72h} failed attempts in 72 hours`
  const components = [
    ...metadata.map((part) => ({ ...part, name: `metadata.${part.name}` })),
    { name: 'health', points: parts.healthScore, most: 400, evidence: status },
    { name: 'latency', points: parts.latencyScore, most: 75, evidence: latencyEvidence },
    { name: 'liteEval', points: parts.liteEvalScore, most: LITE_POINTS_MAX, evidence: liteEvidence },
    { name: 'instability', points: 0 - parts.instabilityPenalty, most: 0, evidence: failureEvidence },
  ]
  return { ...parts, score: scoreOf(parts), components }
}

/**
 * Most points of each metadata part; docs/model-scores.md justifies them with recorded catalogues. Published indices are no
 * part: half of the free models have none, and they are recalculated within weeks.
 */
export const METADATA_MAX = {
  recency: 170,
  parameters: 120,
  context: 60,
  reasoningEffort: 55,
  output: 50,
  reasoning: 45,
  tools: 45,
  structuredOutputs: 30,
  responseFormat: 15,
  toolChoice: 10,
} as const

/** A model's share of a part's points, 0 to 1, and the evidence. */
type Share = [share: number, evidence: string]

/** Models up to this age in days get full points, models beyond the second age none. */
const NEW_DAYS = 30
const OLD_DAYS = 540

/**
 * Scores a model's published facts, 0 to 600 in all (docs/model-scores.md).
 *
 * @param now time from which the age is counted
 * @returns every part, including parts without points
 */
export function metadataComponents(model: CatalogueModel, now: Instant): ScoreComponent[] {
  const supports = (name: string): Share => {
    const listed = model.supportedParameters.includes(name)
    return [listed ? 1 : 0, `${name} ${listed ? 'listed' : 'not listed'}`]
  }
  const shares: Record<keyof typeof METADATA_MAX, Share> = {
    recency: recency(model, now),
    parameters: parameters(model),
    context: logarithmic(model.contextLength, 'tokens of context', [2 ** 13, 2 ** 18], 0),
    reasoningEffort: supports('reasoning_effort'),
    output: logarithmic(model.maxCompletionTokens, 'tokens of output', [2 ** 12, 2 ** 16], 0.2),
    reasoning: supports('reasoning'),
    tools: supports('tools'),
    structuredOutputs: supports('structured_outputs'),
    responseFormat: supports('response_format'),
    toolChoice: supports('tool_choice'),
  }
  return Object.entries(METADATA_MAX).map(([name, most]) => {
    const [share, evidence] = shares[name as keyof typeof shares]
    return { name, points: Math.round(share * most), most, evidence }
  })
}

function recency({ createdAt }: CatalogueModel, now: Instant): Share {
  if (createdAt === null) return [0, 'listing date unknown']
  const days = Math.max(0, Math.floor((now - createdAt) / DAY_MS))
  return [
    fraction(OLD_DAYS - days, 0, OLD_DAYS - NEW_DAYS),
    `listed on ${dayOf(createdAt)}, ${days} days ago`,
  ]
}

/** Models of unpublished size are usually large: they count like about 120 billion parameters. */
function parameters(model: CatalogueModel): Share {
  const billions = parameterBillions(model)
  if (billions === null) return [0.7, 'number of parameters not published']
  return [fraction(Math.log2(billions), 2, 9), `${billions} billion parameters`]
}

/**
 * The number of parameters in billions in id and name, else in the description; null when missing. The greatest number
 * counts, because active and total parameters appear together. Descriptions come last, because they also name related
 * models.
 */
export function parameterBillions({ id, name, description }: CatalogueModel): number | null {
  return greatestSize(`${id} ${name}`) ?? greatestSize(description)
}

function greatestSize(text: string): number | null {
  const named = text.matchAll(
    /(?<![\w.$])(\d{1,5}(?:\.\d{1,3})?)(?:B\b(?!\s+tokens)|T\b(?=[\w\s-]{0,12}param))/gi,
  )
  const sizes = Array.from(named, ([match, size = '']) => Number(size) * (/t$/i.test(match) ? 1_000 : 1))
  return Math.max(0, ...sizes) || null
}

function logarithmic(
  value: number | null,
  unit: string,
  [least, most]: readonly [number, number],
  unknown: number,
): Share {
  if (value === null) return [unknown, `${unit}: not published`]
  return [fraction(Math.log2(value), Math.log2(least), Math.log2(most)), `${value} ${unit}`]
}

/** Position of a value between two bounds, limited to 0 to 1. */
function fraction(value: number, low: number, high: number): number {
  return Math.min(1, Math.max(0, (value - low) / (high - low)))
}
