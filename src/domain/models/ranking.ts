import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'
import { countedEvaluation, LITE_POINTS_MOST, toolUseOf } from './evaluation.ts'
import type { CountedEvaluation, LiteEvaluation } from './evaluation.ts'
import type { HealthStatus, RateLimitKind } from './health.ts'
import { LITE_SUITE } from './lite/suite.ts'
import { capabilitiesOf, reasonFor } from './capabilities.ts'
import type { EvalSummary, RankedModel } from './schema.ts'
import { scoreModel, scoreOf } from './score.ts'
import type { ModelScore, ScoreParts } from './score.ts'

/** Tasks of the suite, for a model without a result. */
const TASKS_IN_SUITE = 3

/** Everything known of one eligible model. */
export interface Candidate {
  model: CatalogueModel
  health: {
    status: HealthStatus
    latencyMs: number | null
    rateLimitKind: RateLimitKind
    /** When status and latency were measured; null when they were not. */
    checkedAt: Instant | null
  }
  /** The newest evaluation; one that is too old does not count. */
  evaluation: LiteEvaluation | null
  /** Failed attempts of the model's own (its 429, timeout, 5xx, error inside a 200) in the last 72 hours. */
  failuresIn72h: number
}

/** A candidate with its place, its score and what the score is made of. */
export interface Ranked {
  model: RankedModel
  evaluation: CountedEvaluation | null
  components: ModelScore['components']
}

/** What decides between two models. */
type Contender = Pick<ScoreParts, 'liteEvalScore' | 'metadataScore'> & { id: string; score: number }

/**
 * The order of the ranking: score, then what was measured (lite evaluation), then what was published (metadata), then
 * id in code-unit order. Nothing else moves a model.
 */
export function compareContenders(a: Contender, b: Contender): number {
  return (
    b.score - a.score ||
    b.liteEvalScore - a.liteEvalScore ||
    b.metadataScore - a.metadataScore ||
    (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  )
}

/**
 * Scores and ranks candidates.
 *
 * @param previousRanks ranks of the stored recommendation before this one, by id
 * @returns rank 1 first, ranks contiguous
 */
export function rankCandidates(
  candidates: readonly Candidate[],
  previousRanks: ReadonlyMap<string, number>,
  now: Instant,
): Ranked[] {
  const scored = candidates.map((candidate) => {
    const evaluation = countedEvaluation(candidate.evaluation, now)
    const { status, latencyMs } = candidate.health
    const { failuresIn72h, model } = candidate
    const input = { metadata: model, health: status, latencyMs, lite: evaluation, failuresIn72h }
    return { candidate, evaluation, id: model.id, ...scoreModel(input, now) }
  })
  return scored.sort(compareContenders).map((one, index) => {
    const { candidate, evaluation, components } = one
    const previousRank = previousRanks.get(one.id) ?? null
    return {
      model: rankedModel(candidate, evaluation, one, { rank: index + 1, previousRank }),
      evaluation,
      components,
    }
  })
}

/** What a model could reach with a perfect lite evaluation and everything else as it is. */
export function withPerfectEvaluation(model: RankedModel): Contender {
  const parts = { ...model, liteEvalScore: LITE_POINTS_MOST }
  return { ...parts, score: scoreOf(parts) }
}

function rankedModel(
  { model, health }: Candidate,
  evaluation: CountedEvaluation | null,
  score: ModelScore,
  { rank, previousRank }: { rank: number; previousRank: number | null },
): RankedModel {
  const capabilities = capabilitiesOf(model)
  const evalSummary = summaryOf(evaluation)
  return {
    rank,
    id: model.id,
    name: model.name,
    score: score.score,
    metadataScore: score.metadataScore,
    healthScore: score.healthScore,
    latencyScore: score.latencyScore,
    liteEvalScore: score.liteEvalScore,
    // Eligible models have one: see `judge`.
    contextLength: model.contextLength ?? 0,
    maxCompletionTokens: model.maxCompletionTokens,
    ...capabilities,
    latencyMs: health.latencyMs,
    healthStatus: health.status,
    evalSuite: LITE_SUITE,
    evalSummary,
    reason: reasonFor(model, evalSummary),
    instabilityPenalty: score.instabilityPenalty,
    previousRank,
    toolUse: toolUseOf(evaluation),
    rateLimitKind: health.rateLimitKind,
    checkedAt: health.checkedAt === null ? null : formatInstant(health.checkedAt),
  }
}

function summaryOf(evaluation: CountedEvaluation | null): EvalSummary {
  if (evaluation === null) {
    return {
      suite: LITE_SUITE,
      status: 'not_evaluated',
      passed: 0,
      total: TASKS_IN_SUITE,
      updatedAt: null,
      tasks: [],
    }
  }
  const { status, tasks, ageDays, multiplier } = evaluation
  const updatedAt = formatInstant(evaluation.updatedAt)
  const cached =
    status === 'cached_recent'
      ? { cachedFromUpdatedAt: updatedAt, cacheAgeDays: ageDays, cacheMultiplier: multiplier }
      : {}
  const passed = tasks.filter((task) => task.status === 'passed').length
  const results = tasks.map((task) => ({ ...task, details: { ...task.details } }))
  return { suite: LITE_SUITE, status, passed, total: tasks.length, updatedAt, tasks: results, ...cached }
}
