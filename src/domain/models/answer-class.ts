import type { HealthStatus } from './health.ts'
import type { ModelReply } from './reply.ts'
import type { Instant } from '../time.ts'

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
