import type { ChatModel } from '../../domain/ports.ts'
import type { ModelEvent } from '../../domain/agent/model-call.ts'
import { chatDialect } from './chat-completions.ts'
import type { SilenceLimits } from './reply.ts'
import { responsesDialect } from './responses.ts'
import { askOnce } from './round.ts'
import type { RoundEvent } from './round.ts'
import { openUpstream } from './upstream.ts'

export interface ChatModelOptions extends SilenceLimits {
  /** API base, without a slash at its end. The key is sent to nowhere else. */
  base: string
  /** null for a provider that wants none. */
  key: string | null
  model: string
  api: 'responses' | 'chat'
}

/**
 * A model behind a provider's API. A round ends with one `end` or `failed`, whatever the provider does: silence, bytes
 * without an end, no event stream, a stream that stops (docs/chat-providers.md). The whole turn's time is the caller's
 * to bound, by the signal. Nothing of an error's text is given out.
 */
export function openChatModel(options: ChatModelOptions): ChatModel {
  const upstream = openUpstream(options)
  const dialect = options.api === 'responses' ? responsesDialect() : chatDialect()
  return {
    name: () => Promise.resolve(options.model),
    async *ask(call, signal) {
      for await (const event of askOnce(upstream, dialect, options, { model: options.model }, call, signal)) {
        yield toModelEvent(event)
      }
    },
    close: () => upstream.close(),
  }
}

/** What is told of an event outside of the provider's adapter. */
export function toModelEvent(event: RoundEvent): ModelEvent {
  if (event.kind !== 'failed') return event
  const { failure, usage, dispatched } = event
  return { kind: 'failed', usage, dispatched, ...failure }
}
