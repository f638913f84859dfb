import type { MicroUsd } from './bounds.ts'

/** Requests to chat models, and their responses as events. */

export const TOOL_NAMES = [
  'search_items',
  'get_period_top',
  'get_feed_snapshot',
  'read_article',
  'find_similar_items',
  'get_trend_history',
] as const
export type ToolName = (typeof TOOL_NAMES)[number]

/** What a tool does while it runs, for readers of the chat. */
export const TOOL_ACTIONS: Readonly<Record<ToolName, string>> = {
  search_items: 'Searching',
  get_period_top: 'Reading a top list',
  get_feed_snapshot: 'Reading the newest lists',
  read_article: 'Reading an article',
  find_similar_items: 'Looking for similar items',
  get_trend_history: 'Reading numbers by day',
}

/** The tool that a call names, also with a prefix or marks as in `functions.search_items:0`; null for other names. */
export function toolNameOf(written: string): ToolName | null {
  const words = written.toLowerCase().split(/\W+|__+/)
  const [named = null, ...others] = TOOL_NAMES.filter((name) => words.includes(name))
  return others.length === 0 ? named : null
}

/** A tool definition as it is sent to a model. */
export interface ToolDefinition {
  name: ToolName
  description: string
  /** Strict JSON Schema of an object: every property is required, no others are allowed. */
  parameters: Readonly<Record<string, unknown>>
}

/** A message of the user, or an earlier message of the assistant. */
export interface InputMessage {
  role: 'user' | 'assistant'
  content: string
}

/** A tool call as the model wrote it; name and arguments are unchecked. */
export interface ToolCall {
  /** Identifies the call in its result. Models repeat ids: only the position in the round is unique. */
  callId: string
  name: string
  arguments: string
}

/** One round of a turn that ended with tool calls. */
export interface ToolRound {
  /** The assistant's message, as the provider's adapter sends it back. */
  output: unknown
  /** In the order of the calls. */
  results: readonly { call: ToolCall; output: string }[]
}

/** One call of a model. It carries all rounds of the turn: the provider keeps no state. */
export interface ModelCall {
  /** System instructions; they never contain stored text or user text. */
  instructions: string
  input: readonly InputMessage[]
  rounds: readonly ToolRound[]
  /** Empty when the model gets no tools. */
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
 * Events of a model's response. The last event is the only `end` or `failed`; an aborted call throws the signal's
 * reason and yields nothing after it.
 */
export type ModelEvent =
  | {
      kind: 'text'
      text: string
      /** The output that arrived with the text, thoughts and tool calls included; absent if it is the text alone. */
      received?: string
    }
  | {
      kind: 'end'
      /** The model that responded, as `config.model` names it; null if the response names none that was requested. */
      model: string | null
      /** Empty when the answer is complete. */
      calls: readonly ToolCall[]
      /** True when the model refused to answer. */
      refused: boolean
      /** For {@link ToolRound}. */
      output: unknown
      /** null when the provider reports no valid usage. */
      usage: Usage | null
    }
  | ({
      kind: 'failed'
      usage: Usage | null
      /** False when nothing can have been charged: the provider was not reached or rejected the request. */
      dispatched: boolean
    } & FailureCode)

/** Micro-dollars per million tokens. */
export interface Prices {
  input: MicroUsd
  cached: MicroUsd
  output: MicroUsd
}
