import { DAY_MS, dayOf, formatInstant, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { LiteKind, LitePrompt, ModelResponse, TaskResult } from './lite/suite.ts'
import { publishedText } from './schema.ts'
import type { RankedModel, StoredRun } from './schema.ts'

/** Traits of a response class (docs/model-errors.md). */
interface ClassTraits {
  /** The side that caused the response. */
  scope: 'none' | 'account' | 'model' | 'unknown'
  /** True when one paced retry may succeed. */
  retries?: true
  countsAgainstModel?: true
  /** Owner of the rate limit that was met. */
  rateLimit?: 'account' | 'model'
  /** A temporary limit of the account, as the report of a stopped run names it. */
  limit?: string
  /** The setting of the account or of this program that fixes it, for the same report. */
  setting?: string
}

const MODEL_FAILURE = { scope: 'model', countsAgainstModel: true } as const
const temporaryLimit = (limit: string) => ({ scope: 'account', limit }) as const
const needsSetting = (setting: string) => ({ scope: 'account', setting }) as const

const DAY_LIMIT = 'the daily requests of the account are used up'
const MINUTE_LIMIT = 'the limit of requests per minute of the account did not reset while the run waited'

/** Every response class of the routing service: the complete list. */
const CLASSES = {
  answered: { scope: 'none' },
  account_daily: { ...temporaryLimit(DAY_LIMIT), rateLimit: 'account' },
  account_minute: { ...temporaryLimit(MINUTE_LIMIT), rateLimit: 'account', retries: true },
  account_busy: { ...temporaryLimit(MINUTE_LIMIT), retries: true },
  account_key: needsSetting('the service rejects the key; correct OPENROUTER_API_KEY'),
  account_key_limit: needsSetting('the limit of the key is used up; raise it where the key was created'),
  account_balance: needsSetting(
    'the balance of the account is negative, which blocks free models too; add credits',
  ),
  account_policy: needsSetting(
    'the data policy of the account forbids free models; allow them at https://openrouter.ai/settings/privacy',
  ),
  /** Set when models of two vendors got the same ambiguous response. */
  service_down: { scope: 'account' },
  model_rate_limit: { ...MODEL_FAILURE, rateLimit: 'model', retries: true },
  provider_down: { ...MODEL_FAILURE, retries: true },
  timeout: MODEL_FAILURE,
  invalid_answer: { ...MODEL_FAILURE, retries: true },
  /** Set when a response reached its token limit before it answered the prompt. */
  cut_answer: { scope: 'model' },
  model_gone: { scope: 'model' },
  model_unsupported: { scope: 'model' },
  refused: { scope: 'model' },
  ambiguous: { scope: 'unknown', retries: true, countsAgainstModel: true },
} as const satisfies Record<string, ClassTraits>

export type ResponseClass = keyof typeof CLASSES

export const RESPONSE_CLASSES: Readonly<Record<ResponseClass, ClassTraits>> = CLASSES

/** The class of an ambiguous response after models of different vendors got it too. */
export type CorrelatedFailure = 'account_minute' | 'account_key' | 'service_down'

export interface Classification {
  class: ResponseClass
  /** HTTP status of the error, also of an error inside a 200; null without an error. */
  status: number | null
  /** Earliest retry, when the response names one. */
  retryAt: Instant | null
  /** Requests the limit allows, when the response names them. */
  limit: number | null
  remaining: number | null
  resetAt: Instant | null
  providerName: string | null
  /** Set for `ambiguous`. */
  correlated: CorrelatedFailure | null
  /** Set for `answered`. */
  response: ModelResponse | null
  /** The beginning of the body, on one line. */
  preview: string
}

export function rateLimitKind(kind: ResponseClass): RankedModel['rateLimitKind'] {
  return RESPONSE_CLASSES[kind].rateLimit ?? 'none'
}

/** The published details of tasks without a response (docs/free-models.md). */
export function failureDetails({
  class: kind,
  status,
  providerName,
  limit,
  remaining,
  resetAt,
  preview,
}: Classification): Record<string, unknown> {
  return {
    responseStatus: status ?? (kind === 'timeout' ? 'timeout' : 'failed'),
    rateLimitKind: rateLimitKind(kind),
    providerName: providerName === null ? null : publishedText(providerName, 100),
    rateLimitLimit: limit,
    rateLimitRemaining: remaining,
    rateLimitResetAt: resetAt === null ? null : formatInstant(resetAt),
    responsePreview: publishedText(preview, 200),
  }
}

/** A graded evaluation of a model by the lite suite. */
export interface LiteEvaluation {
  updatedAt: Instant
  tasks: readonly TaskResult[]
}

/** An evaluation that still counts, with its weight. */
export interface CountedEvaluation extends LiteEvaluation {
  status: 'completed' | 'cached_recent'
  /** Age in whole UTC days. */
  ageDays: number
  /** 1 on the first day, less on each later day (docs/free-models.md). */
  multiplier: number
  /** Points of all tasks, before the multiplier. */
  points: number
  /** Most points that tasks without a gradable response could add; 0 for a complete evaluation. */
  openPoints: number
}

/** By age in UTC days; older evaluations do not count. */
const MULTIPLIERS = [1, 0.9, 0.8, 0.7] as const

/** Most points of the suite and of `liteEvalScore`. */
export const LITE_POINTS_MAX = 750

/**
 * Weighs an evaluation by its age: 1 on its own UTC day, 0.9, 0.8 and 0.7 on the next three days, then nothing. One of a
 * later day, by a clock that was ahead, does not count.
 *
 * @returns null when there is none that counts
 */
export function countedEvaluation(evaluation: LiteEvaluation | null, now: Instant): CountedEvaluation | null {
  if (evaluation === null || evaluation.tasks.length === 0) return null
  const ageDays = (startOfDay(dayOf(now)) - startOfDay(dayOf(evaluation.updatedAt))) / DAY_MS
  const multiplier = MULTIPLIERS[ageDays]
  if (multiplier === undefined) return null
  const points = evaluation.tasks.reduce((sum, task) => sum + task.points, 0)
  const openPoints = evaluation.tasks.filter(isOpen).reduce((sum, task) => sum + task.maxPoints, 0)
  const status = ageDays === 0 ? 'completed' : 'cached_recent'
  return { ...evaluation, status, ageDays, multiplier, points, openPoints }
}

/** True when both prompts have a gradable response. */
export function isComplete({ tasks }: Pick<LiteEvaluation, 'tasks'>): boolean {
  return !tasks.some(isOpen)
}

/** True when at least one prompt has a gradable response. */
export function hasResponse({ tasks }: Pick<LiteEvaluation, 'tasks'>): boolean {
  return tasks.some((task) => !isOpen(task))
}

function isOpen({ status }: TaskResult): boolean {
  return status === 'http_timeout_or_error'
}

/**
 * Points times multiplier, rounded half up. The calculation uses tenths, because 0.7 and 0.9 have no exact binary form.
 */
export function liteScoreOf({
  points,
  multiplier,
}: Pick<CountedEvaluation, 'points' | 'multiplier'>): number {
  return Math.floor((points * Math.round(multiplier * 10) + 5) / 10)
}

/** Tool use of a model as measured, not as claimed. */
export function toolUseOf(evaluation: LiteEvaluation | null): RankedModel['toolUse'] {
  const task = evaluation?.tasks.find(({ id }) => id === 'task_files_lite')
  const usedTool = task?.details['usedTool']
  if (typeof usedTool !== 'boolean') return 'unknown'
  return usedTool ? 'proven' : 'disproven'
}

export type RunOutcome = 'complete' | 'partial' | 'unchanged' | 'failed'

/** The record of a run that ended. */
export interface EndedRun {
  day: Day
  refreshMode: StoredRun['refreshMode']
  startedAt: Instant
  endedAt: Instant
  outcome: RunOutcome
  rankingVersion: string | null
  /** Requests a minute after the account's minute limit was met; null when it was not met. */
  startsAMinute: number | null
  reason: string | null
}

/** The record of a request to a model before it is sent. */
export interface AttemptStart {
  model: string
  kind: LiteKind
  sentAt: Instant
}

export interface AttemptEnd {
  settledAt: Instant
  /** `abandoned` when the run ended first. */
  class: ResponseClass | 'abandoned'
  /** HTTP status of the error, or null. */
  status: number | null
  latencyMs: number | null
  /** True when the response had the requested form; null without a response. */
  asAsked: boolean | null
  /** The tasks of the prompt: graded, or with the failure of the model as their details; null for any other failure. */
  tasks: readonly TaskResult[] | null
}

/** A recorded request. It counts even when it was never sent. */
export interface ModelAttempt extends AttemptStart {
  id: number
  /** UTC day of `sentAt`. */
  day: Day
  /** null while the request is open. */
  end: AttemptEnd | null
}

/** The endpoint data of a model from the routing service. */
export interface EndpointRecord {
  model: string
  checkedAt: Instant
  /** True when at least one endpoint accepts requests. */
  usable: boolean
  /** Median latency of the fastest usable endpoint in milliseconds; null without one. */
  latencyMs: number | null
}

/** Conditions for recording a request, checked in the same transaction. */
export interface AttemptGuard {
  token: string
  /** Most requests of the UTC day, including the chat's, before this one; null without a limit. */
  maxCountedBefore: number | null
}

/** The number of an attempt, or the reason why none was recorded. */
export type CountedAttempt = { counted: number } | { refused: 'lease_lost' | 'day_spent' }

/** Days with requests whose records are kept. An evaluation reads four; older records are for operators. */
export const EVALUATIONS_KEPT_DAYS = 90

export interface ChatCall {
  /** `vendor/model:free` */
  model: string
  prompt: LitePrompt
  /** Limit of the response in tokens, including reasoning. */
  maxTokens: number
  /** False for a model without a temperature parameter. */
  temperature: boolean
  lowEffort: boolean
}

/** The classified result of a chat call. */
export interface ChatOutcome extends Classification {
  /** Time at which the response was complete or abandoned. */
  endedAt: Instant
  /** Milliseconds from the call to the end of the response. */
  latencyMs: number
}

/** The facts in a response, null when unreadable; or the classification of a failed call. */
export type RouterFacts<T> = { facts: T | null } | { failed: Classification }
