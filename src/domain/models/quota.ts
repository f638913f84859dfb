import type { Instant } from '../time.ts'
import type { LiteQuestion } from './lite/suite.ts'
import type { StoredRun } from './schema.ts'

/** Requests a day that are left to the account's owner and to answers that were lost (docs/evaluating-models.md). */
export const RESERVED_REQUESTS = 10

/** Two questions and one retry: the most requests of one model, on a UTC day or in a forced run. */
export const REQUESTS_A_MODEL = 3

/** What an account has that never bought credits, for a service that does not tell. */
export const DAILY_LIMIT_UNTOLD = 50

/** The service may answer for the key with numbers this old, and so may miss what was sent since. */
export const KEY_STALE_MS = 90_000

/** The daily requests of a key, as the service counts them; null where it does not tell. */
export interface KeyRequests {
  limit: number
  /** May exceed the limit. */
  used: number
}

/**
 * Requests that may still be sent today. What the service counts may be old and what was counted here may not be all,
 * so that the greater sum is taken for true.
 *
 * @param countedToday requests written down since midnight UTC, those of killed runs too
 * @param countedLately of these, those of the last {@link KEY_STALE_MS}
 */
export function requestsLeft(key: KeyRequests | null, countedToday: number, countedLately: number): number {
  const limit = key?.limit ?? DAILY_LIMIT_UNTOLD
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
  open: readonly LiteQuestion['kind'][]
  /** Requests it may be sent: see {@link requestsLeftOfModel}. */
  left: number
  /** True when a perfect evaluation could make it the primary. */
  canWin: boolean
  lastEvaluatedAt: Instant | null
}

interface PlannedCall {
  model: string
  kind: LiteQuestion['kind']
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

/**
 * True when a call may be asked once more: the model has a request left, and so has the run once every first call
 * still to be sent is taken off.
 */
export function mayRetry(used: {
  left: number
  budget: number
  sentInRun: number
  unsentFirstCalls: number
}): boolean {
  return used.left > 0 && used.sentInRun + used.unsentFirstCalls < used.budget
}

/**
 * When the next call may start. Times are milliseconds of a clock that only goes forward, so that a wall clock that is
 * set cannot crowd a minute.
 */

/** Fewer than the service's limit of 20 a minute. */
export const STARTS_A_MINUTE = 19

/** A minute, and what calls may be late by on their way. */
export const WINDOW_MS = 61_000

/** Calls open at the same time. */
const OPEN_AT_ONCE = 4

/** No model is waited for longer than this; a limit of its own that lasts longer costs the call. */
export const LONGEST_PAUSE_MS = 65_000

/** The account is waited for no longer than this at a time; a limit that lasts longer ends the run. */
export const LONGEST_ACCOUNT_PAUSE_MS = 300_000

/** A call that is to be made. */
export interface Waiting {
  /** The part of the model's id before the slash: one call at a time goes to each. */
  vendor: string
  readyAt: number
}

export interface Pace {
  startsAMinute: number
  /** The account must not be asked before. */
  notBefore: number
  /** True after a limit of the account, until a call has shown that it ended. */
  oneByOne: boolean
}

export type NextStart =
  | { do: 'start'; index: number }
  /** Nothing may start before this time, unless an open call ends. */
  | { do: 'wait'; until: number }
  /** Only the end of an open call can change anything. */
  | { do: 'settle' }
  | { do: 'done' }

/**
 * The next thing to do.
 *
 * @param queue in order; the first that may start does
 * @param open vendors of the open calls
 * @param starts of every call in the last {@link WINDOW_MS}, ascending; earlier ones do no harm
 */
export function nextStart(
  queue: readonly Waiting[],
  open: readonly string[],
  starts: readonly number[],
  { startsAMinute, notBefore, oneByOne }: Pace,
  now: number,
): NextStart {
  if (queue.length === 0) return { do: open.length === 0 ? 'done' : 'settle' }
  const free = queue.filter(({ vendor }) => !open.includes(vendor))
  if (open.length >= (oneByOne ? 1 : OPEN_AT_ONCE) || free.length === 0) return { do: 'settle' }
  const soonest = Math.min(...free.map(({ readyAt }) => readyAt))
  const at = Math.max(soonest, notBefore, windowOpensAt(starts, startsAMinute, now))
  if (at > now) return { do: 'wait', until: at }
  const index = queue.findIndex(({ vendor, readyAt }) => readyAt <= now && !open.includes(vendor))
  return { do: 'start', index }
}

/** The earliest time at which one more start keeps every window under its limit. */
function windowOpensAt(starts: readonly number[], startsAMinute: number, now: number): number {
  const oldest = starts.at(-startsAMinute)
  return oldest === undefined || starts.length < startsAMinute ? now : oldest + WINDOW_MS
}

/** The rate to keep to after the account's minute limit was met at `limit` a minute, or at one not told. */
export function learnedRate(startsAMinute: number, limit: number | null): number {
  const below = limit === null || limit < 1 ? startsAMinute - 2 : Math.min(startsAMinute, limit - 2)
  return Math.max(1, below)
}

/** The vendor of a model: its id up to the slash. */
export function vendorOf(model: string): string {
  return model.split('/', 1)[0] ?? model
}
