import { compareCodeUnits } from '../text.ts'
import { DAY_MS, dayOf, formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { FREE_SUFFIX } from './catalogue.ts'
import type { CatalogueModel } from './catalogue.ts'
import { LITE_POINTS_MAX, countedEvaluation, hasResponse } from './evaluation.ts'
import type { CountedEvaluation } from './evaluation.ts'
import type { Measurements, ModelHistory } from './history.ts'
import { LITE_SUITE } from './lite/suite.ts'
import { requestsLeftOfModel } from './quota.ts'
import type { QuotaClaim } from './quota.ts'
import { mapCapabilities, mapTexts, withoutModelIds } from './schema.ts'
import type { EvalCoverage, EvalSummary, RankedModel, StoredRun } from './schema.ts'
import { healthScoreOf, latencyScoreOf, scoreModel, scoreOf } from './score.ts'
import type { ModelScore } from './score.ts'

const TASKS_IN_SUITE = 3

export interface Candidate extends Measurements {
  model: CatalogueModel
}

export interface Ranked extends Pick<ModelScore, 'components'> {
  model: RankedModel
  /** The evaluation, when at least one prompt has a response. */
  evaluation: CountedEvaluation | null
  gone: boolean
}

type Contender = Pick<RankedModel, 'id' | 'score' | 'liteEvalScore' | 'metadataScore'>

/** The order of the ranking: score, lite evaluation, metadata, id in code-unit order. */
function compareContenders(a: Contender, b: Contender): number {
  return (
    b.score - a.score ||
    b.liteEvalScore - a.liteEvalScore ||
    b.metadataScore - a.metadataScore ||
    compareCodeUnits(a.id, b.id)
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
  const scored = candidates.map((candidate): Ranked => {
    const shown = countedEvaluation(candidate.evaluation, now)
    const evaluation = shown && hasResponse(shown) ? shown : null
    const { components, ...score } = scoreModel(candidate, evaluation, now)
    const previousRank = previousRanks.get(candidate.model.id) ?? null
    const model = rankedModel(candidate, score, summaryOf(shown), previousRank)
    return { model, evaluation, gone: candidate.gone, components }
  })
  scored.sort((a, b) => compareContenders(a.model, b.model))
  for (const [index, { model }] of scored.entries()) model.rank = index + 1
  return scored
}

/**
 * Models without a provider that would rank first: a recommendation must not begin with them. Others without a provider
 * stay in the ranking with their failure.
 *
 * @returns their ids; all of them when no candidate has a provider
 */
export function unservedLeaders(candidates: readonly Candidate[], now: Instant): ReadonlySet<string> {
  const ranked = rankCandidates(candidates, new Map(), now)
  const first = ranked.findIndex(({ gone }) => !gone)
  return new Set(ranked.slice(0, first < 0 ? ranked.length : first).map(({ model }) => model.id))
}

/**
 * The best score a model could reach today with perfect and fast responses, which raise health and latency too. Results
 * of today and penalties stay.
 *
 * @param evaluation null when both prompts would be sent
 */
function withPerfectResults({ model, evaluation }: Pick<Ranked, 'model' | 'evaluation'>): Contender {
  const ofToday = evaluation?.ageDays === 0 ? evaluation : null
  const parts = {
    ...model,
    healthScore: healthScoreOf('passed'),
    latencyScore: latencyScoreOf(0),
    liteEvalScore: ofToday ? ofToday.points + ofToday.openPoints : LITE_POINTS_MAX,
  }
  return { ...parts, score: scoreOf(parts) }
}

/**
 * The prompts that each candidate needs, and whether they could make it the primary. `forceEval` repeats the prompts of
 * today.
 */
export function claimsOf(
  candidates: readonly (Candidate & ModelHistory)[],
  mode: StoredRun['refreshMode'],
  now: Instant,
): QuotaClaim[] {
  const isForced = mode === 'forceEval'
  const ranked = rankCandidates(candidates, new Map(), now)
  const leader = ranked.find(({ gone }) => !gone)?.model
  const canWin = new Set(
    ranked.flatMap(({ model, evaluation }) => {
      const best = withPerfectResults({ model, evaluation: isForced ? null : evaluation })
      return leader && compareContenders(best, leader) <= 0 ? [model.id] : []
    }),
  )
  return candidates.map(({ model: { id }, tasksToday, sentToday, lastEvaluatedAt }) => ({
    model: id,
    openKinds: (['tool', 'text'] as const).filter((kind) => isForced || tasksToday[kind] === undefined),
    left: requestsLeftOfModel(mode, sentToday),
    canWin: canWin.has(id),
    lastEvaluatedAt,
  }))
}

/** The published form of a candidate; its rank is set after scoring. */
function rankedModel(
  { model, health, toolUse }: Candidate,
  { score, instabilityPenalty, ...parts }: Omit<ModelScore, 'components'>,
  evalSummary: EvalSummary,
  previousRank: number | null,
): RankedModel {
  return {
    rank: 0,
    id: model.id,
    name: model.name,
    score,
    ...parts,
    // `rejectionOf` rejects models without one.
    contextLength: model.contextLength ?? 0,
    maxCompletionTokens: model.maxCompletionTokens,
    ...mapCapabilities(({ parameter }) => model.supportedParameters.includes(parameter)),
    latencyMs: health.latencyMs,
    healthStatus: health.status,
    evalSuite: LITE_SUITE,
    evalSummary,
    reason: reasonFor(model, evalSummary),
    instabilityPenalty,
    previousRank,
    toolUse,
    rateLimitKind: health.rateLimitKind,
    checkedAt: health.checkedAt === null ? null : formatInstant(health.checkedAt),
  }
}

function summaryOf(evaluation: CountedEvaluation | null): EvalSummary {
  // Details contain text of models and services.
  const tasks = (evaluation?.tasks ?? []).map((task) => ({
    ...task,
    details: mapTexts(task.details, withoutModelIds) as Record<string, unknown>,
  }))
  const passed = tasks.filter((task) => task.status === 'passed').length
  const total = tasks.length || TASKS_IN_SUITE
  if (evaluation === null || !hasResponse(evaluation))
    return { suite: LITE_SUITE, status: 'not_evaluated', passed, total, updatedAt: null, tasks }
  const { status, ageDays, multiplier } = evaluation
  const updatedAt = formatInstant(evaluation.updatedAt)
  const summary = { suite: LITE_SUITE, status, passed, total, updatedAt, tasks } as const
  if (status === 'completed') return summary
  return { ...summary, cachedFromUpdatedAt: updatedAt, cacheAgeDays: ageDays, cacheMultiplier: multiplier }
}

/** Up to three capabilities, and the number of passed tasks. */
function reasonFor(model: CatalogueModel, { passed, total }: EvalSummary): string {
  const capabilities = { tools: 'tools', structured_outputs: 'structured outputs', reasoning: 'reasoning' }
  const phrases = Object.entries(capabilities).flatMap(([parameter, phrase]) =>
    model.supportedParameters.includes(parameter) ? [phrase] : [],
  )
  const text = [...phrases, `${shortTokens(model.contextLength ?? 0)} context`].slice(0, 3).join(', ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}; lite eval ${passed}/${total}`
}

/** A number of tokens in short: `262k`, `1.5M`. */
export function shortTokens(tokens: number): string {
  return tokens < 1_000_000 ? `${Math.floor(tokens / 1_000)}k` : `${Math.floor(tokens / 100_000) / 10}M`
}

/** Most models in the list of one request, which the routing service tries in order. */
const LISTED_MODELS_MAX = 3

/**
 * The models for the list of one request, best first: the service bills the one that responds, so that no id but a free
 * one is ever listed.
 *
 * @param fitting the ranked models that meet the needs of the request, best first
 */
export function listedModels(fitting: readonly RankedModel[]): RankedModel[] {
  return fitting.filter(({ id }) => id.endsWith(FREE_SUFFIX)).slice(0, LISTED_MODELS_MAX)
}

/** The recommended models for the chat, best first: those that can call tools, as far as known. */
export function chatModels({ models }: StoredRun): RankedModel[] {
  return listedModels(models.filter(({ supportsTools, toolUse }) => supportsTools && toolUse !== 'disproven'))
}

/** The first eight models, of which four in five must have a fresh score. */
const TOP = 8
const FRESH_MS = DAY_MS

/**
 * The share of a ranking that rests on evaluations (docs/free-models.md): those whose published summary is not
 * `not_evaluated`.
 *
 * @param ranked in rank order
 * @param attemptedToday evaluations started on this UTC day
 */
export function coverageOf(ranked: readonly Ranked[], attemptedToday: number, now: Instant): EvalCoverage {
  const [primary] = ranked
  const evaluations = ranked.flatMap(({ evaluation }) => evaluation ?? [])
  const possible = ranked
    .filter(({ evaluation, gone }) => evaluation === null && !gone)
    .map(({ model }) => withPerfectResults({ model, evaluation: null }))
    .sort(compareContenders)
  const threats = possible.filter(
    (one) => primary && one.id !== primary.model.id && compareContenders(one, primary.model) < 0,
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
 * Confidence of a ranking with a reason of one sentence: `high` when no unevaluated model can overtake the primary and
 * four in five of the first eight have an evaluation of the last 24 hours; `medium` when none can overtake and the
 * primary has a score; else `low`.
 */
export function confidenceOf(
  ranked: readonly Ranked[],
  { unevaluatedThreatCount: threats }: EvalCoverage,
  now: Instant,
): Pick<StoredRun, 'rankingConfidence' | 'rankingConfidenceReason'> {
  const confidence = (level: StoredRun['rankingConfidence'], reason: string) => ({
    rankingConfidence: level,
    rankingConfidenceReason: reason,
  })
  if (threats > 0) {
    const many = threats === 1 ? 'One model' : `${threats} models`
    return confidence('low', `${many} without a valid test could take the first place by solving every task.`)
  }
  if (!ranked[0]?.evaluation) return confidence('low', 'The first model itself has no valid test.')
  const top = ranked.slice(0, TOP)
  const fresh = top.filter(({ evaluation }) => evaluation && now - evaluation.updatedAt <= FRESH_MS)
  const none = 'No model without a valid test could take the first place by solving every task'
  const share = `${fresh.length} of the top ${top.length} had a test less than 24 hours old`
  return fresh.length * 5 >= top.length * 4
    ? confidence('high', `${none}; ${share}.`)
    : confidence('medium', `${none}, but only ${share}.`)
}
