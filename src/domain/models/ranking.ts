import { DAY_MS, dayOf, formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import type { CatalogueModel } from './catalogue.ts'
import { LITE_POINTS_MOST, countedEvaluation, hasAnswer } from './evaluation.ts'
import type { CountedEvaluation, LiteEvaluation, ToolUse } from './evaluation.ts'
import { LITE_SUITE } from './lite/suite.ts'
import type { TaskResult } from './lite/suite.ts'
import { healthScoreOf, latencyScoreOf, mapTexts, withoutModelIds } from './schema.ts'
import type {
  EvalCoverage,
  EvalSummary,
  HealthStatus,
  RankedModel,
  RateLimitKind,
  StoredRun,
} from './schema.ts'
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

/** What a model claims to support, each by the parameter of the service that stands for it. */
const PARAMETER_OF = {
  supportsTools: 'tools',
  supportsToolChoice: 'tool_choice',
  supportsStructuredOutputs: 'structured_outputs',
  supportsResponseFormat: 'response_format',
  supportsReasoning: 'reasoning',
  supportsIncludeReasoning: 'include_reasoning',
  supportsSeed: 'seed',
  supportsStop: 'stop',
} as const

/** Claims of the catalogue, as they are published. */
type Capabilities = Record<keyof typeof PARAMETER_OF, boolean>

function capabilitiesOf({ supportedParameters }: CatalogueModel): Capabilities {
  const entries = Object.entries(PARAMETER_OF).map(([name, parameter]) => [
    name,
    supportedParameters.includes(parameter),
  ])
  return Object.fromEntries(entries) as Capabilities
}

/** Up to three phrases on what a model can do, and how many tasks it passed. */
function reasonFor(model: CatalogueModel, { passed, total }: EvalSummary): string {
  const { supportsTools, supportsStructuredOutputs, supportsReasoning } = capabilitiesOf(model)
  const phrases = [
    ...(supportsTools ? ['tools'] : []),
    ...(supportsStructuredOutputs ? ['structured outputs'] : []),
    ...(supportsReasoning ? ['reasoning'] : []),
    contextPhrase(model.contextLength ?? 0),
  ].slice(0, 3)
  const text = phrases.join(', ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}; lite eval ${passed}/${total}`
}

function contextPhrase(tokens: number): string {
  return `${tokens < 1_000_000 ? `${Math.floor(tokens / 1_000)}k` : `${Math.floor(tokens / 100_000) / 10}M`} context`
}

/** A recommended model the chat may run on. */
export interface ChatCandidate {
  id: string
  /** True for a model that thinks, and can be asked to do little of it. */
  thinks: boolean
}

/** The recommended models the chat may run on, best first: those that can call tools, as far as anybody knows. */
export function chatCandidates({ models }: StoredRun): ChatCandidate[] {
  return models
    .filter(({ supportsTools, toolUse }) => supportsTools && toolUse !== 'disproven')
    .map(({ id, supportsReasoning }) => ({ id, thinks: supportsReasoning }))
}

export interface Confidence {
  level: 'high' | 'medium' | 'low'
  /** One sentence. */
  reason: string
}

/** So many of the best must have a fresh score: four of five of the first eight. */
const TOP = 8
const FRESH_MS = DAY_MS

/**
 * How much of a ranking rests on evaluations (docs/free-models.md): those whose published summary is not `not_evaluated`.
 *
 * @param ranked in rank order
 * @param attemptedToday evaluations begun this UTC day
 */
export function coverageOf(ranked: readonly Ranked[], attemptedToday: number, now: Instant): EvalCoverage {
  const [primary] = ranked
  const evaluations = ranked.flatMap(({ evaluation }) => evaluation ?? [])
  const possible = ranked
    .filter(({ evaluation, gone }) => evaluation === null && !gone)
    .map(({ model }) => withPerfectAnswers({ model, evaluation: null }))
    .sort(compareContenders)
  const threats = possible.filter(
    (one) =>
      primary !== undefined && one.id !== primary.model.id && compareContenders(one, primary.model) < 0,
  )
  return {
    evaluated: evaluations.length,
    completedToday: evaluations.filter(({ updatedAt }) => dayOf(updatedAt) === dayOf(now)).length,
    attemptedToday,
    totalRanked: ranked.length,
    candidatePool: ranked.length,
    unevaluatedCanStillWin: threats.length > 0,
    unevaluatedThreatCount: threats.length,
    topUnevaluatedThreat: threats[0]?.id ?? null,
    maxUnevaluatedPossibleScore: possible[0]?.score ?? null,
  }
}

/**
 * `high` when no unevaluated model can overtake the primary, and four of five of the first eight have an evaluation of
 * the last 24 hours; `medium` when none can overtake and the primary has a score;
 * else `low`.
 */
export function confidenceOf(
  ranked: readonly Ranked[],
  { unevaluatedThreatCount }: EvalCoverage,
  now: Instant,
): Confidence {
  if (unevaluatedThreatCount > 0) {
    const many =
      unevaluatedThreatCount === 1 ? 'One unevaluated model' : `${unevaluatedThreatCount} unevaluated models`
    return {
      level: 'low',
      reason: `${many} could overtake the primary with a perfect lite eval score.`,
    }
  }
  if ((ranked[0]?.evaluation ?? null) === null)
    return { level: 'low', reason: 'The primary itself has no lite eval score that counts.' }
  const top = ranked.slice(0, TOP)
  const fresh = top.filter(({ evaluation }) => evaluation && now - evaluation.updatedAt <= FRESH_MS)
  const none = 'No unevaluated candidate can overtake the primary even with a perfect lite eval score'
  const share = `${fresh.length} of the top ${top.length} have a score of the last 24 hours`
  return fresh.length * 5 >= top.length * 4
    ? { level: 'high', reason: `${none}; ${share}.` }
    : { level: 'medium', reason: `${none}, but only ${share}.` }
}
