import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'
import type { CountedEvaluation } from './evaluation.ts'
import { LITE_POINTS_MOST, liteScoreOf } from './evaluation.ts'
import { healthScoreOf, latencyScoreOf } from './health.ts'
import type { HealthStatus } from './health.ts'
import { metadataComponents } from './metadata-score.ts'
import type { ScoreComponent } from './metadata-score.ts'

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
