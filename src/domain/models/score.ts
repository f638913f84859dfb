import { DAY_MS, dayOf } from '../time.ts'
import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'
import { LITE_POINTS_MOST, liteScoreOf } from './evaluation.ts'
import type { CountedEvaluation } from './evaluation.ts'
import { healthScoreOf, latencyScoreOf } from './schema.ts'
import type { HealthStatus } from './schema.ts'

/** The additive parts of a score, as they are published. */
export interface ScoreParts {
  metadataScore: number
  healthScore: number
  latencyScore: number
  liteEvalScore: number
  instabilityPenalty: number
}

export interface ModelScore extends ScoreParts {
  score: number
  /** Every part with its evidence; their points add up to `score`. */
  components: ScoreComponent[]
}

/** What a model is scored by. */
export interface ScoreInput {
  metadata: CatalogueModel
  health: HealthStatus
  latencyMs: number | null
  /** Points of the newest evaluation that counts, with its multiplier. */
  lite: Pick<CountedEvaluation, 'points' | 'multiplier' | 'ageDays'> | null
  /** Failed attempts of the model's own in the last 72 hours. */
  failuresIn72h: number
}

const PENALTY_A_FAILURE = 25
const PENALTY_MOST = 150

/** Metadata, health, latency and lite evaluation, less the penalty (docs/free-models.md). */
export function scoreOf(parts: ScoreParts): number {
  const { metadataScore, healthScore, latencyScore, liteEvalScore, instabilityPenalty } = parts
  return metadataScore + healthScore + latencyScore + liteEvalScore - instabilityPenalty
}

/** 25 for each failed attempt of the model's own, at most 150. */
export function instabilityPenaltyOf(failuresIn72h: number): number {
  return Math.min(PENALTY_MOST, PENALTY_A_FAILURE * failuresIn72h)
}

/**
 * A model's score and every part it is made of.
 *
 * @param now from which the model's age is counted
 */
export function scoreModel(input: ScoreInput, now: Instant): ModelScore {
  const { metadata, health, latencyMs, lite, failuresIn72h } = input
  const known = metadataComponents(metadata, now)
  const parts: ScoreParts = {
    metadataScore: known.reduce((sum, { points }) => sum + points, 0),
    healthScore: healthScoreOf(health),
    latencyScore: latencyScoreOf(latencyMs),
    liteEvalScore: lite === null ? 0 : liteScoreOf(lite),
    instabilityPenalty: instabilityPenaltyOf(failuresIn72h),
  }
  const measured: ScoreComponent[] = [
    { name: 'health', points: parts.healthScore, most: 400, evidence: health },
    { name: 'latency', points: parts.latencyScore, most: 75, evidence: latencyEvidence(latencyMs) },
    { name: 'liteEval', points: parts.liteEvalScore, most: LITE_POINTS_MOST, evidence: liteEvidence(lite) },
    {
      name: 'instability',
      points: 0 - parts.instabilityPenalty,
      most: 0,
      evidence: `${failuresIn72h} failed attempts in 72 hours`,
    },
  ]
  const metadataParts = known.map((part) => ({ ...part, name: `metadata.${part.name}` }))
  return { ...parts, score: scoreOf(parts), components: [...metadataParts, ...measured] }
}

function latencyEvidence(latencyMs: number | null): string {
  return latencyMs === null ? 'not measured' : `${latencyMs} ms`
}

function liteEvidence(lite: ScoreInput['lite']): string {
  if (lite === null) return 'no evaluation that counts'
  return `${lite.points} points times ${lite.multiplier}, ${lite.ageDays} days old`
}

/** One part of a score: its points, how many there are to be had, and what they rest on. */
export interface ScoreComponent {
  name: string
  points: number
  most: number
  /** One phrase for a person. */
  evidence: string
}

/** What the metadata can bring, part by part; docs/model-scores.md defends each by recorded catalogues. */
export const METADATA_MOST = {
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
type MetadataPart = keyof typeof METADATA_MOST

/** Newer than this counts as new, older than that as old. */
const NEW_DAYS = 30
const OLD_DAYS = 540

/**
 * What a model's published facts promise, 0 to 600 points (docs/model-scores.md).
 *
 * @param now from which the age is counted
 * @returns every part, those without points too
 */
export function metadataComponents(model: CatalogueModel, now: Instant): ScoreComponent[] {
  const supports = (name: string): [share: number, evidence: string] => {
    const listed = model.supportedParameters.includes(name)
    return [listed ? 1 : 0, `${name} ${listed ? 'listed' : 'not listed'}`]
  }
  const shares: Record<MetadataPart, [share: number, evidence: string]> = {
    recency: recency(model, now),
    parameters: parameters(model),
    context: logarithmic(model.contextLength, 'tokens of context', 2 ** 13, 2 ** 18, 0),
    reasoningEffort: supports('reasoning_effort'),
    output: logarithmic(model.maxCompletionTokens, 'tokens of output', 2 ** 12, 2 ** 16, 0.2),
    reasoning: supports('reasoning'),
    tools: supports('tools'),
    structuredOutputs: supports('structured_outputs'),
    responseFormat: supports('response_format'),
    toolChoice: supports('tool_choice'),
  }
  return (Object.entries(shares) as [MetadataPart, [number, string]][]).map(([name, [share, evidence]]) => {
    const most = METADATA_MOST[name]
    return { name, points: Math.round(share * most), most, evidence }
  })
}

function recency({ createdAt }: CatalogueModel, now: Instant): [number, string] {
  if (createdAt === null) return [0, 'no date of listing']
  const days = Math.max(0, Math.floor((now - createdAt) / DAY_MS))
  return [between(OLD_DAYS - days, 0, OLD_DAYS - NEW_DAYS), `listed on ${dayOf(createdAt)}, ${days} days ago`]
}

/** Models whose size is not published are rather great ones: they count like one of about 120 billion parameters. */
function parameters(model: CatalogueModel): [number, string] {
  const billions = parameterBillions(model)
  if (billions === null) return [0.7, 'number of parameters not published']
  return [between(Math.log2(billions), 2, 9), `${billions} billion parameters`]
}

/**
 * The number of parameters in billions that id and name speak of, else the description; null when none does. Active
 * and total parameters stand side by side: the total is the greater. Descriptions also name a model's relatives.
 */
export function parameterBillions({ id, name, description }: CatalogueModel): number | null {
  return greatestSize(`${id} ${name}`) ?? greatestSize(description)
}

function greatestSize(text: string): number | null {
  const named = text.matchAll(
    /(?<![\w.$])(\d{1,5}(?:\.\d{1,3})?)(?:B\b(?!\s+tokens)|T\b(?=[\w\s-]{0,12}param))/gi,
  )
  const sizes = Array.from(named, ([match, size = '']) => Number(size) * (/t$/i.test(match) ? 1_000 : 1))
  const greatest = Math.max(0, ...sizes)
  return greatest > 0 ? greatest : null
}

/** Each doubling between the bounds is worth the same; beyond them more or less makes no difference. */
function logarithmic(
  value: number | null,
  unit: string,
  least: number,
  most: number,
  unknown: number,
): [number, string] {
  if (value === null) return [unknown, `${unit}: not published`]
  return [between(Math.log2(value), Math.log2(least), Math.log2(most)), `${value} ${unit}`]
}

/** Where a value lies between two bounds, 0 to 1. */
function between(value: number, low: number, high: number): number {
  return Math.min(1, Math.max(0, (value - low) / (high - low)))
}
