import { DAY_MS, dayOf, formatInstant, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { LiteQuestion, ModelReply, TaskResult } from './lite/suite.ts'
import { publishedText } from './schema.ts'
import type { HealthStatus } from './schema.ts'

/** What each kind of answer means, and whose matter it is (docs/model-errors.md). */
export const ANSWER_CLASSES = {
  answered: { scope: 'none', retries: false, ownFailure: false },
  account_daily: { scope: 'account', retries: false, ownFailure: false },
  account_minute: { scope: 'account', retries: true, ownFailure: false },
  account_busy: { scope: 'account', retries: true, ownFailure: false },
  account_key: { scope: 'account', retries: false, ownFailure: false },
  account_key_limit: { scope: 'account', retries: false, ownFailure: false },
  account_balance: { scope: 'account', retries: false, ownFailure: false },
  account_policy: { scope: 'account', retries: false, ownFailure: false },
  /** Given when models of two vendors got the same answer that nobody can attribute. */
  service_down: { scope: 'account', retries: false, ownFailure: false },
  model_rate_limit: { scope: 'model', retries: true, ownFailure: true },
  provider_down: { scope: 'model', retries: true, ownFailure: true },
  timeout: { scope: 'model', retries: false, ownFailure: true },
  invalid_answer: { scope: 'model', retries: true, ownFailure: true },
  /** Given when a reply reached its limit of tokens before it came to what was asked for. */
  cut_answer: { scope: 'model', retries: false, ownFailure: false },
  model_gone: { scope: 'model', retries: false, ownFailure: false },
  model_unsupported: { scope: 'model', retries: false, ownFailure: false },
  refused: { scope: 'model', retries: false, ownFailure: false },
  ambiguous: { scope: 'unknown', retries: true, ownFailure: true },
} as const satisfies Record<
  string,
  {
    scope: 'none' | 'account' | 'model' | 'unknown'
    /** True when one paced retry may change it. */
    retries: boolean
    /** True when it counts against the model's stability. */
    ownFailure: boolean
  }
>

export type AnswerClass = keyof typeof ANSWER_CLASSES

/** What an answer nobody can attribute would mean if models of different vendors got it too. */
export type Suspicion = 'account_minute' | 'account_key' | 'service_down'

/** What an answer means. */
export interface Verdict {
  class: AnswerClass
  /** The rule that decided. */
  because: string
  /** HTTP status of the error, in a 200 too; null when there is none. */
  status: number | null
  /** Earliest time to ask again, where the answer tells. */
  retryAt: Instant | null
  /** Requests the named limit allows, where the answer tells. */
  limit: number | null
  remaining: number | null
  /** When that limit begins anew. */
  resetAt: Instant | null
  providerName: string | null
  /** For `ambiguous`. */
  suspicion: Suspicion | null
  /** For `answered`. */
  reply: ModelReply | null
  /** The beginning of what was answered, on one line. */
  preview: string
}

/** The health a model has by an answer that was no reply to the question. */
export function healthOfFailure({ class: kind, status }: Pick<Verdict, 'class' | 'status'>): HealthStatus {
  if (ANSWER_CLASSES[kind].scope === 'account') return 'not_probed'
  if (kind === 'timeout') return 'timeout'
  return status !== null && status >= 400 ? `http_${status}` : 'failed'
}

/** Whose rate limit an answer was. */
export function rateLimitKind(kind: AnswerClass): 'account' | 'model' | 'none' {
  if (kind === 'account_daily' || kind === 'account_minute') return 'account'
  return kind === 'model_rate_limit' ? 'model' : 'none'
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

/** By age in UTC days; what is older does not count. */
const MULTIPLIERS = [1, 0.9, 0.8, 0.7] as const

/** What the suite can bring, and with it `liteEvalScore`. */
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

/** Whether a model used a tool when it was asked to: measured, not claimed; nothing measured is unknown. */
export type ToolUse = 'proven' | 'disproven' | 'unknown'

export function toolUseOf(evaluation: LiteEvaluation | null): ToolUse {
  const task = evaluation?.tasks.find(({ id }) => id === 'task_files_lite')
  const usedTool = task?.details['usedTool']
  if (typeof usedTool !== 'boolean') return 'unknown'
  return usedTool ? 'proven' : 'disproven'
}

/** What is published of a question that got no answer, as the details of its tasks (docs/free-models.md). */
export function failureDetails(verdict: Verdict): Readonly<Record<string, unknown>> {
  const { status, providerName, limit, remaining, resetAt } = verdict
  return {
    responseStatus: status ?? (verdict.class === 'timeout' ? 'timeout' : 'failed'),
    rateLimitKind: rateLimitKind(verdict.class),
    providerName: providerName === null ? null : publishedText(providerName, 100),
    rateLimitLimit: limit,
    rateLimitRemaining: remaining,
    rateLimitResetAt: resetAt === null ? null : formatInstant(resetAt),
    responsePreview: publishedText(verdict.preview, 200),
  }
}

/** The same of a question whose last attempt alone is known. */
export function rememberedDetails(
  end: AttemptEnd & { class: AnswerClass },
): Readonly<Record<string, unknown>> {
  return {
    responseStatus: end.status ?? (end.class === 'timeout' ? 'timeout' : 'failed'),
    rateLimitKind: rateLimitKind(end.class),
    providerName: null,
    rateLimitLimit: null,
    rateLimitRemaining: null,
    rateLimitResetAt: null,
    responsePreview: '',
  }
}

/** How a run of `evaluate-models` ended. */
export type RunOutcome = 'complete' | 'partial' | 'unchanged' | 'failed'

/** Where a request to a model was written down. */
export interface AttemptStart {
  run: number
  model: string
  kind: LiteQuestion['kind']
  sentAt: Instant
}

/** How a request ended. */
export interface AttemptEnd {
  settledAt: Instant
  /** `abandoned`: its run was killed before it ended. */
  class: AnswerClass | 'abandoned'
  /** HTTP status of the error, or null. */
  status: number | null
  latencyMs: number | null
  /** True when the reply had the form that was asked for; null without a reply. */
  asAsked: boolean | null
  /** The graded tasks of its question; null without a reply. */
  tasks: readonly TaskResult[] | null
}

/** A request that was written down, sent or not: all count. */
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

/** What the service said of a model's endpoints when it was asked for nothing else. */
export interface EndpointRecord {
  model: string
  checkedAt: Instant
  /** True when at least one endpoint takes requests. */
  usable: boolean
  /** Median of the fastest usable endpoint, in milliseconds; null where it is not told. */
  latencyMs: number | null
}

/** What must hold for a request to be written down, checked in the statement that writes it. */
export interface AttemptGuard {
  /** Of the lease. */
  token: string
  /** Requests the model may have been sent this UTC day before this one, but for those the account's limits kept from it. */
  sentBeforeAtMost: number
  /** Requests of the UTC day, the chat's too, that may have been written down before this one; null without a limit. */
  countedBeforeAtMost: number | null
}

/** The number of an attempt, or why none was written. */
export type CountedAttempt = { counted: number } | { refused: 'lease_lost' | 'model_spent' | 'day_spent' }

/** What a run leaves behind when it ends. */
export interface RunEnd {
  endedAt: Instant
  outcome: RunOutcome
  rankingVersion: string | null
  /** The rate that was learned by meeting the account's minute limit; null when it was not met. */
  startsAMinute: number | null
  reason: string | null
}

/** Nothing looks further back than three days; the rest is for whoever asks what happened. */
export const EVALUATIONS_KEPT_DAYS = 90

/** One chat call of an evaluation. */
export interface ChatCall {
  /** `vendor/model:free` */
  model: string
  question: LiteQuestion
  /** Limit of the answer, in tokens, what the model thinks included. */
  maxTokens: number
  /** False for a model that takes no temperature. */
  temperature: boolean
  /** True to ask a model that thinks to do little of it. */
  lowEffort: boolean
}

/** The verdict on a chat call. */
export interface ChatOutcome extends Verdict {
  /** When the response was whole, or given up. */
  endedAt: Instant
  /** From the call to the end of its response, in milliseconds. */
  latencyMs: number
}

/** What the service said, null when nothing of it can be read; or the verdict on a call that failed. */
export type RouterFacts<T> = { facts: T | null } | { failed: Verdict }
