import type { Instant } from '../time.ts'
import type { LiteKind } from './lite/suite.ts'
import type { StoredRun } from './schema.ts'

/** Requests a day that are left to the account's owner and to answers that were lost (docs/model-errors.md). */
export const RESERVED_REQUESTS = 10

/** Two questions and one retry: the most requests of one model, on a UTC day or in a forced run. */
export const REQUESTS_A_MODEL = 3

/** What an account has that never bought credits, for a service that does not tell. */
export const DEFAULT_DAILY_LIMIT = 50

/** The service may answer for the key with numbers this old, and so may miss what was sent since. */
export const KEY_STALE_MS = 90_000

/** The daily requests of a key, as the service counts them; null where it does not tell. */
export interface KeyRequests {
  limit: number
  /** May exceed the limit. */
  used: number
}

/**
 * Requests that may still be sent today. The count of the service may be old and the count here may be incomplete,
 * so that the greater sum is taken for true.
 *
 * @param countedToday requests written down since midnight UTC, those of killed runs too
 * @param countedLately of these, those of the last {@link KEY_STALE_MS}
 */
export function requestsLeft(key: KeyRequests | null, countedToday: number, countedLately: number): number {
  const limit = key?.limit ?? DEFAULT_DAILY_LIMIT
  const spent = Math.max(countedToday, (key?.used ?? 0) + countedLately)
  return Math.max(0, limit - RESERVED_REQUESTS - spent)
}

/**
 * Requests a model may be sent in a run. A forced run evaluates every model again, however often it was asked that day;
 * any other shares the requests of the day with the runs before it.
 *
 * @param sentToday requests written down for the model since midnight UTC
 */
export function requestsLeftOfModel(mode: StoredRun['refreshMode'], sentToday: number): number {
  return mode === 'forceEval' ? REQUESTS_A_MODEL : Math.max(0, REQUESTS_A_MODEL - sentToday)
}

/** What is known of a model before its questions are planned. */
export interface QuotaClaim {
  model: string
  /** Questions that have no answer of today which may be used. */
  open: readonly LiteKind[]
  /** Requests it may be sent: see {@link requestsLeftOfModel}. */
  left: number
  /** True when a perfect evaluation could make it the primary. */
  canWin: boolean
  lastEvaluatedAt: Instant | null
}

interface PlannedCall {
  model: string
  kind: LiteKind
}

export interface CallPlan {
  calls: PlannedCall[]
  /** Models whose open questions do not fit into what is left of the day. */
  postponed: string[]
  /** Models that have too few of their own requests left. */
  spent: string[]
  /** Requests the run may send in all, retries included. */
  budget: number
}

/**
 * Plans first calls, both of a model's or none: who can still win first, then whose evaluation is the oldest. Retries take
 * what the first calls leave.
 *
 * @param left see {@link requestsLeft}
 */
export function planCalls(claims: readonly QuotaClaim[], left: number): CallPlan {
  const plan: CallPlan = { calls: [], postponed: [], spent: [], budget: left }
  for (const { model, open, left: leftOfModel } of claims.toSorted(byUrgency)) {
    if (open.length > leftOfModel) plan.spent.push(model)
    if (open.length === 0 || open.length > leftOfModel) continue
    if (plan.calls.length + open.length > left) plan.postponed.push(model)
    else plan.calls.push(...open.map((kind) => ({ model, kind })))
  }
  return plan
}

function byUrgency(a: QuotaClaim, b: QuotaClaim): number {
  return (
    Number(b.canWin) - Number(a.canWin) ||
    (a.lastEvaluatedAt ?? -Infinity) - (b.lastEvaluatedAt ?? -Infinity) ||
    (a.model < b.model ? -1 : 1)
  )
}
