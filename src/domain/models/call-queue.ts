import type { LiteKind } from './lite/suite.ts'
import type { CallPlan } from './quota.ts'

/**
 * The pending calls of a run and their pace. Times are milliseconds of a monotonic clock, so that a change of the wall
 * clock cannot exceed a limit.
 */

/** Below the service's limit of 20 a minute. */
export const STARTS_PER_MINUTE = 19

/** One minute plus the longest network delay of a call. */
export const WINDOW_MS = 61_000

/** Most concurrent calls. */
const OPEN_AT_ONCE = 4

/** Longest wait for a model's own limit; a longer one fails the call. */
const LONGEST_PAUSE_MS = 65_000

/** Longest single wait for the account's limit; a longer one ends the run. */
const LONGEST_ACCOUNT_PAUSE_MS = 300_000

/** Most consecutive waits for the account's limit. */
const WAITS_FOR_ACCOUNT = 3

/** Delay of a retry when the response names no time. */
export const SHORT_PAUSE_MS = 5_000

/** A pending call. */
export interface QueuedCall {
  model: string
  kind: LiteKind
  /** The part of the model's id before the slash. Each vendor has at most one open call. */
  vendor: string
  readyAt: number
  retry: boolean
}

export type NextStart =
  | { do: 'start'; call: QueuedCall }
  /** No call may start before this time, unless an open call ends. */
  | { do: 'wait'; until: number }
  /** Wait for the end of an open call. */
  | { do: 'settle' }
  | { do: 'done' }

export interface CallQueueOptions {
  plan: Pick<CallPlan, 'calls' | 'budget'>
  /** Requests left for each model. */
  requestsLeft: ReadonlyMap<string, number>
  startsPerMinute: number
  /** Ages in milliseconds of recent requests that count in the window. */
  recentAges: readonly number[]
  monotonic: () => number
}

export class CallQueue {
  readonly #monotonic: () => number
  readonly #budget: number
  readonly #requestsLeft: Map<string, number>
  readonly #starts: number[]
  #otherStarts: number[] = []
  #waiting: QueuedCall[]
  #startsPerMinute: number
  #rateLoweredAt = -Infinity
  #notBefore = 0
  /** Time of the last account limit, and the number of limited windows in a row without a response. */
  #limitedAt = -Infinity
  #limitedWindows = 0
  /** Number of started calls. */
  sent = 0
  /** Calls a minute after a limit in this run; null without one. */
  learnedRate: number | null = null

  constructor({ plan, requestsLeft, startsPerMinute, recentAges, monotonic }: CallQueueOptions) {
    const now = monotonic()
    this.#monotonic = monotonic
    this.#budget = plan.budget
    this.#requestsLeft = new Map(requestsLeft)
    this.#starts = recentAges.map((ageMs) => now - ageMs)
    this.#startsPerMinute = startsPerMinute
    this.#waiting = plan.calls.map(({ model, kind }) => {
      const [vendor = model] = model.split('/', 1)
      return { model, kind, vendor, readyAt: now, retry: false }
    })
  }

  /** Number of pending calls. */
  get length(): number {
    return this.#waiting.length
  }

  /**
   * The next step; removes a call that starts from the queue.
   *
   * @param open vendors of the open calls
   * @param isSerial true to allow only one open call
   */
  next(open: readonly string[], isSerial: boolean): NextStart {
    if (this.#waiting.length === 0) return { do: open.length === 0 ? 'done' : 'settle' }
    const free = this.#waiting.filter(({ vendor }) => !open.includes(vendor))
    const maxOpen = isSerial || this.#limitedWindows > 0 ? 1 : OPEN_AT_ONCE
    if (open.length >= maxOpen || free.length === 0) return { do: 'settle' }
    const soonest = Math.min(...free.map(({ readyAt }) => readyAt))
    const now = this.#monotonic()
    const at = Math.max(soonest, this.#notBefore, this.#windowOpensAt())
    const call = free.find(({ readyAt }) => readyAt <= now)
    if (at > now || !call) return { do: 'wait', until: at }
    this.#waiting.splice(this.#waiting.indexOf(call), 1)
    return { do: 'start', call }
  }

  /** The earliest time at which another start keeps every window within the limit. */
  #windowOpensAt(): number {
    const starts = [...this.#starts, ...this.#otherStarts].sort((a, b) => a - b)
    return (starts.at(-this.#startsPerMinute) ?? -Infinity) + WINDOW_MS
  }

  clear(): void {
    this.#waiting = []
  }

  /** Removes and returns the pending calls of a model. */
  drop(model: string): QueuedCall[] {
    const dropped = this.#waiting.filter((call) => call.model === model)
    this.#waiting = this.#waiting.filter((call) => call.model !== model)
    return dropped
  }

  /** Records the start of a call; returns its time. */
  start({ model }: Pick<QueuedCall, 'model'>): number {
    const now = this.#monotonic()
    this.#starts.push(now)
    this.sent += 1
    this.#requestsLeft.set(model, (this.#requestsLeft.get(model) ?? 0) - 1)
    return now
  }

  /** Records requests by others with the same key in the window, by their ages in milliseconds. */
  noteOtherRequests(agesMs: readonly number[]): void {
    const now = this.#monotonic()
    this.#otherStarts = agesMs.map((ageMs) => now - ageMs)
  }

  /**
   * Pauses all calls until the account's limit has ended; then one call starts alone.
   *
   * @param startedAt start of the limited call
   * @param waitMs wait named by the response, or null
   * @param otherwiseMs the wait when the response names none
   * @returns false when the limit lasts too long, or was met too often in a row
   */
  waitForAccount(startedAt: number, waitMs: number | null, otherwiseMs: number): boolean {
    const now = this.#monotonic()
    // Calls that were already open add no information.
    if (startedAt > this.#limitedAt) this.#limitedWindows += 1
    this.#limitedAt = now
    const waitedMs = waitMs === null ? otherwiseMs : waitMs + 1_000
    // A wait that did not help came from a different clock.
    const ms = this.#limitedWindows > 1 ? Math.max(waitedMs, WINDOW_MS) : waitedMs
    if (this.#limitedWindows > WAITS_FOR_ACCOUNT || ms > LONGEST_ACCOUNT_PAUSE_MS) return false
    this.#notBefore = Math.max(this.#notBefore, now + ms)
    return true
  }

  /** Records that the service accepted a call that started at this time. */
  noteAccepted(startedAt: number): void {
    if (startedAt > this.#limitedAt) this.#limitedWindows = 0
  }

  /**
   * Lowers the rate to two below the limit that was met. Calls that started before the last change are ignored.
   *
   * @param limit requests a minute, when the response names them
   */
  lowerRate(limit: number | null, startedAt: number): void {
    if (startedAt < this.#rateLoweredAt) return
    this.#rateLoweredAt = this.#monotonic()
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
