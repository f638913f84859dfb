import type { H3Event } from 'h3'
import type { AgentEvent, LastEvent } from '../../domain/agent/schema.ts'
import { dataFrame } from '../agent/answer-stream.ts'
import type { AnswerOutput, AnswerStreamOptions, FrameEvent } from '../agent/answer-stream.ts'
import { NO_STORE, notesOf, respondJson } from '../respond.ts'
import { DASH_MODEL } from '../../domain/v1/completion-request.ts'
import type { V1Error } from '../../domain/v1/failures.ts'
import { NO_RETRY, V1Refusal } from './errors.ts'

/** Answers of the chat as chat completions (docs/agent-chat.md#keys-for-servers). */

/** Members that every chunk of an answer repeats. */
interface CompletionHead {
  id: string
  /** Seconds since the epoch. */
  created: number
}

/** @param turn id of the turn, which the log names too */
export function completionHead(turn: string, nowMs: number): CompletionHead {
  return { id: `chatcmpl-${turn}`, created: Math.floor(nowMs / 1000) }
}

/** Serialises events as chunks: the role, texts, then the end with the usage and `[DONE]`, or an error without it. */
export function chunkFrames({ id, created }: CompletionHead): FrameEvent {
  const chunk = (delta: object, end: object = { finish_reason: null }, more: object = {}): string =>
    dataFrame({
      id,
      object: 'chat.completion.chunk',
      created,
      model: DASH_MODEL,
      choices: [{ index: 0, delta, ...end }],
      ...more,
    })
  return (event) => {
    if (event.event === 'meta') return chunk({ role: 'assistant', content: '' })
    if (event.event === 'delta') return chunk({ content: event.data.text })
    if (event.event === 'done') return `${chunk({}, STOPPED, { usage: usageOf(event) })}data: [DONE]\n\n`
    return event.event === 'error' ? dataFrame(new V1Refusal(errorOf(event)).body()) : ''
  }
}

const STOPPED = { finish_reason: 'stop' }

type DoneEvent = AgentEvent & { event: 'done' }
type ErrorEvent = AgentEvent & { event: 'error' }

function usageOf({ data }: DoneEvent): object {
  const { in: input, out, cached } = data.usage
  return {
    prompt_tokens: input,
    completion_tokens: out,
    total_tokens: input + out,
    prompt_tokens_details: { cached_tokens: cached },
  }
}

/** HTTP status of a failed answer that is not streamed. */
const statusOf = ({ data }: ErrorEvent): number => (data.error === 'timeout' ? 504 : 502)

function errorOf(event: ErrorEvent): V1Error {
  const { error, code } = event.data
  const reason = error === 'timeout' ? 'the answer took too long' : 'the model behind the chat failed'
  return { status: statusOf(event), code: error, message: `${reason} (${code}); send the request again` }
}

/** An answer as one document, sent when it is complete. */
export class WholeCompletion implements AnswerOutput {
  readonly #head: CompletionHead
  readonly #socket: AnswerStreamOptions['socket']
  readonly #last: Promise<LastEvent | null>
  #resolve: (last: LastEvent | null) => void = () => undefined
  #text = ''
  #state: 'open' | 'ended' | 'closed' = 'open'
  #wasCut = false

  constructor({ socket, onDisconnect }: AnswerStreamOptions, head: CompletionHead) {
    this.#head = head
    this.#socket = socket
    this.#last = new Promise((resolve) => (this.#resolve = resolve))
    socket?.once('close', () => this.#close(onDisconnect))
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  get wasCut(): boolean {
    return this.#wasCut
  }

  send(event: AgentEvent): Promise<void> {
    if (this.isOpen && event.event === 'delta') this.#text += event.data.text
    return Promise.resolve()
  }

  end(event: LastEvent, heldUntil: Promise<void> = Promise.resolve()): void {
    if (!this.isOpen) return
    this.#state = 'ended'
    const finish = (): void => this.#resolve(event)
    void heldUntil.then(finish, finish)
  }

  async respond(event: H3Event, headers: Readonly<Record<string, string>>): Promise<Response> {
    const last = await this.#last
    if (last === null) throw new V1Refusal({ status: 499, code: 'gone', message: 'the client disconnected' })
    // A repetition would count against the key's quota.
    if (last.event === 'error') throw new V1Refusal(errorOf(last), {}, NO_RETRY)
    return respondJson(event, 200, { ...headers, ...NO_STORE }, this.#document(last))
  }

  #document(done: DoneEvent): object {
    const { id, created } = this.#head
    const message = { role: 'assistant', content: this.#text, refusal: null }
    return {
      id,
      object: 'chat.completion',
      created,
      model: DASH_MODEL,
      choices: [{ index: 0, message, logprobs: null, ...STOPPED }],
      usage: usageOf(done),
    }
  }

  #close(onDisconnect: () => void): void {
    if (!this.isOpen) return
    this.#wasCut = notesOf(this.#socket).cut === true
    this.#state = 'closed'
    onDisconnect()
    this.#resolve(null)
  }
}
