import { formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'
import { countedEvaluation, hasAnswer, LITE_POINTS_MOST } from './evaluation.ts'
import type { CountedEvaluation, LiteEvaluation, ToolUse } from './evaluation.ts'
import { healthScoreOf, latencyScoreOf } from './health.ts'
import type { HealthStatus, RateLimitKind } from './health.ts'
import { LITE_SUITE } from './lite/suite.ts'
import type { TaskResult } from './lite/suite.ts'
import { capabilitiesOf, reasonFor } from './capabilities.ts'
import type { EvalSummary, RankedModel } from './schema.ts'
import { scoreModel, scoreOf } from './score.ts'
import type { ModelScore, ScoreParts } from './score.ts'
import { mapTexts, withoutModelIds } from './text.ts'

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
  toolUse: ToolUse
  /** True when the service said last that nobody serves it: it cannot be the primary. */
  gone: boolean
  /** Failed attempts of the model's own (its 429, timeout, 5xx, error inside a 200) in the last 72 hours. */
  failuresIn72h: number
}

/** A candidate with its place, its score and what the score is made of. */
export interface Ranked {
  model: RankedModel
  /** With answers to one question at least. */
  evaluation: CountedEvaluation | null
  gone: boolean
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
    const shown = countedEvaluation(candidate.evaluation, now)
    const evaluation = shown && hasAnswer(shown) ? shown : null
    const { status, latencyMs } = candidate.health
    const { failuresIn72h, model } = candidate
    const input = { metadata: model, health: status, latencyMs, lite: evaluation, failuresIn72h }
    return { candidate, shown, evaluation, id: model.id, ...scoreModel(input, now) }
  })
  return scored.sort(compareContenders).map((one, index) => {
    const { candidate, shown, evaluation, components } = one
    const previousRank = previousRanks.get(one.id) ?? null
    return {
      model: rankedModel(candidate, shown, one, { rank: index + 1, previousRank }),
      evaluation,
      gone: candidate.gone,
      components,
    }
  })
}

/**
 * Those who would lead although nobody serves them: a recommendation must not begin with them. Whatever is gone further
 * down stays in the ranking with its failure.
 *
 * @returns their ids; all of them when nobody serves any candidate
 */
export function goneLeaders(candidates: readonly Candidate[], now: Instant): ReadonlySet<string> {
  const ranked = rankCandidates(candidates, new Map(), now)
  const first = ranked.findIndex(({ gone }) => !gone)
  return new Set(ranked.slice(0, first < 0 ? ranked.length : first).map(({ model }) => model.id))
}

/**
 * What a model could reach today by perfect and quick answers: they bring health and latency too. What it answered today
 * already stays as it is, and so does what counts against it.
 *
 * @param evaluation null for a model that would be asked both questions
 */
export function withPerfectAnswers({ model, evaluation }: Pick<Ranked, 'model' | 'evaluation'>): Contender {
  const ofToday = evaluation?.ageDays === 0 ? evaluation : null
  const parts = {
    ...model,
    healthScore: healthScoreOf('passed'),
    latencyScore: latencyScoreOf(0),
    liteEvalScore: ofToday ? ofToday.points + ofToday.openPoints : LITE_POINTS_MOST,
  }
  return { ...parts, score: scoreOf(parts) }
}

function rankedModel(
  { model, health, toolUse }: Candidate,
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
    toolUse,
    rateLimitKind: health.rateLimitKind,
    checkedAt: health.checkedAt === null ? null : formatInstant(health.checkedAt),
  }
}

/** Details hold text of models and services. */
function publishedDetails(details: TaskResult['details']): Record<string, unknown> {
  return mapTexts(details, withoutModelIds) as Record<string, unknown>
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
  const { tasks, ageDays, multiplier } = evaluation
  const status = hasAnswer(evaluation) ? evaluation.status : 'not_evaluated'
  const updatedAt = hasAnswer(evaluation) ? formatInstant(evaluation.updatedAt) : null
  const cached =
    status === 'cached_recent' && updatedAt !== null
      ? { cachedFromUpdatedAt: updatedAt, cacheAgeDays: ageDays, cacheMultiplier: multiplier }
      : {}
  const passed = tasks.filter((task) => task.status === 'passed').length
  const results = tasks.map((task) => ({ ...task, details: publishedDetails(task.details) }))
  return { suite: LITE_SUITE, status, passed, total: tasks.length, updatedAt, tasks: results, ...cached }
}
