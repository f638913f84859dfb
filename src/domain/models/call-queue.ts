import type { LiteKind } from './lite/suite.ts'
import type { CallPlan } from './quota.ts'

/**
 * The calls of a run that are still to come, and their pace. Times are milliseconds of a clock that only goes forward, so
 * that a wall clock that is set cannot crowd a minute.
 */

/** Fewer than the service's limit of 20 a minute. */
export const STARTS_PER_MINUTE = 19

/** A minute, and the longest delay of a call on its way. */
export const WINDOW_MS = 61_000

/** Calls open at the same time. */
const OPEN_AT_ONCE = 4

/** No model is waited for longer than this; a limit of its own that lasts longer costs the call. */
const LONGEST_PAUSE_MS = 65_000

/** The account is waited for no longer than this at a time; a limit that lasts longer ends the run. */
const LONGEST_ACCOUNT_PAUSE_MS = 300_000

/** How often in a row the account's limit is waited for before it is taken to last. */
const WAITS_FOR_ACCOUNT = 3

/** Before a retry when the response names no time. */
export const SHORT_PAUSE_MS = 5_000

/** A call that waits for its turn. */
export interface QueuedCall {
  model: string
  kind: LiteKind
  /** The part of the model's id before the slash: one call at a time goes to each. */
  vendor: string
  readyAt: number
  retry: boolean
}

export type NextStart =
  | { do: 'start'; call: QueuedCall }
  /** Nothing may start before this time, unless an open call ends. */
  | { do: 'wait'; until: number }
  /** Only the end of an open call can change anything. */
  | { do: 'settle' }
  | { do: 'done' }

export interface CallQueueOptions {
  plan: Pick<CallPlan, 'calls' | 'budget'>
  /** Requests each model may be sent. */
  requestsLeft: ReadonlyMap<string, number>
  startsPerMinute: number
  /** Ages in milliseconds of requests that still fill the window. */
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
  /** When the account's limit was met last, and how many windows it was met in with no answer in between. */
  #limitedAt = -Infinity
  #limitedWindows = 0
  /** Calls that started. */
  sent = 0
  /** The rate that was learned in this run; null while none was. */
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

  /** Calls to come. */
  get length(): number {
    return this.#waiting.length
  }

  /**
   * The next thing to do; a call that is to start is taken out of the queue.
   *
   * @param open vendors of the open calls
   * @param isSerial true to let one call go ahead of the others
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

  /** The earliest time at which one more start keeps every window under its limit. */
  #windowOpensAt(): number {
    const starts = [...this.#starts, ...this.#otherStarts].sort((a, b) => a - b)
    return (starts.at(-this.#startsPerMinute) ?? -Infinity) + WINDOW_MS
  }

  clear(): void {
    this.#waiting = []
  }

  /** Takes the calls of a model out that are still to come. */
  drop(model: string): QueuedCall[] {
    const dropped = this.#waiting.filter((call) => call.model === model)
    this.#waiting = this.#waiting.filter((call) => call.model !== model)
    return dropped
  }

  /** Notes that a call starts now; returns when that is. */
  start({ model }: Pick<QueuedCall, 'model'>): number {
    const now = this.#monotonic()
    this.#starts.push(now)
    this.sent += 1
    this.#requestsLeft.set(model, (this.#requestsLeft.get(model) ?? 0) - 1)
    return now
  }

  /** Notes the requests of others with the same key that still fill the window, by their ages in milliseconds. */
  noteOtherRequests(agesMs: readonly number[]): void {
    const now = this.#monotonic()
    this.#otherStarts = agesMs.map((ageMs) => now - ageMs)
  }

  /**
   * Lets no call start until the account's limit has ended; after that one call goes ahead of the others.
   *
   * @param startedAt when the call started that met it
   * @param waitMs as the response says, or null
   * @param otherwiseMs the wait when it does not
   * @returns false when the limit lasts too long, or was waited for too often with no answer in between
   */
  waitForAccount(startedAt: number, waitMs: number | null, otherwiseMs: number): boolean {
    const now = this.#monotonic()
    // Calls that were open when the limit was met say nothing new.
    if (startedAt > this.#limitedAt) this.#limitedWindows += 1
    this.#limitedAt = now
    const waitedMs = waitMs === null ? otherwiseMs : waitMs + 1_000
    // A time that did not help was named by another clock.
    const ms = this.#limitedWindows > 1 ? Math.max(waitedMs, WINDOW_MS) : waitedMs
    if (this.#limitedWindows > WAITS_FOR_ACCOUNT || ms > LONGEST_ACCOUNT_PAUSE_MS) return false
    this.#notBefore = Math.max(this.#notBefore, now + ms)
    return true
  }

  /** Notes that the service let a call pass that started at a time. */
  noteAccepted(startedAt: number): void {
    if (startedAt > this.#limitedAt) this.#limitedWindows = 0
  }

  /**
   * Keeps two below the limit that was met from now on; calls that started before the last lesson teach nothing new.
   *
   * @param limit requests a minute, where the account's limit names them
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
   * Puts a call back in front that the account's limit kept from its model, in place of its retry where one waits. It is
   * not sent in this run any more when the model or the run has no request left for it.
   */
  requeue(call: QueuedCall): void {
    this.#waiting = this.#waiting.filter(({ model, kind }) => model !== call.model || kind !== call.kind)
    if (this.#hasRequestFor(call)) this.#waiting.unshift({ ...call, readyAt: this.#monotonic() })
  }

  /** Puts a call at the end; false when it may not be sent again, or would have to wait too long. */
  retry(call: QueuedCall, waitMs: number): boolean {
    if (call.retry || waitMs > LONGEST_PAUSE_MS || !this.#hasRequestFor(call)) return false
    const readyAt = this.#monotonic() + Math.max(waitMs, SHORT_PAUSE_MS)
    this.#waiting.push({ ...call, readyAt, retry: true })
    return true
  }

  /** True while the model and the run have a request left once every call to come is taken off. */
  #hasRequestFor({ model }: QueuedCall): boolean {
    const queued = this.#waiting.filter((waiting) => waiting.model === model).length
    return (this.#requestsLeft.get(model) ?? 0) > queued && this.sent + this.#waiting.length < this.#budget
  }
}
