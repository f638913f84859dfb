import type { LiteQuestion } from '../domain/models/lite/suite.ts'
import { learnedRate, LONGEST_PAUSE_MS, nextStart, vendorOf } from '../domain/models/pacing.ts'
import type { NextStart } from '../domain/models/pacing.ts'
import { mayRetry } from '../domain/models/quota.ts'
import type { CallPlan } from '../domain/models/quota.ts'

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

export interface CallQueueOptions {
  plan: CallPlan
  /** Requests each model was sent today. */
  sentToday: ReadonlyMap<string, number>
  startsAMinute: number
  /** Ages in milliseconds of requests that still fill the window. */
  recentAges: readonly number[]
  monotonic: () => number
}

/** The calls of a run that are still to come, and the pace they keep. */
export class CallQueue {
  readonly #monotonic: () => number
  readonly #budget: number
  readonly #sentToday: Map<string, number>
  readonly #starts: number[]
  #waiting: QueuedCall[]
  #startsAMinute: number
  #learnedAt = -Infinity
  #notBefore = 0
  #sent = 0
  /** The rate that was learned in this run; null while none was. */
  learned: number | null = null

  constructor({ plan, sentToday, startsAMinute, recentAges, monotonic }: CallQueueOptions) {
    const now = monotonic()
    this.#monotonic = monotonic
    this.#budget = plan.budget
    this.#sentToday = new Map(sentToday)
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

  /** @param open vendors of the open calls */
  next(open: readonly string[]): NextStart {
    const pace = { startsAMinute: this.#startsAMinute, notBefore: this.#notBefore }
    return nextStart(this.#waiting, open, this.#starts, pace, this.#monotonic())
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
    this.#sentToday.set(model, (this.#sentToday.get(model) ?? 0) + 1)
    return now
  }

  /** Lets nobody ask for a while. */
  pause(ms: number): void {
    this.#notBefore = Math.max(this.#notBefore, this.#monotonic() + Math.min(LONGEST_PAUSE_MS, ms))
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

  /** Puts a call at the end; false when it may not be asked again, or would have to wait too long. */
  retry(call: QueuedCall, waitMs: number): boolean {
    if (call.retry || waitMs > LONGEST_PAUSE_MS) return false
    const toCome = this.#waiting.filter(({ model }) => model === call.model).length
    const used = {
      sentToday: (this.#sentToday.get(call.model) ?? 0) + toCome,
      budget: this.#budget,
      sentInRun: this.#sent,
      unsentFirstCalls: this.#waiting.filter(({ retry }) => !retry).length,
    }
    if (!mayRetry(used)) return false
    const readyAt = this.#monotonic() + Math.max(waitMs, SHORT_PAUSE_MS)
    this.#waiting.push({ ...call, readyAt, retry: true })
    return true
  }
}
