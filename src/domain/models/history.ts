import { CLOCK_TOLERANCE_MS } from '../clock-check.ts'
import { compareCodeUnits } from '../text.ts'
import { DAY_MS, dayOf, addDays } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import { RESPONSE_CLASSES, hasResponse, isComplete, rateLimitKind, toolUseOf } from './evaluation.ts'
import type { ResponseClass, AttemptEnd, EndpointRecord, LiteEvaluation, ModelAttempt } from './evaluation.ts'
import { unansweredTasks } from './lite/suite.ts'
import type { LiteKind, TaskResult } from './lite/suite.ts'
import type { HealthStatus, RankedModel, StoredRun } from './schema.ts'

/** Period in which failures count against a model's stability. */
export const FAILURES_MS = 3 * DAY_MS

/** Days before today whose evaluations may still count. */
export const EARLIER_DAYS = 3

/** Period in which a probe's health is valid. */
const HEALTH_MS = DAY_MS

export interface EvaluationRows {
  /** Attempts of the days whose evaluations may still count, ascending. */
  attempts: readonly ModelAttempt[]
  endpoints: readonly EndpointRecord[]
}

export interface Measurements {
  health: {
    status: HealthStatus
    latencyMs: number | null
    rateLimitKind: RankedModel['rateLimitKind']
    checkedAt: Instant | null
  }
  /** The evaluation that counts: see {@link historyOf}. It may be too old to score. */
  evaluation: LiteEvaluation | null
  /** Tool use in the last response to the tool prompt, independent of `evaluation`. */
  toolUse: RankedModel['toolUse']
  /** True when the last response said that no provider serves the model: it cannot be the primary. */
  gone: boolean
  /** Failed attempts caused by the model (its 429, timeout, 5xx, error inside a 200) in the last 72 hours. */
  failuresIn72h: number
}

export interface ModelHistory extends Measurements {
  /** Requests recorded since midnight UTC, with any result. */
  sentToday: number
  /** Graded tasks of today by prompt, from the last response to each. */
  tasksToday: Partial<Record<LiteKind, readonly TaskResult[]>>
  lastEvaluatedAt: Instant | null
  /** True if the status comes from a test, and not from data of endpoints. */
  tested: boolean
}

export const NOT_PROBED: Measurements['health'] = {
  status: 'not_probed',
  latencyMs: null,
  rateLimitKind: 'none',
  checkedAt: null,
}

/**
 * The history of a model. The newest complete evaluation counts; an incomplete one only when there is no other. A model
 * without a provider has none. Rows of later days, which a clock that was ahead recorded, do not count.
 */
export function historyOf(
  model: string,
  { attempts, endpoints }: EvaluationRows,
  now: Instant,
): ModelHistory {
  const day = dayOf(now)
  const ofModel = attempts.filter((attempt) => attempt.model === model && attempt.day <= day)
  const settled = ofModel.filter(isSettled)
  const answers = settled.filter(isAnswered)
  const byDay = evaluationsByDay(settled)
  const evaluations = [...byDay.values()]
  const today = byDay.get(day)
  const { health, gone } = probedHealth(settled, now)
  const endpoint = endpoints.find((each) => each.model === model)
  const current = withEndpoints(health, endpoint, now)
  const last = evaluations.findLast(isComplete) ?? evaluations.findLast(hasResponse) ?? evaluations.at(-1)
  const failure = today && !hasResponse(today) ? today : null
  const failures = settled.filter(({ sentAt, end }) => {
    return now - sentAt <= FAILURES_MS && RESPONSE_CLASSES[end.class].countsAgainstModel
  })
  return {
    sentToday: ofModel.filter((attempt) => attempt.day === day).length,
    tasksToday: Object.fromEntries(
      answers.filter((each) => each.day === day).map(({ kind, end }) => [kind, end.tasks]),
    ),
    health: current,
    toolUse: gone ? 'unknown' : newestToolUse(evaluations, answers),
    gone,
    failuresIn72h: failures.length,
    evaluation: gone ? failure : (last ?? null),
    lastEvaluatedAt: evaluations.at(-1)?.updatedAt ?? null,
    tested: health.status !== 'not_probed' && current.status === health.status,
  }
}

type SettledAttempt = ModelAttempt & { end: AttemptEnd & { class: ResponseClass } }

function isSettled(attempt: ModelAttempt): attempt is SettledAttempt {
  return attempt.end !== null && attempt.end.class !== 'abandoned'
}

function isAnswered({ end }: SettledAttempt): boolean {
  return end.class === 'answered'
}

/**
 * A response of today counts before a complete evaluation, and a forced evaluation before the one it did not replace.
 */
function newestToolUse(
  evaluations: readonly LiteEvaluation[],
  answers: readonly SettledAttempt[],
): RankedModel['toolUse'] {
  const responses = answers.map(({ end }) => ({ updatedAt: end.settledAt, tasks: end.tasks ?? [] }))
  const uses = [...evaluations, ...responses].map(toolUseOf)
  return uses.findLast((use) => use !== 'unknown') ?? 'unknown'
}

/**
 * Health by the last probe of each prompt: `passed` when all responses had the requested form, `imperfect` when one did
 * not, and the failure when there was no response or the last probe found no provider. Failures of the account are
 * ignored.
 */
function probedHealth(
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
  const probed = gone ? [last] : both
  const answered = probed.filter(isAnswered)
  const passed = probed.every((each) => isAnswered(each) && each.end.asAsked === true)
  const health = {
    status: answered.length === 0 ? healthOfFailure(last.end) : passed ? 'passed' : 'imperfect',
    latencyMs: answered[0]?.end.latencyMs ?? null,
    rateLimitKind: limit,
    checkedAt: Math.max(...probed.map(({ end }) => end.settledAt)),
  } as const
  return { health, gone }
}

