import { compareCodeUnits } from '../text.ts'
import { DAY_MS, dayOf } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import {
  RESPONSE_CLASSES,
  failureDetails,
  hasAnswer,
  isComplete,
  rateLimitKind,
  toolUseOf,
} from './evaluation.ts'
import type {
  ResponseClass,
  AttemptEnd,
  DayScore,
  EndpointRecord,
  LiteEvaluation,
  ModelAttempt,
} from './evaluation.ts'
import { tasksOfKind, unansweredTasks } from './lite/suite.ts'
import type { LiteKind, TaskResult } from './lite/suite.ts'
import type { HealthStatus, RankedModel } from './schema.ts'

/** Failures count against a model's stability for this long. */
export const FAILURES_MS = 3 * DAY_MS

/** The health of a probe stands for this long. */
const HEALTH_MS = DAY_MS

/** The stored rows of every model. */
export interface EvaluationRows {
  /** Of the last {@link FAILURES_MS}, ascending. */
  attempts: readonly ModelAttempt[]
  /** Of the days that may still count, ascending by day. */
  scores: readonly DayScore[]
  endpoints: readonly EndpointRecord[]
}

/** Everything measured by which a model is ranked. */
export interface Measurements {
  health: {
    status: HealthStatus
    latencyMs: number | null
    rateLimitKind: RankedModel['rateLimitKind']
    /** When status and latency were measured; null when they were not. */
    checkedAt: Instant | null
  }
  /** The evaluation that counts: see {@link historyOf}. One that is too old does not. */
  evaluation: LiteEvaluation | null
  /** By the last answer to the tool question, whichever evaluation counts. */
  toolUse: RankedModel['toolUse']
  /** True when the last response said that no provider serves it: it cannot be the primary. */
  gone: boolean
  /** Failed attempts of the model's own (its 429, timeout, 5xx, error inside a 200) in the last 72 hours. */
  failuresIn72h: number
}

/** All that the stored rows tell of one model. */
export interface ModelHistory extends Measurements {
  /** Requests recorded since midnight UTC, whatever came of them. */
  sentToday: number
  /** Tasks of today's answered questions, by the last answer of each. */
  answers: Partial<Record<LiteKind, readonly TaskResult[]>>
  lastEvaluatedAt: Instant | null
}

export const NOT_PROBED: Measurements['health'] = {
  status: 'not_probed',
  latencyMs: null,
  rateLimitKind: 'none',
  checkedAt: null,
}

/**
 * The history of a model. The newest evaluation with answers to both questions counts; one that lacks an answer only when
 * there is no other. Of a model without a provider none counts.
 */
export function historyOf(
  model: string,
  { attempts, scores, endpoints }: EvaluationRows,
  now: Instant,
): ModelHistory {
  const day = dayOf(now)
  const own = attempts.filter((attempt) => attempt.model === model)
  const settled = own.filter(isSettled)
  const answered = settled.filter(({ end }) => end.tasks !== null)
  const ofDays = scores.filter((score) => score.model === model)
  const byDay = evaluationsByDay(ofDays, settled)
  const evaluations = [...byDay.values()]
  const today = byDay.get(day)
  const { health, gone } = healthByProbes(settled, now)
  const said = endpoints.find((each) => each.model === model)
  const last = evaluations.findLast(isComplete) ?? evaluations.findLast(hasAnswer) ?? evaluations.at(-1)
  const failure = today && !hasAnswer(today) ? today : null
  const failures = settled.filter(({ sentAt, end }) => {
    return now - sentAt <= FAILURES_MS && RESPONSE_CLASSES[end.class].ownFailure
  })
  return {
    sentToday: own.filter((attempt) => attempt.day === day).length,
    answers: Object.fromEntries(
      answered.filter((each) => each.day === day).map(({ kind, end }) => [kind, end.tasks]),
    ),
    health: withEndpoints(health, said, now),
    toolUse: gone ? 'unknown' : newestToolUse(evaluations, answered),
    gone,
    failuresIn72h: failures.length,
    evaluation: gone ? failure : (last ?? null),
    lastEvaluatedAt: evaluations.at(-1)?.updatedAt ?? null,
  }
}

type SettledAttempt = ModelAttempt & { end: AttemptEnd & { class: ResponseClass } }

function isSettled(attempt: ModelAttempt): attempt is SettledAttempt {
  return attempt.end !== null && attempt.end.class !== 'abandoned'
}

/** An answer of today counts before an evaluation that is complete, and a forced one before the one it did not replace. */
function newestToolUse(
  evaluations: readonly LiteEvaluation[],
  answered: readonly SettledAttempt[],
): RankedModel['toolUse'] {
  const answers = answered.map(({ end }) => ({ updatedAt: end.settledAt, tasks: end.tasks ?? [] }))
  const uses = [...evaluations, ...answers].map(toolUseOf)
  return uses.findLast((use) => use !== 'unknown') ?? 'unknown'
}

