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
  /** API base without a trailing slash. The key is sent to this base only. */
  base: string
  /** Null for a provider without authentication. */
  key: string | null
  userAgent: string
  model: string
  api: 'responses' | 'chat'
}

/**
 * Opens a model behind a provider's API. A round always ends with one `end` or `failed` event, even if the provider
 * is silent, sends endless bytes, sends no event stream or stops in the middle (docs/agent-chat.md). The caller
 * limits the time of the whole turn by the signal. The text of a provider's error is never passed on.
 */
export function openChatModel(options: ChatModelOptions): ChatModel {
  const upstream = openUpstream(options)
  const format = options.api === 'responses' ? responsesFormat() : chatFormat
  return {
    name: () => Promise.resolve(options.model),
    async *ask(call, signal) {
      const target = { model: options.model }
      for await (const event of runRound(upstream, format, options, target, call, signal))
        yield withoutEvidence(event)
    },
    close: () => upstream.close(),
  }
}

/** Removes the evidence from an event before it is passed on: it holds text of the provider. */
export function withoutEvidence(event: RoundEvent): ModelEvent {
  if (event.kind !== 'failed') return event
  const { evidence: _evidence, ...failed } = event
  return failed
}

const KIB = 1024

/** Minimum size limits of a stream, and the bytes each allowed output token adds to them. */
const EVENT_MAX_BYTES = 256 * KIB
const EVENT_BYTES_PER_TOKEN = 32
const ROUND_MAX_BYTES = 1024 * KIB
const ROUND_BYTES_PER_TOKEN = KIB

/** An event of a round: texts, then its end. */
export type RoundEvent = { kind: 'text'; text: string } | RoundEnd

/**
 * Runs one round: sends the call and yields the events.
 *
 * @throws the signal's reason; failures of the provider become a `failed` event
 */
export async function* runRound(
  upstream: Upstream,
  format: WireFormat,
  limits: IdleTimeouts,
  target: Target,
  call: ModelCall,
  signal: AbortSignal,
): AsyncGenerator<RoundEvent> {
  signal.throwIfAborted()
  const stream = new ProviderStream(upstream, limits, streamBounds(call), signal)
  let isComplete = false
  try {
    await stream.open((streamSignal) => format.send(upstream, target, call, streamSignal))
    const parser = format.parser(target, call)
    for (;;) {
      const { finalIdleMs } = parser
      const event = await (finalIdleMs === null
        ? stream.next()
        : stream.next(finalIdleMs).catch(ignoreProviderFailure))
      signal.throwIfAborted()
      const { text, end } = event === null ? { end: parser.endOfStream() } : parser.parse(event)
      if (text !== undefined) yield { kind: 'text', text }
      signal.throwIfAborted()
      if (end === undefined) continue
      isComplete = true
      yield end
      return
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    yield error.round
  } finally {
    stream.close(isComplete)
  }
}

/** Ignores a failure after the last required event: the round is complete. */
function ignoreProviderFailure(error: unknown): null {
  if (error instanceof ProviderFailure) return null
  throw error
}

function streamBounds({ maxOutputTokens }: ModelCall): StreamBounds {
  return {
    maxEventBytes: Math.max(EVENT_MAX_BYTES, maxOutputTokens * EVENT_BYTES_PER_TOKEN),
    maxBytes: Math.max(ROUND_MAX_BYTES, maxOutputTokens * ROUND_BYTES_PER_TOKEN),
  }
}
