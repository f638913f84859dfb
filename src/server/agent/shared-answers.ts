import { EventEmitter, once } from 'node:events'
import { isLastEvent } from '../../domain/agent/schema.ts'
import type { AgentEvent } from '../../domain/agent/schema.ts'

/** The abort reason of a turn or of the generation of an answer. */
export class TurnAborted extends Error {
  override readonly name = 'Stopped'
  /** `left`: every client disconnected; `time`: timeout; `ending`: the server shuts down. */
  readonly reason: 'left' | 'time' | 'ending'

  constructor(reason: TurnAborted['reason']) {
    super(reason)
    this.reason = reason
  }
}

/**
 * Generates the events of an answer, the terminal event last.
 *
 * @param signal aborted when no client reads the answer any more, or on timeout
 * @param stopSharing reserves the following events for the turn that started the answer
 */
export type GenerateAnswer = (signal: AbortSignal, stopSharing: () => void) => AsyncIterable<AgentEvent>

/** One turn's access to a shared answer. */
export interface SharedAnswer {
  /** True for the turn that started the answer. */
  isLeader: boolean
  /** Resolves when the generation of the answer ends; rejects with its error. */
  finished: Promise<void>
  /**
   * Yields the answer from its start. If the terminal event is missing, sharing has stopped.
   *
   * @param signal ends the reading; the generation is aborted when the last reader leaves
   */
  read(signal: AbortSignal): AsyncGenerator<AgentEvent, void>
}

/** Answers that are being generated. Identical turns share one. */
export class SharedAnswers {
  readonly #byKey = new Map<string, SharedGeneration>()
  readonly #timeoutMs: number

  /** @param timeoutMs longest generation of an answer; other turns can join during the first half */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * Joins the answer that is being generated under a key, or starts one.
   *
   * @param key digest of everything that influences the answer; null if it must not be shared
   * @param isShared whether other turns may read an answer started by this call
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

/** An answer that is being generated at the pace of its fastest reader. */
class SharedGeneration {
  readonly finished: Promise<void>
  readonly #startedAt = performance.now()
  readonly #timeoutMs: number
  readonly #controller = new AbortController()
  /** `event`: a new event is available; `requested`: the generation may continue. */
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #events: AgentEvent[] = []
  /** Highest index of an event that a reader requested. */
  #requestedIndex = -1
  /** Number of events that turns other than the leader may read. */
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
    // Readers receive the error; avoid an unhandled rejection if none is left.
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
      this.#isComplete = isLastEvent(event)
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
        if (!event || isLastEvent(event)) return
      }
    } finally {
      if (isLeader) this.#leaderReads = false
      else this.#followers -= 1
      this.#abortUnlessRead()
    }
  }

  /** Waits for the event at an index; null if it is not shared. */
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
    throw new Error('an answer ended without a final event')
  }

  #stopSharing(): void {
    this.#sharedCount = this.#events.length
    this.#emitter.emit('event')
    this.#abortUnlessRead()
  }

  /** Aborts the generation if no reader is left and the terminal event is still missing. */
  #abortUnlessRead(): void {
    const isRead = this.#leaderReads || (this.#followers > 0 && this.#sharedCount === Infinity)
    if (!isRead && !this.#isComplete) this.#abort('left')
  }

  #abort(reason: TurnAborted['reason']): void {
    this.#controller.abort(new TurnAborted(reason))
    this.#emitter.emit('requested')
  }
}
