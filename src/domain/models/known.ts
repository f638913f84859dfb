import { compareCodeUnits } from '../order.ts'
import { DAY_MS, dayOf } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import {
  ANSWER_CLASSES,
  hasAnswer,
  healthOfFailure,
  isComplete,
  rateLimitKind,
  rememberedDetails,
  toolUseOf,
} from './evaluation.ts'
import type {
  AnswerClass,
  AttemptEnd,
  DayScore,
  EndpointRecord,
  LiteEvaluation,
  ModelAttempt,
  ToolUse,
} from './evaluation.ts'
import { tasksOfKind, unansweredTasks } from './lite/grade.ts'
import type { LiteKind, LiteQuestion, TaskResult } from './lite/suite.ts'
import type { Candidate } from './ranking.ts'

/** Failures count against a model's stability for this long. */
export const FAILURES_MS = 3 * DAY_MS

/** How long what a probe said of a model's health stands. */
const HEALTH_MS = DAY_MS

/** What the ledger holds of every model. */
export interface LedgerRows {
  /** Of the last {@link FAILURES_MS}, ascending. */
  attempts: readonly ModelAttempt[]
  /** Of the days that may still count, ascending by day. */
  scores: readonly DayScore[]
  /** What the service last said of each model's endpoints. */
  endpoints: readonly EndpointRecord[]
}

/** What the ledger knows of one model. */
export interface KnownModel {
  /** Requests written down since midnight UTC, whatever came of them. */
  sentToday: number
  /** Today's answered questions, the last answer of each. */
  answers: Partial<Record<LiteQuestion['kind'], SettledAttempt>>
  health: Candidate['health']
  /** By the last answer to the tool question, whichever evaluation counts. */
  toolUse: ToolUse
  /** True when the last thing it was asked told that nobody serves it. */
  gone: boolean
  failuresIn72h: number
  /** The evaluation that counts for it: see {@link knownModel}. */
  evaluation: LiteEvaluation | null
  lastEvaluatedAt: Instant | null
}

/**
 * What attempts and scores tell of a model. The newest evaluation with answers to both questions counts; one that lacks
 * an answer only when there is no other. Of a model that nobody serves none counts.
 */
export function knownModel(
  model: string,
  { attempts, scores, endpoints }: LedgerRows,
  now: Instant,
): KnownModel {
  const day = dayOf(now)
  const own = attempts.filter((attempt) => attempt.model === model)
  const settled = own.filter(isSettled)
  const days = evaluationsByDay(
    scores.filter((score) => score.model === model),
    settled,
  )
  const evaluations = days.map(({ evaluation }) => evaluation)
  const today = days.find((each) => each.day === day)?.evaluation ?? null
  const last =
    evaluations.findLast(isComplete) ?? evaluations.findLast(hasAnswer) ?? evaluations.at(-1) ?? null
  const probed = healthByProbes(settled, now)
  const { gone } = probed
  const failure = today && !hasAnswer(today) ? today : null
  return {
    sentToday: own.filter((attempt) => attempt.day === day).length,
    answers: answersOf(settled, day),
    health: withEndpoints(
      probed.health,
      endpoints.find((each) => each.model === model),
      now,
    ),
    toolUse: gone ? 'unknown' : newestToolUse(settled, evaluations),
    gone,
    failuresIn72h: settled.filter(
      ({ sentAt, end }) => now - sentAt <= FAILURES_MS && ANSWER_CLASSES[end.class].ownFailure,
    ).length,
    evaluation: gone ? failure : last,
    lastEvaluatedAt: evaluations.at(-1)?.updatedAt ?? null,
  }
}

function answersOf(settled: readonly SettledAttempt[], day: Day): KnownModel['answers'] {
  const answered = settled.filter((attempt) => attempt.day === day && attempt.end.tasks !== null)
  return Object.fromEntries(answered.map((attempt) => [attempt.kind, attempt]))
}

/** An answer of today counts before an evaluation that is complete, and a forced one before the one it did not replace. */
function newestToolUse(settled: readonly SettledAttempt[], evaluations: readonly LiteEvaluation[]): ToolUse {
  const answers = settled.flatMap(({ end: { settledAt, tasks } }) =>
    tasks === null ? [] : [{ updatedAt: settledAt, tasks }],
  )
  const told = [...evaluations, ...answers].map(toolUseOf)
  return told.findLast((use) => use !== 'unknown') ?? 'unknown'
}

