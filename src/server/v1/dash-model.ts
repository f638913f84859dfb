import type { H3Event } from 'h3'
import { digestOfKey, keyCaller } from '../../domain/agent/credentials.ts'
import type { ChatKey } from '../../domain/agent/credentials.ts'
import { readCompletionRequest } from '../../domain/agent/chat-request.ts'
import type { AgentRefusal, AgentEvent, LastEvent } from '../../domain/agent/schema.ts'
import type { State } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { DASH_MODEL } from '../../domain/v1/completion-request.ts'
import type { V1Error } from '../../domain/v1/failures.ts'
import { AnswerStream, dataFrame } from '../agent/answer-stream.ts'
import type { OpenOutput, AnswerOutput, AnswerStreamOptions, FrameEvent } from '../agent/answer-stream.ts'
import type { CheckedRequest, KeyRefusal } from '../agent/admit-turn.ts'
import { fromQuotaStore, requireRunnable } from '../agent/service.ts'
import type { AgentPorts } from '../agent/service.ts'
import type { Turns } from '../agent/turn.ts'
import { NO_STORE, respondJson } from '../respond.ts'
import { V1Refusal, keyIn, NO_RETRY } from './contracts.ts'

/** Returns the active key of a text; null if it is no key, unknown or revoked. */
export type FindKey = (key: string) => Promise<ChatKey | null>

/** Finds keys in a store by their digests. */
export function findKeyIn(keys: Pick<State['chatKeys'], 'find'>): FindKey {
  return async (key) => {
    const digest = digestOfKey(key)
    return digest === null ? null : keys.find(digest)
  }
}

/**
 * Verifies the key of a request of chat completions for the model `dash`, before its body is read.
 *
 * @returns a function that answers the request; of its body, parsed as JSON, it reads `messages` and `stream`
 * @throws the refusals of the chat, as the function does
 */
export type AnswerAsDash = (event: H3Event) => Promise<(body: unknown) => Promise<Response>>

/** The grounded chat for callers with a key (docs/agent-chat.md#keys-for-servers). */
export function dashModel(ports: AgentPorts, handle: Turns['handle'], findKey: FindKey): AnswerAsDash {
  return async (event) => {
    const { provider } = await requireRunnable(ports)
    const key = await fromQuotaStore(findKey(keyIn(event)))
    if (key === null) throw new Refusal<KeyRefusal>('invalid_api_key')
    return async (body) => {
      const parsed = readCompletionRequest(body)
      if (!parsed.ok) throw new Refusal<AgentRefusal>(parsed.code)
      const { request } = parsed
      const checked: CheckedRequest = { request, address: keyCaller(key.id), caller: { key }, provider }
      return handle(event, checked, isStreamed(body) ? openStream(ports) : openWhole(ports), {})
    }
  }
}

function isStreamed(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'stream' in body && body.stream === true
}

const openStream =
  ({ clock }: AgentPorts): OpenOutput =>
  (options, turn) =>
    new AnswerStream(options, chunkFrames(completionHead(turn, clock())))

const openWhole =
  ({ clock }: AgentPorts): OpenOutput =>
  (options, turn) =>
    new WholeCompletion(options, completionHead(turn, clock()))

/** Answers of the chat as chat completions (docs/agent-chat.md#keys-for-servers). */

/** Members that every chunk of an answer repeats. */
interface CompletionHead {
  id: string
  /** Seconds since the epoch. */
  created: number
}

/** @param turn id of the turn, which the log names too */
function completionHead(turn: string, nowMs: number): CompletionHead {
  return { id: `chatcmpl-${turn}`, created: Math.floor(nowMs / 1000) }
}

/** Serialises events as chunks: the role, texts, then the end with the usage and `[DONE]`, or an error without it. */
function chunkFrames({ id, created }: CompletionHead): FrameEvent {
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
class WholeCompletion implements AnswerOutput {
  readonly #head: CompletionHead
  readonly #last: Promise<LastEvent | null>
  #resolve: (last: LastEvent | null) => void = () => undefined
  #text = ''
  isOpen = true

  constructor({ socket, onDisconnect }: AnswerStreamOptions, head: CompletionHead) {
    this.#head = head
    this.#last = new Promise((resolve) => (this.#resolve = resolve))
    socket?.once('close', () => {
      const wasOpen = this.isOpen
      this.end(null)
      if (wasOpen) onDisconnect()
    })
  }

  send(event: AgentEvent): Promise<void> {
    if (this.isOpen && event.event === 'delta') this.#text += event.data.text
    return Promise.resolve()
  }

  /** @param last null after the client disconnected */
  end(last: LastEvent | null): void {
    this.isOpen = false
    this.#resolve(last)
  }

  async respond(event: H3Event, headers: Readonly<Record<string, string>>): Promise<Response> {
    const last = await this.#last
    if (last === null) throw new V1Refusal({ status: 499, code: 'gone', message: 'the client disconnected' })
    // A repetition would count against the key's quota.
    if (last.event === 'error') throw new V1Refusal(errorOf(last), { headers: NO_RETRY })
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
}
