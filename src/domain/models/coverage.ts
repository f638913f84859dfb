import { DAY_MS, dayOf } from '../time.ts'
import type { Instant } from '../time.ts'
import { isComplete } from './evaluation.ts'
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
 * How much of a ranking rests on evaluations (docs/free-models.md). An evaluation in which a question got no answer is
 * none yet: what its open tasks could bring is counted as what an unevaluated model could reach.
 *
 * @param ranked in rank order
 * @param attemptedToday evaluations begun this UTC day
 */
export function coverageOf(ranked: readonly Ranked[], attemptedToday: number, now: Instant): EvalCoverage {
  const [primary] = ranked
  const evaluations = ranked.flatMap((each) => (isEvaluated(each) ? each.evaluation : []))
  const possible = ranked
    .filter((each) => !isEvaluated(each) && !each.gone)
    .map(withPerfectAnswers)
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

type Evaluated = Ranked & { evaluation: NonNullable<Ranked['evaluation']> }

function isEvaluated(ranked: Ranked): ranked is Evaluated {
  return ranked.evaluation !== null && isComplete(ranked.evaluation)
}

/**
 * `high` when no unevaluated model can overtake the primary, the primary's evaluation is complete, and four of five of
 * the first eight have a complete one of the last 24 hours; `medium` when none can overtake and the primary has a score;
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
  const fresh = top.filter((each) => isEvaluated(each) && now - each.evaluation.updatedAt <= FRESH_MS)
  const none = 'No unevaluated candidate can overtake the primary even with a perfect lite eval score'
  const share = `${fresh.length} of the top ${top.length} have a score of the last 24 hours`
  if (ranked[0] && !isEvaluated(ranked[0])) {
    return {
      level: 'medium',
      reason: `${none}, but a question to the primary itself got no answer; ${share}.`,
    }
  }
  return fresh.length * 5 >= top.length * 4
    ? { level: 'high', reason: `${none}; ${share}.` }
    : { level: 'medium', reason: `${none}, but only ${share}.` }
}
