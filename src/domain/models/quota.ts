import type { Instant } from '../time.ts'
import type { LiteKind } from './lite/suite.ts'
import type { StoredRun } from './schema.ts'

/** Daily requests reserved for the account's owner and for lost responses (docs/model-errors.md). */
export const RESERVED_REQUESTS = 10

/** Most requests of one model on a UTC day or in a forced run: two prompts and one retry. */
export const REQUESTS_PER_MODEL = 3

/** Daily limit of an account without purchases, used when the service reports none. */
export const DEFAULT_DAILY_LIMIT = 50

/** Requests a minute of an account, over all keys and models. */
export const MINUTE_LIMIT = 20

/** The service may report key usage of this age, and so miss recent requests. */
export const KEY_STALE_MS = 90_000

/** The daily requests of a key, as the service counts them. */
export interface KeyRequests {
  limit: number
  /** May exceed the limit. */
  used: number
}

/**
 * Requests that may still be sent today. The service's count may be old and the local one incomplete, so that the
 * greater sum counts.
 *
 * @param countedToday requests recorded since midnight UTC, including those of killed runs
 * @param countedRecently those of the last {@link KEY_STALE_MS} among them
 */
export function requestsLeft(key: KeyRequests | null, countedToday: number, countedRecently: number): number {
  const limit = key?.limit ?? DEFAULT_DAILY_LIMIT
  const spent = Math.max(countedToday, (key?.used ?? 0) + countedRecently)
  return Math.max(0, limit - RESERVED_REQUESTS - spent)
}

/**
 * Requests left for a model in a run. A forced run evaluates every model again; other runs share the day's requests
 * with earlier runs.
 *
 * @param sentToday requests recorded for the model since midnight UTC
 */
export function requestsLeftOfModel(mode: StoredRun['refreshMode'], sentToday: number): number {
  return mode === 'forceEval' ? REQUESTS_PER_MODEL : Math.max(0, REQUESTS_PER_MODEL - sentToday)
}

/** A model that needs requests in a run. */
export interface QuotaClaim {
  model: string
  /** Prompts without a usable response of today. */
  openKinds: readonly LiteKind[]
  /** Requests left for the model: see {@link requestsLeftOfModel}. */
  left: number
  /** True when a perfect evaluation would make it the primary. */
  canWin: boolean
  lastEvaluatedAt: Instant | null
}

interface PlannedCall {
  model: string
  kind: LiteKind
}

export interface CallPlan {
  calls: PlannedCall[]
  /** Models whose prompts exceed the requests left today. */
  postponed: string[]
  /** Models with too few of their own requests left. */
  spent: string[]
  /** Most requests of the run, including retries. */
  budget: number
}

/**
 * Plans the first calls: both prompts of a model or none. Models that can still become the primary come first, then
 * those with the oldest evaluation. Retries use the remaining requests.
 *
 * @param left see {@link requestsLeft}
 */
export function planCalls(claims: readonly QuotaClaim[], left: number): CallPlan {
  const plan: CallPlan = { calls: [], postponed: [], spent: [], budget: left }
  for (const { model, openKinds, left: leftOfModel } of claims.toSorted(byUrgency)) {
    if (openKinds.length > leftOfModel) plan.spent.push(model)
    if (openKinds.length === 0 || openKinds.length > leftOfModel) continue
    if (plan.calls.length + openKinds.length > left) plan.postponed.push(model)
    else plan.calls.push(...openKinds.map((kind) => ({ model, kind })))
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