/**
 * Health by the last probe of each question: `passed` when all were answered as asked, `imperfect` when one was not, and
 * the failure when none was answered, or when the last probe found no provider for the model. Failures of the account say
 * nothing of the model.
 */
function healthByProbes(
  settled: readonly SettledAttempt[],
  now: Instant,
): Pick<Measurements, 'health' | 'gone'> {
  const recent = settled.filter(({ end }) => now - end.settledAt <= HEALTH_MS)
  const probes = recent.filter(({ end }) => RESPONSE_CLASSES[end.class].scope !== 'account')
  const limit = rateLimitKind(recent.at(-1)?.end.class ?? 'answered')
  const last = probes.at(-1)
  if (!last) return { health: { ...NOT_PROBED, rateLimitKind: limit }, gone: false }
  const gone = last.end.class === 'model_gone'
  const both = (['text', 'tool'] as const).flatMap(
    (kind) => probes.findLast((each) => each.kind === kind) ?? [],
  )
  const asked = gone ? [last] : both
  const answered = asked.filter(({ end }) => end.class === 'answered')
  const passed = asked.every(({ end }) => end.class === 'answered' && end.asAsked === true)
  const health = {
    status: answered.length === 0 ? healthOfFailure(last.end) : passed ? 'passed' : 'imperfect',
    latencyMs: answered[0]?.end.latencyMs ?? null,
    rateLimitKind: limit,
    checkedAt: Math.max(...asked.map(({ end }) => end.settledAt)),
  } as const
  return { health, gone }
}

function healthOfFailure({ class: kind, status }: AttemptEnd): HealthStatus {
  if (kind === 'timeout') return 'timeout'
  return status !== null && status >= 400 ? `http_${status}` : 'failed'
}

/**
 * Health after the service was asked for a model's endpoints since its last probe: without a usable one `failed`; else
 * the status of the probe stands, and without one `imperfect`.
 */
function withEndpoints(
  probed: Measurements['health'],
  endpoints: EndpointRecord | undefined,
  now: Instant,
): Measurements['health'] {
  if (!endpoints || now - endpoints.checkedAt > HEALTH_MS) return probed
  const { checkedAt, usable, latencyMs } = endpoints
  if (probed.checkedAt !== null && probed.checkedAt > checkedAt) return probed
  const standing = probed.status === 'not_probed' ? 'imperfect' : probed.status
  return { ...probed, status: usable ? standing : 'failed', latencyMs, checkedAt }
}

/**
 * A model's evaluation of each day, ascending: the one that was kept when it is complete, else what its answers of that
 * day come to, so that nothing measured is lost with a run that ended before both questions did. A day has none while a
 * question was not asked, or the account's limits kept it from the model: the next run asks it (docs/decisions/0056).
 *
 * @param scores of one model
 * @param settled attempts of the same model, ascending
 */
function evaluationsByDay(
  scores: readonly DayScore[],
  settled: readonly SettledAttempt[],
): Map<Day, LiteEvaluation> {
  const answered = settled.filter(({ end }) => end.tasks !== null)
  const days = [...new Set([...scores, ...answered].map(({ day }) => day))].toSorted(compareCodeUnits)
  const evaluations = days.map((day) => {
    const kept = scores.find((score) => score.day === day)
    const ofDay = settled.filter((attempt) => attempt.day === day)
    if (!kept?.complete) return [day, measured(day, kept, ofDay)] as const
    return [day, { updatedAt: kept.evaluatedAt, tasks: kept.tasks }] as const
  })
  return new Map(evaluations.flatMap(([day, evaluation]) => (evaluation ? [[day, evaluation]] : [])))
}

/** @returns null while a question has neither an answer nor a failure of the model */
function measured(
  day: Day,
  kept: DayScore | undefined,
  attempts: readonly SettledAttempt[],
): LiteEvaluation | null {
  const tasks = (['tool', 'text'] as const).map((kind): readonly TaskResult[] => {
    const ends = attempts.filter((attempt) => attempt.kind === kind).map(({ end }) => end)
    const answer = ends.findLast((end) => end.tasks !== null)?.tasks ?? tasksOfKind(kind, kept?.tasks ?? [])
    const last = ends.at(-1)
    const failed = last && last.tasks === null && RESPONSE_CLASSES[last.class].scope !== 'account'
    return answer.length === 0 && failed ? unansweredTasks(kind, day, failureDetails(last)) : answer
  })
  if (tasks.some((each) => each.length === 0)) return null
  const ends = attempts.filter(({ end }) => end.tasks !== null).map(({ end }) => end.settledAt)
  return { updatedAt: Math.max(...ends, ...(kept ? [kept.evaluatedAt] : [])), tasks: tasks.flat() }
}
