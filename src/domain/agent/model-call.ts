import type { MicroUsd } from './bounds.ts'

/** What is sent to a chat model and what comes back. */

export const TOOL_NAMES = [
  'search_items',
  'get_period_top',
  'get_feed_snapshot',
  'read_article',
  'find_similar_items',
  'get_trend_history',
] as const
export type ToolName = (typeof TOOL_NAMES)[number]

/** A tool as a model is told of it. */
export interface ToolDefinition {
  name: ToolName
  description: string
  /** Strict JSON Schema of an object: every property required, none beside them. */
  parameters: Readonly<Record<string, unknown>>
}

/** A message of user authority, or what the assistant said before. */
export interface InputMessage {
  role: 'user' | 'assistant'
  content: string
}

/** A tool call as a model made it; name and arguments are whatever it wrote. */
export interface ToolCall {
  /** Names the call in the answer to it. Models repeat ids: only its place in the round is its own. */
  callId: string
  name: string
  arguments: string
}

/** One round of a turn that ended with tool calls. */
export interface ToolRound {
  /** What the provider gave out, as it must be given back: whole items, encrypted reasoning included. */
  output: unknown
  /** In the order of the calls. */
  results: readonly { call: ToolCall; output: string }[]
}

/** One question to a model. Its rounds are those of this turn: nothing is kept on the other side. */
export interface ModelCall {
  /** System authority: never any stored or user text. */
  instructions: string
  input: readonly InputMessage[]
  rounds: readonly ToolRound[]
  /** None: the model is given no tools. */
  tools: readonly ToolDefinition[]
  maxOutputTokens: number
}

/** Tokens, each at least 0; `cached` is a part of `in`. */
export interface Usage {
  in: number
  out: number
  cached: number
}

/** `code` of the stream's error event (docs/agent-chat.md). */
export type FailureCode =
  | { error: 'timeout'; code: 'first_event' | 'idle' | 'total' }
  | {
      error: 'upstream_error'
      code: 'connect' | `http_${number}` | 'truncated' | 'invalid_stream' | 'failed' | 'incomplete' | 'empty'
    }

/**
 * What a model says, as it comes. The last event is the only `end` or `failed`, whatever the provider does; an aborted
 * call ends with the signal's reason thrown and with nothing after it.
 */
export type ModelEvent =
  | { kind: 'text'; text: string }
  | {
      kind: 'end'
      /** Model that answered, as `config.model` would name it. */
      model: string
      /** None: the answer is whole. */
      calls: readonly ToolCall[]
      /** True when the text is a refusal of the model's. */
      refused: boolean
      /** For {@link ToolRound}. */
      output: unknown
      /** null when the provider does not tell or tells nonsense. */
      usage: Usage | null
    }
  | ({
      kind: 'failed'
      usage: Usage | null
      /** False when nothing can have been charged: the provider was not reached, or declined the request. */
      dispatched: boolean
    } & FailureCode)

/** Micro-dollars per million tokens. */
export interface Prices {
  input: MicroUsd
  cached: MicroUsd
  output: MicroUsd
}
