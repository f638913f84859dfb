import type { ModelCall, ModelEvent } from '../../domain/agent/model-call.ts'
import type { ChatModel } from '../../domain/ports.ts'
import type { StreamBounds } from '../sse-parser.ts'
import { chatFormat } from './chat-completions.ts'
import { ProviderStream } from './provider-stream.ts'
import type { IdleTimeouts } from './provider-stream.ts'
import { responsesFormat } from './responses.ts'
import { ProviderFailure, openUpstream } from './upstream.ts'
import type { Upstream } from './upstream.ts'
import type { RoundEnd, Target, WireFormat } from './wire-format.ts'

export interface ChatModelOptions extends IdleTimeouts {
  /** API base, without a slash at its end. The key is sent to nowhere else. */
  base: string
  /** null for a provider that wants none. */
  key: string | null
  model: string
  api: 'responses' | 'chat'
}

/**
 * A model behind a provider's API. A round ends with one `end` or `failed`, whatever the provider does: silence, bytes
 * without an end, no event stream, a stream that stops (docs/agent-chat.md). The whole turn's time is the caller's
 * to bound, by the signal. Nothing of an error's text is given out.
 */
export function openChatModel(options: ChatModelOptions): ChatModel {
  const upstream = openUpstream(options)
  const format = options.api === 'responses' ? responsesFormat() : chatFormat
  return {
    name: () => Promise.resolve(options.model),
    async *ask(call, signal) {
      const to = { model: options.model }
      for await (const event of askOnce(upstream, format, options, to, call, signal)) yield published(event)
    },
    close: () => upstream.close(),
  }
}

/** An event as it is passed on: without evidence, which holds text of the provider's. */
export function published(event: RoundEvent): ModelEvent {
  if (event.kind !== 'failed') return event
  const { evidence: _evidence, ...failed } = event
  return failed
}

const KIB = 1024

/** Least bounds of a stream, and how many bytes each token allowed may add to them. */
const EVENT_MAX_BYTES = 256 * KIB
const EVENT_BYTES_A_TOKEN = 32
const ROUND_MAX_BYTES = 1024 * KIB
const ROUND_BYTES_A_TOKEN = KIB

/** Of one round: texts, then its end. */
export type RoundEvent = { kind: 'text'; text: string } | RoundEnd

/**
 * Asks once.
 *
 * @throws the signal's reason, and nothing of the provider's
 */
export async function* askOnce(
  upstream: Upstream,
  format: WireFormat,
  limits: IdleTimeouts,
  to: Target,
  call: ModelCall,
  signal: AbortSignal,
): AsyncGenerator<RoundEvent> {
  signal.throwIfAborted()
  const reply = new ProviderStream(upstream, limits, boundsOf(call), signal)
  let whole = false
  try {
    await reply.open((ended) => format.send(upstream, to, call, ended))
    const parser = format.parser(to, call)
    for (;;) {
      const { closingMs } = parser
      const event = await (closingMs === null ? reply.next() : reply.next(closingMs).catch(nothingMore))
      signal.throwIfAborted()
      const { text, end } = event === null ? { end: parser.endOfStream() } : parser.parse(event)
      if (text !== undefined) yield { kind: 'text', text }
      signal.throwIfAborted()
      if (end === undefined) continue
      whole = true
      yield end
      return
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    yield error.round
  } finally {
    reply.close(whole)
  }
}

/** A failure after everything was said that must be is no failure of the round. */
function nothingMore(error: unknown): null {
  if (error instanceof ProviderFailure) return null
  throw error
}

function boundsOf({ maxOutputTokens }: ModelCall): StreamBounds {
  return {
    maxEventBytes: Math.max(EVENT_MAX_BYTES, maxOutputTokens * EVENT_BYTES_A_TOKEN),
    maxBytes: Math.max(ROUND_MAX_BYTES, maxOutputTokens * ROUND_BYTES_A_TOKEN),
  }
}