function healthOfFailure({ class: kind, status }: AttemptEnd): HealthStatus {
  if (kind === 'timeout') return 'timeout'
  return status !== null && status >= 400 ? `http_${status}` : 'failed'
}

/**
 * Health with endpoint data that is newer than the last probe: `failed` without a usable endpoint; else the probe's
 * status, or `imperfect` without a probe. Data of a clock that was ahead do not count.
 */
function withEndpoints(
  probed: Measurements['health'],
  endpoints: EndpointRecord | undefined,
  now: Instant,
): Measurements['health'] {
  if (!endpoints) return probed
  const { checkedAt, usable, latencyMs } = endpoints
  if (now - checkedAt > HEALTH_MS || checkedAt - now > CLOCK_TOLERANCE_MS) return probed
  if (probed.checkedAt !== null && probed.checkedAt > checkedAt) return probed
  const probedStatus = probed.status === 'not_probed' ? 'imperfect' : probed.status
  return { ...probed, status: usable ? probedStatus : 'failed', latencyMs, checkedAt }
}

/**
 * A model's evaluation of each day, ascending: the last response to each prompt, else its last failure. A day has none
 * while a prompt was not sent, or the account's limits blocked it: the next run sends it
 * (docs/decisions/0026-evaluation-quota-and-pacing.md).
 *
 * @param settled attempts of one model, ascending
 */
function evaluationsByDay(settled: readonly SettledAttempt[]): Map<Day, LiteEvaluation> {
  const days = [...new Set(settled.map(({ day }) => day))].toSorted(compareCodeUnits)
  const evaluations = days.map((day) => {
    const evaluation = evaluationOfDay(settled.filter((attempt) => attempt.day === day))
    return [day, evaluation] as const
  })
  return new Map(evaluations.flatMap(([day, evaluation]) => (evaluation ? [[day, evaluation]] : [])))
}

/** @returns null while a prompt has neither a response nor a failure of the model */
function evaluationOfDay(attempts: readonly SettledAttempt[]): LiteEvaluation | null {
  const tasks: TaskResult[] = []
  const settledAt: Instant[] = []
  for (const kind of ['tool', 'text'] as const) {
    // Without a provider the other prompt is not sent: it would fail the same way.
    const own = attempts.filter((each) => each.kind === kind || each.end.class === 'model_gone')
    const counted = own.findLast(isAnswered) ?? own.at(-1)
    if (!counted?.end.tasks) return null
    const { settledAt: at, tasks: recorded } = counted.end
    const isOther = counted.kind !== kind
    tasks.push(...(isOther ? unansweredTasks(kind, counted.day, recorded[0]?.details ?? {}) : recorded))
    settledAt.push(at)
  }
  return { updatedAt: Math.max(...settledAt), tasks }
}

const RECORD_DAYS = 14

/** The last test of a model on a day. */
interface TestedDay {
  day: Day
  answered: boolean
  /** Null if the model did not answer. */
  latencyMs: number | null
}

/** The tests of a model on consecutive days, ascending; null for a day without a test. */
export type TrackRecord = readonly (TestedDay | null)[]

/** The part of a stored run that a track record needs. */
interface MeasuredRun extends Pick<StoredRun, 'updatedAt' | 'probeMode' | 'untested'> {
  models: readonly Pick<RankedModel, 'id' | 'healthStatus' | 'latencyMs' | 'checkedAt'>[]
}

/**
 * The track record of each model in stored runs. A test counts on the day on which it was made, which may be before the
 * day of its run. Data of endpoints are no test, also where a later run repeats them.
 *
 * @param runs ascending
 * @param lastDay last of the {@link RECORD_DAYS} days
 */
export function trackRecords(runs: readonly MeasuredRun[], lastDay: Day): (id: string) => TrackRecord {
  const tests = new Map<string, Map<Day, TestedDay>>()
  let knownUntil = -Infinity
  for (const { updatedAt, probeMode, untested = [], models } of runs) {
    for (const { id, healthStatus, latencyMs, checkedAt } of probeMode === 'passive' ? [] : models) {
      const testedAt = Date.parse(checkedAt ?? '')
      // Older ones are tests of earlier runs, or data of endpoints.
      const isNew = testedAt > knownUntil
      if (!isNew || healthStatus === 'not_probed' || untested.includes(id)) continue
      const answered = healthStatus === 'passed' || healthStatus === 'imperfect'
      const day = dayOf(testedAt)
      const ofModel = tests.get(id) ?? new Map<Day, TestedDay>()
      tests.set(id, ofModel.set(day, { day, answered, latencyMs: answered ? latencyMs : null }))
    }
    knownUntil = Date.parse(updatedAt)
  }
  const days = Array.from({ length: RECORD_DAYS }, (_, index) => addDays(lastDay, index + 1 - RECORD_DAYS))
  return (id) => days.map((day) => tests.get(id)?.get(day) ?? null)
}

/** The numbers of a track record; response times are null if no answer has one. */
export interface RecordSummary {
  tested: number
  answered: number
  fastestMs: number | null
  slowestMs: number | null
  failedDays: readonly Day[]
}

export function summaryOfRecord(record: TrackRecord): RecordSummary {
  const tested = record.filter((each) => each !== null)
  const times = tested.flatMap(({ latencyMs }) => latencyMs ?? [])
  const failed = tested.filter(({ answered }) => !answered)
  return {
    tested: tested.length,
    answered: tested.length - failed.length,
    fastestMs: times.length > 0 ? Math.min(...times) : null,
    slowestMs: times.length > 0 ? Math.max(...times) : null,
    failedDays: failed.map(({ day }) => day),
  }
}
