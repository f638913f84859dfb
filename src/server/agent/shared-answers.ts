import { EventEmitter, once } from 'node:events'
import { isLast } from '../../domain/agent/schema.ts'
import type { AgentEvent } from '../../domain/agent/schema.ts'

/** The reason of a signal that stops a turn, or the making of an answer. */
export class TurnAborted extends Error {
  override readonly name = 'Stopped'
  /** `left`: nobody reads any more; `time`: its time is over; `ending`: the server ends. */
  readonly reason: 'left' | 'time' | 'ending'

  constructor(reason: TurnAborted['reason']) {
    super(reason)
    this.reason = reason
  }
}

/**
 * Makes an answer; it ends with its last event.
 *
 * @param signal aborted when nobody reads the answer any more, or its time is over
 * @param withdraw keeps what comes next for the turn that began the answer
 */
export type GenerateAnswer = (signal: AbortSignal, stopSharing: () => void) => AsyncIterable<AgentEvent>

/** One turn's part in an answer. */
export interface SharedAnswer {
  /** True for the turn that began the answer. */
  isLeader: boolean
  /** Resolves when the making of the answer is over, whoever reads it; rejects with what it threw. */
  finished: Promise<void>
  /**
   * The answer from its beginning. Without a last event it was withdrawn: what comes next is for another turn.
   *
   * @param signal ends the reading; when the last reader leaves, the making is stopped at once
   */
  read(signal: AbortSignal): AsyncGenerator<AgentEvent, void>
}

/** Answers being made. Identical turns share one, which belongs to none of them. */
export class SharedAnswers {
  readonly #byKey = new Map<string, SharedGeneration>()
  readonly #timeoutMs: number

  /** @param timeoutMs longest that an answer is made; it may be joined for half of that */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * The answer that is being made under a key, or a new one.
   *
   * @param key of everything that shapes the answer; null: never shared
   * @param isShared whether others may read the answer that is begun
   */
  join(key: string | null, isShared: boolean, generate: GenerateAnswer): SharedAnswer {
    const running = key === null ? undefined : this.#byKey.get(key)
    if (running?.isJoinable) return running.handleFor(false)
    const generation = new SharedGeneration(generate, this.#timeoutMs)
    if (key !== null && isShared) this.#share(key, generation)
    return generation.handleFor(true)
  }

  #share(key: string, generation: SharedGeneration): void {
    this.#byKey.set(key, generation)
    const forget = (): void => {
      if (this.#byKey.get(key) === generation) this.#byKey.delete(key)
    }
    void generation.finished.then(forget, forget)
  }
}

/** An answer being made, at the pace of its fastest reader. */
class SharedGeneration {
  readonly finished: Promise<void>
  readonly #startedAt = performance.now()
  readonly #timeoutMs: number
  readonly #controller = new AbortController()
  /** `event`: readers have more to look at; `requested`: the making may go on. */
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #events: AgentEvent[] = []
  /** Place of the furthest event that a reader asked for. */
  #requestedIndex = -1
  /** Events that other turns than the one that began the answer may read. */
  #sharedCount = Infinity
  #leaderReads = true
  #followers = 0
  #isComplete = false
  #isFinished = false

  constructor(generate: GenerateAnswer, timeoutMs: number) {
    this.#timeoutMs = timeoutMs
    const timer = setTimeout(() => this.#abort('time'), timeoutMs)
    this.finished = this.#generate(generate).finally(() => {
      clearTimeout(timer)
      this.#isFinished = true
      this.#emitter.emit('event')
    })
    // A failure reaches every reader; there may be none left.
    this.finished.catch(() => undefined)
  }

  get isJoinable(): boolean {
    const isRecent = performance.now() - this.#startedAt < this.#timeoutMs / 2
    return isRecent && this.#sharedCount === Infinity && !this.#controller.signal.aborted
  }

  handleFor(isLeader: boolean): SharedAnswer {
    return { isLeader, finished: this.finished, read: (signal) => this.#read(isLeader, signal) }
  }

  async #generate(generate: GenerateAnswer): Promise<void> {
    const { signal } = this.#controller
    for await (const event of generate(signal, () => this.#stopSharing())) {
      this.#events.push(event)
      this.#isComplete = isLast(event)
      this.#emitter.emit('event')
      while (!this.#isComplete && this.#requestedIndex < this.#events.length && !signal.aborted)
        await once(this.#emitter, 'requested')
    }
  }

  async *#read(isLeader: boolean, signal: AbortSignal): AsyncGenerator<AgentEvent, void> {
    if (!isLeader) this.#followers += 1
    try {
      for (let index = 0; ; index += 1) {
        const event = await this.#eventAt(index, isLeader, signal)
        if (event) yield event
        if (!event || isLast(event)) return
      }
    } finally {
      if (isLeader) this.#leaderReads = false
      else this.#followers -= 1
      this.#abortUnlessRead()
    }
  }

  /** The event at a place once it is there; null where it is withdrawn. */
  async #eventAt(index: number, isLeader: boolean, signal: AbortSignal): Promise<AgentEvent | null> {
    for (;;) {
      signal.throwIfAborted()
      if (!isLeader && index >= this.#sharedCount) return null
      const event = this.#events[index]
      if (event) return event
      if (this.#isFinished) return this.#endedEarly()
      this.#requestedIndex = Math.max(this.#requestedIndex, index)
      this.#emitter.emit('requested')
      await once(this.#emitter, 'event', { signal })
    }
  }

  async #endedEarly(): Promise<never> {
    await this.finished
    throw new Error('an answer ended without its last event')
  }

  #stopSharing(): void {
    this.#sharedCount = this.#events.length
    this.#emitter.emit('event')
    this.#abortUnlessRead()
  }

  /** Once the last event is there, an answer is made to its end, whoever leaves. */
  #abortUnlessRead(): void {
    const isRead = this.#leaderReads || (this.#followers > 0 && this.#sharedCount === Infinity)
    if (!isRead && !this.#isComplete) this.#abort('left')
  }

  #abort(reason: TurnAborted['reason']): void {
    this.#controller.abort(new TurnAborted(reason))
    this.#emitter.emit('requested')
  }
}
