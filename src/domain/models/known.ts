import { DAY_MS, dayOf } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import { ANSWER_CLASSES, healthOfFailure, rateLimitKind } from './answer-class.ts'
import type { AnswerClass } from './answer-class.ts'
import type { LiteEvaluation } from './evaluation.ts'
import type { AttemptEnd, DayScore, ModelAttempt } from './evaluation-ledger.ts'
import type { LiteQuestion } from './lite/suite.ts'
import type { Candidate } from './ranking.ts'

/** Failures count against a model's stability for this long. */
export const FAILURES_MS = 3 * DAY_MS

/** How long what a probe said of a model's health stands. */
const HEALTH_MS = DAY_MS

type Settled = ModelAttempt & { end: AttemptEnd & { class: AnswerClass } }

/** What the ledger knows of one model. */
export interface KnownModel {
  /** Requests written down since midnight UTC. */
  sentToday: number
  /** Today's answered questions, the last answer of each. */
  answers: Partial<Record<LiteQuestion['kind'], Settled>>
  health: Candidate['health']
  failuresIn72h: number
  /** Its evaluation of today; null when there is none. */
  today: LiteEvaluation | null
  /** The evaluation that counts for it: see {@link knownModel}. */
  evaluation: LiteEvaluation | null
  lastEvaluatedAt: Instant | null
}

/**
 * What attempts and scores tell of a model. The newest evaluation with answers to both questions counts; one that lacks
 * an answer only when there is no other.
 *
 * @param attempts of the last {@link FAILURES_MS}, ascending
 * @param scores of the days that may still count, ascending by day
 */
export function knownModel(
  model: string,
  attempts: readonly ModelAttempt[],
  scores: readonly DayScore[],
  now: Instant,
): KnownModel {
  const day = dayOf(now)
  const own = attempts.filter((attempt) => attempt.model === model)
  const settled = own.filter(isSettled)
  const evaluations = scores.filter((score) => score.model === model)
  const last = evaluations.findLast(({ complete }) => complete) ?? evaluations.at(-1) ?? null
  return {
    sentToday: own.filter((attempt) => attempt.day === day).length,
    answers: answersOf(settled, day),
    health: healthOf(settled, now),
    failuresIn72h: settled.filter(
      ({ sentAt, end }) => now - sentAt <= FAILURES_MS && ANSWER_CLASSES[end.class].ownFailure,
    ).length,
    today: toEvaluation(evaluations.find((score) => score.day === day)),
    evaluation: toEvaluation(last ?? undefined),
    lastEvaluatedAt: evaluations.at(-1)?.evaluatedAt ?? null,
  }
}

function isSettled(attempt: ModelAttempt): attempt is Settled {
  return attempt.end !== null && attempt.end.class !== 'abandoned'
}

function toEvaluation(score: DayScore | undefined): LiteEvaluation | null {
  return score ? { updatedAt: score.evaluatedAt, tasks: score.tasks } : null
}

function answersOf(settled: readonly Settled[], day: Day): KnownModel['answers'] {
  const answered = settled.filter((attempt) => attempt.day === day && attempt.end.tasks !== null)
  return Object.fromEntries(answered.map((attempt) => [attempt.kind, attempt]))
}

/**
 * Health by the last probe of each question: `passed` when all were answered as asked, `imperfect` when one was not, and
 * the failure when none was answered. What was the account's says nothing of the model.
 */
function healthOf(settled: readonly Settled[], now: Instant): Candidate['health'] {
  const recent = settled.filter(({ end }) => now - end.settledAt <= HEALTH_MS)
  const probes = recent.filter(({ end }) => ANSWER_CLASSES[end.class].scope !== 'account')
  const limit = rateLimitKind(recent.at(-1)?.end.class ?? 'answered')
  const last = probes.at(-1)
  if (!last) return { status: 'not_probed', latencyMs: null, rateLimitKind: limit, checkedAt: null }
  const text = probes.findLast(({ kind }) => kind === 'text')
  const tool = probes.findLast(({ kind }) => kind === 'tool')
  const asked = [text, tool].filter((probe) => probe !== undefined)
  const answered = asked.filter(({ end }) => end.class === 'answered')
  const passed = asked.every(({ end }) => end.class === 'answered' && end.asAsked === true)
  return {
    status: answered.length === 0 ? healthOfFailure(last.end) : passed ? 'passed' : 'imperfect',
    latencyMs: answered[0]?.end.latencyMs ?? null,
    rateLimitKind: limit,
    checkedAt: Math.max(...asked.map(({ end }) => end.settledAt)),
  }
}