/**
 * Health by the last probe of each question: `passed` when all were answered as asked, `imperfect` when one was not, and
 * the failure when none was answered, or when the last probe told that nobody serves the model. What was the account's
 * says nothing of the model.
 */
function healthByProbes(
  settled: readonly SettledAttempt[],
  now: Instant,
): { health: Candidate['health']; gone: boolean } {
  const recent = settled.filter(({ end }) => now - end.settledAt <= HEALTH_MS)
  const probes = recent.filter(({ end }) => ANSWER_CLASSES[end.class].scope !== 'account')
  const limit = rateLimitKind(recent.at(-1)?.end.class ?? 'answered')
  const last = probes.at(-1)
  if (!last) {
    const health = { status: 'not_probed', latencyMs: null, rateLimitKind: limit, checkedAt: null } as const
    return { health, gone: false }
  }
  const gone = last.end.class === 'model_gone'
  const text = probes.findLast(({ kind }) => kind === 'text')
  const tool = probes.findLast(({ kind }) => kind === 'tool')
  const asked = gone ? [last] : [text, tool].filter((probe) => probe !== undefined)
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

/**
 * Health after the service was asked for a model's endpoints since its last probe: without a usable one `failed`; else
 * what the probe said stands, and without one `imperfect`.
 */
function withEndpoints(
  probed: Candidate['health'],
  endpoints: EndpointRecord | undefined,
  now: Instant,
): Candidate['health'] {
  if (!endpoints || now - endpoints.checkedAt > HEALTH_MS) return probed
  const { checkedAt, usable, latencyMs } = endpoints
  if (probed.checkedAt !== null && probed.checkedAt > checkedAt) return probed
  const standing = probed.status === 'not_probed' ? 'imperfect' : probed.status
  return { ...probed, status: usable ? standing : 'failed', latencyMs, checkedAt }
}

/** An attempt that came to its end. */
type SettledAttempt = ModelAttempt & { end: AttemptEnd & { class: AnswerClass } }

function isSettled(attempt: ModelAttempt): attempt is SettledAttempt {
  return attempt.end !== null && attempt.end.class !== 'abandoned'
}

const KINDS: readonly LiteKind[] = ['tool', 'text']

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
): { day: Day; evaluation: LiteEvaluation }[] {
  const answered = settled.filter(({ end }) => end.tasks !== null)
  const days = new Set([...scores, ...answered].map(({ day }) => day))
  return [...days].toSorted(compareCodeUnits).flatMap((day) => {
    const kept = scores.find((score) => score.day === day)
    const ofDay = settled.filter((attempt) => attempt.day === day)
    const evaluation = kept?.complete
      ? { updatedAt: kept.evaluatedAt, tasks: kept.tasks }
      : measured(day, kept, ofDay)
    return evaluation === null ? [] : [{ day, evaluation }]
  })
}

/** @returns null while a question has neither an answer nor a failure of the model */
function measured(
  day: Day,
  kept: DayScore | undefined,
  attempts: readonly SettledAttempt[],
): LiteEvaluation | null {
  const ends = attempts.filter(({ end }) => end.tasks !== null).map(({ end }) => end.settledAt)
  const tasks = KINDS.map((kind): readonly TaskResult[] | null => {
    const own = attempts.filter((attempt) => attempt.kind === kind)
    const answer = own.findLast(({ end }) => end.tasks !== null)?.end.tasks
    if (answer) return answer
    const before = tasksOfKind(kind, kept?.tasks ?? [])
    if (before.length > 0) return before
    const end = own.at(-1)?.end
    if (end === undefined || ANSWER_CLASSES[end.class].scope === 'account') return null
    return unansweredTasks(kind, day, rememberedDetails(end))
  })
  if (!tasks.every((each) => each !== null)) return null
  return { updatedAt: Math.max(...ends, ...(kept ? [kept.evaluatedAt] : [])), tasks: tasks.flat() }
}
