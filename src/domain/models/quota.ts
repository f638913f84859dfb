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

/** The pending calls of a run and their pace. Waits are in milliseconds of a monotonic clock. */

/** One below the service's limit. */
export const STARTS_PER_MINUTE = MINUTE_LIMIT - 1

/** One minute plus the longest network delay of a call. */
export const WINDOW_MS = 61_000

/**
 * The ages in milliseconds of the requests that count in the window. A request by a clock slightly ahead counts as just
 * sent; one further ahead, by a clock that was wrong, does not count: it would stay in the window until its time.
 */
export function agesInWindow(sentAt: readonly Instant[], now: Instant): number[] {
  return sentAt.filter((at) => Math.abs(now - at) < WINDOW_MS).map((at) => Math.max(0, now - at))
}

/** Longest wait for a model's own limit; a longer one fails the call. */
const LONGEST_PAUSE_MS = 65_000

/** Longest single wait for the account's limit; a longer one ends the run. */
const LONGEST_ACCOUNT_PAUSE_MS = 300_000

/** Most consecutive waits for the account's limit. */
const WAITS_FOR_ACCOUNT = 3

/** Delay of a retry when the response names no time. */
export const SHORT_PAUSE_MS = 5_000

export interface QueuedCall {
  model: string
  kind: LiteKind
  readyAt: number
  retry: boolean
}

/** The part of a model's id before the slash. */
export function vendorOf(model: string): string {
  return model.replace(/\/.*/s, '')
}

export interface NextStart {
  call: QueuedCall
  at: number
}

export interface CallQueueOptions {
  plan: Pick<CallPlan, 'calls' | 'budget'>
  requestsLeft: ReadonlyMap<string, number>
  /** The lowest rate that runs of the last day learned; null without one. */
  learnedRate: number | null
  monotonic: () => number
}

export class CallQueue {
  readonly #monotonic: () => number
  readonly #budget: number
  readonly #requestsLeft: Map<string, number>
  #waiting: QueuedCall[]
  #startsPerMinute: number
  #notBefore = 0
  /** Number of times in a row that the account's limit was met. */
  #timesLimited = 0
  sent = 0
  /** Calls a minute after a limit in this run; null without one. */
  learnedRate: number | null = null

  constructor({ plan, requestsLeft: leftOfModels, learnedRate, monotonic }: CallQueueOptions) {
    this.#startsPerMinute = Math.min(STARTS_PER_MINUTE, learnedRate ?? STARTS_PER_MINUTE)
    this.#monotonic = monotonic
    this.#budget = plan.budget
    this.#requestsLeft = new Map(leftOfModels)
    this.#waiting = plan.calls.map(({ model, kind }) => ({
      model,
      kind,
      readyAt: monotonic(),
      retry: false,
    }))
  }

  get length(): number {
    return this.#waiting.length
  }

  /**
   * The call to send next; null when none is pending.
   *
   * @param ambiguous vendors whose last response may have been the account's fault; another vendor shows which it was
   * @param agesMs ages of the requests that count in the window, those of the run and of others
   */
  next(ambiguous: ReadonlySet<string>, agesMs: readonly number[]): NextStart | null {
    const soonest = Math.min(...this.#waiting.map(({ readyAt }) => readyAt))
    const at = Math.max(this.#monotonic(), soonest, this.#notBefore, this.#windowOpensAt(agesMs))
    const ready = this.#waiting.filter(({ readyAt }) => readyAt <= at)
    const call = ready.find(({ model }) => !ambiguous.has(vendorOf(model))) ?? ready[0]
    return call ? { call, at } : null
  }

  /** The earliest time at which another start keeps every window within the limit. */
  #windowOpensAt(agesMs: readonly number[]): number {
    const age = agesMs.toSorted((a, b) => a - b)[this.#startsPerMinute - 1]
    return age === undefined ? -Infinity : this.#monotonic() - age + WINDOW_MS
  }

  drop(model: string): QueuedCall[] {
    const dropped = this.#waiting.filter((call) => call.model === model)
    this.#waiting = this.#waiting.filter((call) => call.model !== model)
    return dropped
  }

  start(call: QueuedCall): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting !== call)
    this.sent += 1
    this.#requestsLeft.set(call.model, (this.#requestsLeft.get(call.model) ?? 0) - 1)
  }

  /**
   * Pauses all calls until the account's limit has ended.
   *
   * @param waitMs wait named by the response, or null
   * @param otherwiseMs the wait when the response names none
   * @returns false when the limit lasts too long, or was met too often in a row
   */
  waitForAccount(waitMs: number | null, otherwiseMs: number): boolean {
    this.#timesLimited += 1
    const waitedMs = waitMs === null ? otherwiseMs : waitMs + 1_000
    // A wait that did not help came from a different clock.
    const ms = this.#timesLimited > 1 ? Math.max(waitedMs, WINDOW_MS) : waitedMs
    if (this.#timesLimited > WAITS_FOR_ACCOUNT || ms > LONGEST_ACCOUNT_PAUSE_MS) return false
    this.#notBefore = this.#monotonic() + ms
    return true
  }

  /** Records that the service accepted a call. */
  noteAccepted(): void {
    this.#timesLimited = 0
  }

  /**
   * Lowers the rate to two below the limit that was met.
   *
   * @param limit requests a minute, when the response names them
   */
  lowerRate(limit: number | null): void {
    const rate = this.#startsPerMinute
    const below = limit === null || limit < 1 ? rate - 2 : Math.min(rate, limit - 2)
    this.#startsPerMinute = Math.max(1, below)
    this.learnedRate = this.#startsPerMinute
  }

  /**
   * Puts a call that met the account's limit back to the front, replacing its retry. It is dropped when the model or
   * the run has no request left.
   */
  requeue(call: QueuedCall): void {
    this.#waiting = this.#waiting.filter(({ model, kind }) => model !== call.model || kind !== call.kind)
    if (this.#hasRequestFor(call)) this.#waiting.unshift({ ...call, readyAt: this.#monotonic() })
  }

  /** Queues a retry; false when the call must not be retried, or the wait is too long. */
  retry(call: QueuedCall, waitMs: number): boolean {
    if (call.retry || waitMs > LONGEST_PAUSE_MS || !this.#hasRequestFor(call)) return false
    const readyAt = this.#monotonic() + Math.max(waitMs, SHORT_PAUSE_MS)
    this.#waiting.push({ ...call, readyAt, retry: true })
    return true
  }

  /** True when the model and the run have requests left beyond the pending calls. */
  #hasRequestFor({ model }: QueuedCall): boolean {
    const queued = this.#waiting.filter((waiting) => waiting.model === model).length
    return (this.#requestsLeft.get(model) ?? 0) > queued && this.sent + this.#waiting.length < this.#budget
  }
}
