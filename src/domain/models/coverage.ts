import { DAY_MS, dayOf } from '../time.ts'
import type { Instant } from '../time.ts'
import { compareContenders, withPerfectAnswers } from './ranking.ts'
import type { Ranked } from './ranking.ts'
import type { EvalCoverage } from './schema.ts'

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
