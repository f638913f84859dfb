import { replayOf } from '../../../domain/agent/conversation.ts'
import type { Replay, Turn, TurnOptions } from '../../../domain/agent/conversation.ts'
import { cleaningFilter } from '../../../domain/answers/answer-text.ts'
import type { AgentSession, ServedEvent } from '../../../domain/agent/schema.ts'
import type { ChatApi } from '../../container.ts'
import { isRefusal } from '../../../domain/refusal.ts'
import type { Quota } from './messages.ts'

/** Event of a question, in order. Text has no control characters but line ends and tabs. */
export type TalkEvent =
  { kind: 'event'; served: ServedEvent } | { kind: 'text'; text: string } | { kind: 'renewed' }

/**
 * Conversation with a server: its session, turns and preferences. If the server no longer accepts the session, it
 * is replaced and the question is sent once more, so that no typed text is lost.
 */
export class Talk {
  readonly #api: ChatApi
  #session: Pick<AgentSession, 'sessionToken' | 'quotas'> | null = null
  turns: readonly Turn[] = []
  /** The last question, answered or not. */
  lastQuestion: string | null = null
  /** True if the last question belongs to the last turn. */
  #lastAnswered = false
  preferences: TurnOptions
  /** Quota as the server last reported it; null before the first answer of a session. */
  quota: Quota | null = null

  constructor(api: ChatApi, preferences: TurnOptions) {
    this.#api = api
    this.preferences = preferences
  }

  /** Returns the content of the next request with this question. */
  replay(question: string, again = false): Replay {
    return replayOf(this.#before(again), question, this.preferences)
  }

  /**
   * Asks a question and yields its events. The partial answer stays in the conversation, however the turn ends.
   *
   * @param again true to replace the answer to the last question, once new text has arrived
   * @throws Refusal of the chat API, or the signal's reason
   */
  async *ask(question: string, signal: AbortSignal, again = false): AsyncGenerator<TalkEvent, void> {
    const { body } = this.replay(question, again)
    const before = this.#before(again)
    const { itemKey } = this.preferences
    this.lastQuestion = question
    if (!again) this.#lastAnswered = false
    const text = cleaningFilter()
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
        this.turns = [...before, { itemKey, question, answer }]
        this.#lastAnswered = true
      }
    }
  }

  /** Drops the turns and the session; the last question can still be asked again. */
  forget(): void {
    this.turns = []
    this.#lastAnswered = false
    this.#session = null
    this.quota = null
  }

  #before(again: boolean): readonly Turn[] {
    return again && this.#lastAnswered ? this.turns.slice(0, -1) : this.turns
  }

  /** Yields the events of a request; repeats it once in a new session if the old one is refused. */
  async *#events(body: string, signal: AbortSignal): AsyncGenerator<TalkEvent, void> {
    const isOld = this.#session !== null
    try {
      yield* this.#request(body, signal)
    } catch (error) {
      if (!isOld || !isRefusal(error, 'invalid_session')) throw error
      this.#session = await this.#api.session(signal)
      yield { kind: 'renewed' }
      yield* this.#request(body, signal)
    }
  }

  async *#request(body: string, signal: AbortSignal): AsyncGenerator<TalkEvent, void> {
    const { sessionToken, quotas } = (this.#session ??= await this.#api.session(signal))
    for await (const served of this.#api.ask(sessionToken, body, signal)) {
      if (served.event === 'meta') this.quota = { remaining: served.data.remaining, quotas }
      yield { kind: 'event', served }
    }
  }
}
