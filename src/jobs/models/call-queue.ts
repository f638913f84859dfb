import type { LiteQuestion } from '../../domain/models/lite/suite.ts'
import {
  LONGEST_ACCOUNT_PAUSE_MS,
  LONGEST_PAUSE_MS,
  WINDOW_MS,
  learnedRate,
  mayRetry,
  nextStart,
  vendorOf,
} from '../../domain/models/quota.ts'
import type { CallPlan, NextStart } from '../../domain/models/quota.ts'

/** A call that waits for its turn. */
export interface QueuedCall {
  model: string
  kind: LiteQuestion['kind']
  vendor: string
  /** By the clock that only goes forward. */
  readyAt: number
  retry: boolean
}

/** Before a question is asked again when the answer does not tell. */
export const SHORT_PAUSE_MS = 5_000

/** How often in a row the account's limit is waited for before it is taken to last. */
const WAITS_FOR_ACCOUNT = 3

export interface CallQueueOptions {
  plan: CallPlan
  /** Requests each model may be sent. */
  left: ReadonlyMap<string, number>
  startsAMinute: number
  /** Ages in milliseconds of requests that still fill the window. */
  recentAges: readonly number[]
  monotonic: () => number
}

/** The calls of a run that are still to come, and the pace they keep. */
export class CallQueue {
  readonly #monotonic: () => number
  readonly #budget: number
  readonly #left: Map<string, number>
  readonly #starts: number[]
  #others: number[] = []
  #waiting: QueuedCall[]
  #startsAMinute: number
  #learnedAt = -Infinity
  #notBefore = 0
  /** When the account's limit was met last, and how many windows it was met in with no answer in between. */
  #limitedAt = -Infinity
  #windows = 0
  #sent = 0
  /** The rate that was learned in this run; null while none was. */
  learned: number | null = null

  constructor({ plan, left, startsAMinute, recentAges, monotonic }: CallQueueOptions) {
    const now = monotonic()
    this.#monotonic = monotonic
    this.#budget = plan.budget
    this.#left = new Map(left)
    this.#starts = recentAges.map((ageMs) => now - ageMs).sort((a, b) => a - b)
    this.#startsAMinute = startsAMinute
    this.#waiting = plan.calls.map((call) => ({
      ...call,
      vendor: vendorOf(call.model),
      readyAt: now,
      retry: false,
    }))
  }

  /** Calls to come. */
  get length(): number {
    return this.#waiting.length
  }

  /** Calls that started. */
  get sent(): number {
    return this.#sent
  }

  /**
   * @param open vendors of the open calls
   * @param careful true to let one call go ahead of the others
   */
  next(open: readonly string[], careful: boolean): NextStart {
    const oneByOne = careful || this.#windows > 0
    const pace = { startsAMinute: this.#startsAMinute, notBefore: this.#notBefore, oneByOne }
    const starts = [...this.#starts, ...this.#others].sort((a, b) => a - b)
    return nextStart(this.#waiting, open, starts, pace, this.#monotonic())
  }

  take(index: number): QueuedCall | null {
    return this.#waiting.splice(index, 1)[0] ?? null
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
  start({ model }: QueuedCall): number {
    const now = this.#monotonic()
    this.#starts.push(now)
    this.#sent += 1
    this.#left.set(model, (this.#left.get(model) ?? 0) - 1)
    return now
  }

  /** Notes the requests of others with the same key that still fill the window, by their ages in milliseconds. */
  alsoSent(agesMs: readonly number[]): void {
    const now = this.#monotonic()
    this.#others = agesMs.map((ageMs) => now - ageMs)
  }

  /**
   * Lets nobody ask until the account's limit has ended; after that one call goes ahead of the others.
   *
   * @param startedAt when the call started that met it
   * @param waitMs as the answer tells; null when it does not
   * @param untoldMs the wait when it does not
   * @returns false when the limit lasts too long, or was waited for too often with no answer in between
   */
  waitForAccount(startedAt: number, waitMs: number | null, untoldMs: number): boolean {
    const now = this.#monotonic()
    // Calls that were open when the limit was met tell nothing new.
    if (startedAt > this.#limitedAt) this.#windows += 1
    this.#limitedAt = now
    const told = waitMs === null ? untoldMs : waitMs + 1_000
    // A time that did not help was told by another clock.
    const ms = this.#windows > 1 ? Math.max(told, WINDOW_MS) : told
    if (this.#windows > WAITS_FOR_ACCOUNT || ms > LONGEST_ACCOUNT_PAUSE_MS) return false
    this.#notBefore = Math.max(this.#notBefore, now + ms)
    return true
  }

  /** Notes that the service let a call pass that started at a time. */
  passed(startedAt: number): void {
    if (startedAt > this.#limitedAt) this.#windows = 0
  }

  /**
   * Keeps to a lower rate from now on; calls that started before the last lesson teach nothing new.
   *
   * @param limit requests a minute, as the account's limit was told
   */
  learn(limit: number | null, startedAt: number): void {
    if (startedAt < this.#learnedAt) return
    this.#learnedAt = this.#monotonic()
    this.#startsAMinute = learnedRate(this.#startsAMinute, limit)
    this.learned = this.#startsAMinute
  }

  /**
   * Puts a call back in front that the account's limit kept from its model. It is not asked in this run any more when the
   * model or the run has no request left for it.
   */
  putBack(call: QueuedCall): void {
    if (!mayRetry(this.#used(call))) return
    this.#waiting.unshift({ ...call, readyAt: this.#monotonic() })
  }

  /** As {@link putBack} for a call whose answer was taken for the model's own until others got the same. */
  putBackLate(call: QueuedCall): void {
    this.#waiting = this.#waiting.filter(({ model, kind }) => model !== call.model || kind !== call.kind)
    this.putBack(call)
  }

  /** Puts a call at the end; false when it may not be asked again, or would have to wait too long. */
  retry(call: QueuedCall, waitMs: number): boolean {
    if (call.retry || waitMs > LONGEST_PAUSE_MS) return false
    if (!mayRetry(this.#used(call))) return false
    const readyAt = this.#monotonic() + Math.max(waitMs, SHORT_PAUSE_MS)
    this.#waiting.push({ ...call, readyAt, retry: true })
    return true
  }

  /** Requests left of a call's model, less those to come, and what the run has used. */
  #used({ model }: QueuedCall): Parameters<typeof mayRetry>[0] {
    const toCome = this.#waiting.filter((waiting) => waiting.model === model).length
    return {
      left: (this.#left.get(model) ?? 0) - toCome,
      budget: this.#budget,
      sentInRun: this.#sent,
      unsentFirstCalls: this.#waiting.filter(({ retry }) => !retry).length,
    }
  }
}
