import { DAY_MS, dayOf, formatInstant, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { LiteKind, LiteQuestion, ModelResponse, TaskResult } from './lite/suite.ts'
import { publishedText } from './schema.ts'
import type { RankedModel } from './schema.ts'

/** The meaning of a class of responses (docs/model-errors.md). */
interface Meaning {
  /** Whose matter it is. */
  scope: 'none' | 'account' | 'model' | 'unknown'
  /** True when one paced retry may change it. */
  retries?: true
  /** True when it counts against the model's stability. */
  ownFailure?: true
  /** Whose rate limit it was. */
  rateLimit?: 'account' | 'model'
  /** A limit of the account that ends by itself, for the report of a run that it stops. */
  limit?: string
  /** The setting of the account or of this program that mends it, for the same report. */
  setting?: string
}

const OWN_FAILURE = { scope: 'model', ownFailure: true } as const
const passing = (limit: string) => ({ scope: 'account', limit }) as const
const stopping = (setting: string) => ({ scope: 'account', setting }) as const

const DAY_LIMIT = "the account's requests of the day are spent"
const MINUTE_LIMIT = "the account's limit of requests a minute did not end while the run waited for it"

/** Every class of responses of the routing service: the whole, closed list. */
const CLASSES = {
  answered: { scope: 'none' },
  account_daily: { ...passing(DAY_LIMIT), rateLimit: 'account' },
  account_minute: { ...passing(MINUTE_LIMIT), rateLimit: 'account', retries: true },
  account_busy: { ...passing(MINUTE_LIMIT), retries: true },
  account_key: stopping('the service does not take the key: correct OPENROUTER_API_KEY'),
  account_key_limit: stopping("the key's own limit is spent: raise it where the key was created"),
  account_balance: stopping(
    'the balance of the account is negative, which closes free models too: add credits to the account',
  ),
  account_policy: stopping(
    "the account's data policy allows no free models: allow them at https://openrouter.ai/settings/privacy",
  ),
  /** Given when models of two vendors got the same response that nothing attributes. */
  service_down: { scope: 'account' },
  model_rate_limit: { ...OWN_FAILURE, rateLimit: 'model', retries: true },
  provider_down: { ...OWN_FAILURE, retries: true },
  timeout: OWN_FAILURE,
  invalid_answer: { ...OWN_FAILURE, retries: true },
  /** Given when a reply reached its limit of tokens before it came to what was asked for. */
  cut_answer: { scope: 'model' },
  model_gone: { scope: 'model' },
  model_unsupported: { scope: 'model' },
  refused: { scope: 'model' },
  ambiguous: { scope: 'unknown', retries: true, ownFailure: true },
} as const satisfies Record<string, Meaning>

export type ResponseClass = keyof typeof CLASSES

export const RESPONSE_CLASSES: Readonly<Record<ResponseClass, Meaning>> = CLASSES

/** The class of an ambiguous response once models of different vendors got it too. */
export type CorrelatedFailure = 'account_minute' | 'account_key' | 'service_down'

/** The classification of a response. */
export interface Classification {
  class: ResponseClass
  /** The rule that decided. */
  because: string
  /** HTTP status of the error, in a 200 too; null when there is none. */
  status: number | null
  /** Earliest time of another request, where the response names one. */
  retryAt: Instant | null
  /** Requests the named limit allows, where the response names them. */
  limit: number | null
  remaining: number | null
  /** When that limit resets. */
  resetAt: Instant | null
  providerName: string | null
  /** For `ambiguous`. */
  correlated: CorrelatedFailure | null
  /** For `answered`. */
  reply: ModelResponse | null
  /** The beginning of the body, on one line. */
  preview: string
}

/** Whose rate limit a response was. */
export function rateLimitKind(kind: ResponseClass): RankedModel['rateLimitKind'] {
  return RESPONSE_CLASSES[kind].rateLimit ?? 'none'
}

/**
 * The published details of tasks without a reply (docs/free-models.md).
 *
 * @param failure a whole verdict, or the stored part of one
 */
export function failureDetails(
  failure: Pick<Classification, 'class' | 'status'> & Partial<Classification>,
): Record<string, unknown> {
  const {
    status,
    providerName = null,
    limit = null,
    remaining = null,
    resetAt = null,
    preview = '',
  } = failure
  return {
    responseStatus: status ?? (failure.class === 'timeout' ? 'timeout' : 'failed'),
    rateLimitKind: rateLimitKind(failure.class),
    providerName: providerName === null ? null : publishedText(providerName, 100),
    rateLimitLimit: limit,
    rateLimitRemaining: remaining,
    rateLimitResetAt: resetAt === null ? null : formatInstant(resetAt),
    responsePreview: publishedText(preview, 200),
  }
}

/** One evaluation of a model by the lite suite, as it was graded. */
export interface LiteEvaluation {
  updatedAt: Instant
  tasks: readonly TaskResult[]
}

/** An evaluation that still counts, and how much. */
export interface CountedEvaluation extends LiteEvaluation {
  status: 'completed' | 'cached_recent'
  /** Whole UTC days since it was made. */
  ageDays: number
  /** 1, or less with each day (docs/free-models.md). */
  multiplier: number
  /** Sum over the tasks, before the multiplier. */
  points: number
  /** What tasks without an answer that could be judged could still bring; 0 for a complete evaluation. */
  openPoints: number
}

/** By age in UTC days; older evaluations do not count. */
const MULTIPLIERS = [1, 0.9, 0.8, 0.7] as const

/** The most points of the suite, and with it of `liteEvalScore`. */
export const LITE_POINTS_MOST = 750

/**
 * An evaluation as it counts now: in full on its own UTC day, with 0.9, 0.8 and 0.7 on the three days after, then not
 * at all.
 *
 * @returns null when there is none that counts
 */
export function countedEvaluation(evaluation: LiteEvaluation | null, now: Instant): CountedEvaluation | null {
  if (evaluation === null || evaluation.tasks.length === 0) return null
  const days = (startOfDay(dayOf(now)) - startOfDay(dayOf(evaluation.updatedAt))) / DAY_MS
  const ageDays = Math.max(0, days)
  const multiplier = MULTIPLIERS[ageDays]
  if (multiplier === undefined) return null
  const points = evaluation.tasks.reduce((sum, task) => sum + task.points, 0)
  const openPoints = evaluation.tasks.filter(isOpen).reduce((sum, task) => sum + task.maxPoints, 0)
  const status = ageDays === 0 ? 'completed' : 'cached_recent'
  return { ...evaluation, status, ageDays, multiplier, points, openPoints }
}

/** True when both questions were answered, and the answers could be judged. */
export function isComplete({ tasks }: Pick<LiteEvaluation, 'tasks'>): boolean {
  return !tasks.some(isOpen)
}

/** True when at least one question was answered: only then there is something to score. */
export function hasAnswer({ tasks }: Pick<LiteEvaluation, 'tasks'>): boolean {
  return tasks.some((task) => !isOpen(task))
}

function isOpen({ status }: TaskResult): boolean {
  return status === 'http_timeout_or_error'
}

/** Points times multiplier, half up. In tenths, since 0.7 and 0.9 have no exact binary form. */
export function liteScoreOf({
  points,
  multiplier,
}: Pick<CountedEvaluation, 'points' | 'multiplier'>): number {
  return Math.floor((points * Math.round(multiplier * 10) + 5) / 10)
}

/** Whether a model used a tool when it was asked to: measured, not claimed. */
export function toolUseOf(evaluation: LiteEvaluation | null): RankedModel['toolUse'] {
  const task = evaluation?.tasks.find(({ id }) => id === 'task_files_lite')
  const usedTool = task?.details['usedTool']
  if (typeof usedTool !== 'boolean') return 'unknown'
  return usedTool ? 'proven' : 'disproven'
}

/** How a run of `evaluate-models` ended. */
export type RunOutcome = 'complete' | 'partial' | 'unchanged' | 'failed'

/** A request to a model as it is recorded before it is sent. */
export interface AttemptStart {
  run: number
  model: string
  kind: LiteKind
  sentAt: Instant
}

/** How a request ended. */
export interface AttemptEnd {
  settledAt: Instant
  /** `abandoned`: its run was killed before it ended. */
  class: ResponseClass | 'abandoned'
  /** HTTP status of the error, or null. */
  status: number | null
  latencyMs: number | null
  /** True when the reply had the form that was asked for; null without a reply. */
  asAsked: boolean | null
  /** The graded tasks of its question; null without a reply. */
  tasks: readonly TaskResult[] | null
}

/** A recorded request, sent or not: all count. */
export interface ModelAttempt extends AttemptStart {
  id: number
  /** UTC day of `sentAt`. */
  day: Day
  /** Null while it is open. */
  end: AttemptEnd | null
}

/** The evaluation of a model on one UTC day. */
export interface DayScore {
  model: string
  day: Day
  evaluatedAt: Instant
  /** False when a question got no answer: its tasks then have no points. */
  complete: boolean
  tasks: readonly TaskResult[]
}

/** The endpoints of a model, as the service described them. */
export interface EndpointRecord {
  model: string
  checkedAt: Instant
  /** True when at least one endpoint takes requests. */
  usable: boolean
  /** Median of the fastest usable endpoint, in milliseconds; null where there is none. */
  latencyMs: number | null
}

/** Conditions of recording a request, checked in the statement that records it. */
export interface AttemptGuard {
  /** Of the lease. */
  token: string
  /** Requests the model may have been sent this UTC day before this one. */
  sentBeforeAtMost: number
  /** Requests of the UTC day, the chat's too, that may have been recorded before this one; null without a limit. */
  countedBeforeAtMost: number | null
}

/** The number of an attempt, or why none was recorded. */
export type CountedAttempt = { counted: number } | { refused: 'lease_lost' | 'model_spent' | 'day_spent' }

/** The record of a run that ended. */
export interface RunEnd {
  endedAt: Instant
  outcome: RunOutcome
  rankingVersion: string | null
  /** The rate that was learned by meeting the account's minute limit; null when it was not met. */
  startsAMinute: number | null
  reason: string | null
}

/** Nothing looks further back than three days; the rest is for operators. */
export const EVALUATIONS_KEPT_DAYS = 90

/** One chat call of an evaluation. */
export interface ChatCall {
  /** `vendor/model:free` */
  model: string
  question: LiteQuestion
  /** Limit of the answer, in tokens, reasoning included. */
  maxTokens: number
  /** False for a model that takes no temperature. */
  temperature: boolean
  /** True to ask a model that reasons to do little of it. */
  lowEffort: boolean
}

/** The verdict on a chat call. */
export interface ChatOutcome extends Classification {
  /** When the response was whole, or given up. */
  endedAt: Instant
  /** From the call to the end of its response, in milliseconds. */
  latencyMs: number
}

/** The facts in a response, null when none can be read; or the verdict on a call that failed. */
export type RouterFacts<T> = { facts: T | null } | { failed: Classification }
