import { EventEmitter, once } from 'node:events'
import { isLastEvent } from '../../domain/agent/schema.ts'
import type { AgentEvent } from '../../domain/agent/schema.ts'

/** The reason of a signal that stops a turn, or the making of an answer. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
  /** `left`: nobody reads any more; `time`: its time is over; `ending`: the server ends. */
  readonly why: 'left' | 'time' | 'ending'

  constructor(why: Stopped['why']) {
    super(why)
    this.why = why
  }
}

/**
 * Makes an answer; it ends with its last event.
 *
 * @param signal aborted when nobody reads the answer any more, or its time is over
 * @param withdraw keeps what comes next for the turn that began the answer
 */
export type MakeAnswer = (signal: AbortSignal, withdraw: () => void) => AsyncIterable<AgentEvent>

/** One turn's part in an answer. */
export interface SharedAnswer {
  /** True for the turn that began the answer. */
  leads: boolean
  /** Resolves when the making of the answer is over, whoever reads it; rejects with what it threw. */
  made: Promise<void>
  /**
   * The answer from its beginning. Without a last event it was withdrawn: what comes next is for another turn.
   *
   * @param signal ends the reading; when the last reader leaves, the making is stopped at once
   */
  read(signal: AbortSignal): AsyncGenerator<AgentEvent, void>
}

/** Answers being made. Identical turns share one, which belongs to none of them. */
export class SharedAnswers {
  readonly #byKey = new Map<string, Making>()
  readonly #timeMs: number

  /** @param timeMs longest that an answer is made; it may be joined for half of that */
  constructor(timeMs: number) {
    this.#timeMs = timeMs
  }

  /**
   * The answer that is being made under a key, or a new one.
   *
   * @param key of everything that shapes the answer; null: never shared
   * @param isOffered whether others may read the answer that is begun
   */
  join(key: string | null, isOffered: boolean, make: MakeAnswer): SharedAnswer {
    const running = key === null ? undefined : this.#byKey.get(key)
    if (running?.isOffered) return running.sharedWith(false)
    const making = new Making(make, this.#timeMs)
    if (key !== null && isOffered) this.#offer(key, making)
    return making.sharedWith(true)
  }

  #offer(key: string, making: Making): void {
    this.#byKey.set(key, making)
    const forget = (): void => {
      if (this.#byKey.get(key) === making) this.#byKey.delete(key)
    }
    void making.made.then(forget, forget)
  }
}

/** An answer being made, at the pace of its fastest reader. */
class Making {
  readonly made: Promise<void>
  readonly #startedAt = performance.now()
  readonly #timeMs: number
  readonly #stop = new AbortController()
  /** `event`: readers have more to look at; `wanted`: the making may go on. */
  readonly #bell = new EventEmitter().setMaxListeners(0)
  readonly #events: AgentEvent[] = []
  /** Place of the furthest event that a reader asked for. */
  #wanted = -1
  /** Events that other turns than the one that began the answer may read. */
  #shared = Infinity
  #leaderReads = true
  #followers = 0
  #isWhole = false
  #isOver = false

  constructor(make: MakeAnswer, timeMs: number) {
    this.#timeMs = timeMs
    const timer = setTimeout(() => this.#abort('time'), timeMs)
    this.made = this.#make(make).finally(() => {
      clearTimeout(timer)
      this.#isOver = true
      this.#bell.emit('event')
    })
    // A failure reaches every reader; there may be none left.
    this.made.catch(() => undefined)
  }

  get isOffered(): boolean {
    const isYoung = performance.now() - this.#startedAt < this.#timeMs / 2
    return isYoung && this.#shared === Infinity && !this.#stop.signal.aborted
  }

  sharedWith(leads: boolean): SharedAnswer {
    return { leads, made: this.made, read: (signal) => this.#read(leads, signal) }
  }

  async #make(make: MakeAnswer): Promise<void> {
    const { signal } = this.#stop
    for await (const event of make(signal, () => this.#withdraw())) {
      this.#events.push(event)
      this.#isWhole = isLastEvent(event)
      this.#bell.emit('event')
      while (!this.#isWhole && this.#wanted < this.#events.length && !signal.aborted)
        await once(this.#bell, 'wanted')
    }
  }

  async *#read(leads: boolean, signal: AbortSignal): AsyncGenerator<AgentEvent, void> {
    if (!leads) this.#followers += 1
    try {
      for (let at = 0; ; at += 1) {
        const event = await this.#eventAt(at, leads, signal)
        if (event) yield event
        if (!event || isLastEvent(event)) return
      }
    } finally {
      if (leads) this.#leaderReads = false
      else this.#followers -= 1
      this.#abandonUnlessRead()
    }
  }

  /** The event at a place once it is there; null where it is withdrawn. */
  async #eventAt(at: number, leads: boolean, signal: AbortSignal): Promise<AgentEvent | null> {
    for (;;) {
      signal.throwIfAborted()
      if (!leads && at >= this.#shared) return null
      const event = this.#events[at]
      if (event) return event
      if (this.#isOver) return this.#endedEarly()
      this.#wanted = Math.max(this.#wanted, at)
      this.#bell.emit('wanted')
      await once(this.#bell, 'event', { signal })
    }
  }

  async #endedEarly(): Promise<never> {
    await this.made
    throw new Error('an answer ended without a final event')
  }

  #withdraw(): void {
    this.#shared = this.#events.length
    this.#bell.emit('event')
    this.#abandonUnlessRead()
  }

  /** Once the last event is there, an answer is made to its end, whoever leaves. */
  #abandonUnlessRead(): void {
    const isRead = this.#leaderReads || (this.#followers > 0 && this.#shared === Infinity)
    if (!isRead && !this.#isWhole) this.#abort('left')
  }

  #abort(why: Stopped['why']): void {
    this.#stop.abort(new Stopped(why))
    this.#bell.emit('wanted')
  }
}
