import { replayOf } from '../../../domain/agent/conversation.ts'
import type { Replay, Turn, Wishes } from '../../../domain/agent/conversation.ts'
import { cleanText } from '../../../domain/agent/answer-text.ts'
import type { AgentSession, ServedEvent } from '../../../domain/agent/schema.ts'
import type { PublicHost } from '../../../domain/ports.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { pause } from '../../process-identity.ts'
import type { Quota } from './messages.ts'

/** A refusal that ends so soon is waited out, so many times. */
const WAIT_MAX_SECONDS = 3
const WAITS_MAX = 2

/** What comes of a question, in order. Text is clean of everything a terminal would obey, but for line ends and tabs. */
export type TalkEvent =
  { kind: 'event'; served: ServedEvent } | { kind: 'text'; text: string } | { kind: 'renewed' }

/**
 * A talk with a server: its session, its turns and what is wished for. A session that the server no longer takes is
 * replaced and the question is sent once more, so that nothing typed is lost.
 */
export class Talk {
  readonly #api: PublicHost['chat']
  #session: Pick<AgentSession, 'sessionToken' | 'quotas'> | null = null
  #turns: Turn[] = []
  #lastQuestion: string | null = null
  /** True when the last question is the one of the last turn. */
  #lastAnswered = false
  wishes: Wishes
  /** As the server last told it; null before the first answer of a session. */
  quota: Quota | null = null

  constructor(api: PublicHost['chat'], wishes: Wishes) {
    this.#api = api
    this.wishes = wishes
  }

  get turns(): readonly Turn[] {
    return this.#turns
  }

  /** The question asked last, whatever came of it. */
  get lastQuestion(): string | null {
    return this.#lastQuestion
  }

  /** What the next request with this question holds. */
  replay(question: string, again = false): Replay {
    return replayOf(this.#before(again), question, this.wishes)
  }

  /**
   * Asks; what came of the answer stays part of the talk, however it ends.
   *
   * @param again true to replace the answer to the last question, once there is another
   * @throws Refusal of the interface, or the signal's reason
   */
  async *ask(question: string, signal: AbortSignal, again = false): AsyncGenerator<TalkEvent, void> {
    const { body } = this.replay(question, again)
    const before = this.#before(again)
    const { itemKey } = this.wishes
    this.#lastQuestion = question
    if (!again) this.#lastAnswered = false
    const text = cleanText()
    let answer = ''
    const take = function* (part: string): Generator<TalkEvent, void> {
      if (part === '') return
      answer += part
      yield { kind: 'text', text: part }
    }
    try {
      for await (const each of this.#events(body, signal)) {
        yield each
        if (each.kind === 'event' && each.served.event === 'delta')
          yield* take(text.push(each.served.data.text))
      }
      yield* take(text.end())
    } finally {
      if (answer.trim() !== '') {
        this.#turns = [...before, { itemKey, question, answer }]
        this.#lastAnswered = true
      }
    }
  }

  /** Forgets the turns, and has another session for what comes; the last question can still be asked again. */
  forget(): void {
    this.#turns = []
    this.#lastAnswered = false
    this.#session = null
    this.quota = null
  }

  #before(again: boolean): Turn[] {
    return again && this.#lastAnswered ? this.#turns.slice(0, -1) : this.#turns
  }

  /** Asks again after a refusal that ends soon, and once in a new session after one of an old session. */
  async *#events(body: string, signal: AbortSignal): AsyncGenerator<TalkEvent, void> {
    let isOld = this.#session !== null
    for (let waits = 0; ;) {
      const { sessionToken, quotas } = (this.#session ??= await this.#api.session(signal))
      try {
        for await (const served of this.#api.ask(sessionToken, body, signal)) {
          if (served.event === 'meta') this.quota = { remaining: served.data.remaining, quotas }
          yield { kind: 'event', served }
        }
        return
      } catch (error) {
        const seconds = waits < WAITS_MAX ? shortWaitOf(error) : null
        if (isOld && error instanceof Refusal && error.code === 'invalid_session') {
          isOld = false
          waits = 0
          this.#session = await this.#api.session(signal)
          yield { kind: 'renewed' }
        } else if (seconds === null) throw error
        else {
          waits += 1
          await pause(seconds * 1000, signal)
        }
      }
    }
  }
}

/** Seconds until a refused question may be asked again, when that is soon; a refusal comes before any event. */
function shortWaitOf(error: unknown): number | null {
  if (!(error instanceof Refusal) || error.code !== 'rate_limited') return null
  const seconds = error.members['retryAfterSeconds']
  return typeof seconds === 'number' && seconds <= WAIT_MAX_SECONDS ? seconds : null
}
