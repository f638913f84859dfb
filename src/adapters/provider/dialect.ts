import type { ModelCall, ModelEvent } from '../../domain/agent/model-call.ts'
import type { RoundFailure } from './failure.ts'
import type { Fields } from './fields.ts'
import type { Upstream } from './upstream.ts'

/** How a round ended; `failed` with what is needed to tell whose failure it is. */
export type RoundEnd = Extract<ModelEvent, { kind: 'end' }> | ({ kind: 'failed' } & RoundFailure)

/** What an event said: text, or the end, or neither. */
export interface Heard {
  text?: string
  end?: RoundEnd
}

/** Listens to the events of one round. */
export interface Listener {
  hear(event: Fields): Heard
  /** Limit of silence when everything has been said that must be; else null. */
  readonly closingMs: number | null
  /** What it comes to when nothing more is said. */
  endOfStream(): RoundEnd
}

/** The model of a round and what is said of it beside the call. */
export interface Addressee {
  model: string
  /** Merged into the request. */
  extra?: Readonly<Record<string, unknown>>
}

/** One of the two APIs. */
export interface Dialect {
  /** Sends a call; the signal ends it. */
  send(upstream: Upstream, to: Addressee, call: ModelCall, signal: AbortSignal): Promise<Response>
  listen(to: Addressee, call: ModelCall): Listener
}
