import { asJsonObject, parseJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import type { ModelCall, ModelEvent, ToolRound, Usage } from '../../domain/agent/model-call.ts'
import type { FailedRound, Upstream } from './upstream.ts'

/** Requests and events of one of the two APIs. */
export interface WireFormat {
  /** Sends a call; the signal aborts it. */
  send(upstream: Upstream, target: Target, call: ModelCall, signal: AbortSignal): Promise<Response>
  /** Returns a parser for the events of one response. */
  parser(target: Target, call: ModelCall): RoundParser
}

/** The model of a round, and additional request fields. */
export interface Target {
  model: string
  /** Merged into the request. */
  extra?: Readonly<Record<string, unknown>>
}

/** Parses the events of one round. */
export interface RoundParser {
  parse(event: JsonObject): ParsedEvent
  /** Idle limit in milliseconds after all required events have arrived; null before. */
  readonly finalIdleMs: number | null
  /** Returns the end of the round when the stream has ended. */
  endOfStream(): RoundEnd
}

/** Text and end of the round in an event; either may be absent. */
export interface ParsedEvent {
  text?: string
  end?: RoundEnd
}

/** End of a round: the final event, or its failure. */
export type RoundEnd = Extract<ModelEvent, { kind: 'end' }> | FailedRound

/** No model reads or writes this many tokens in one round. */
const MAX_TOKENS = 10_000_000

/**
 * Parses the usage a provider reports; null if it is missing or invalid. An impossible number of cached tokens
 * counts as zero, so that no discount is assumed.
 *
 * @param input name of the member with the input tokens
 * @param output name of the member with the output tokens
 */
export function parseUsage(usage: JsonObject | null, input: string, output: string): Usage | null {
  const [read, written] = [usage?.[input], usage?.[output]]
  const cached = asJsonObject(usage?.[`${input}_details`])?.['cached_tokens']
  if (!isCount(read) || !isCount(written)) return null
  return { in: read, out: written, cached: isCount(cached) && cached <= read ? cached : 0 }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
}

/** Length of an id and form of a name that every provider accepts. */
const ID_MAX_LENGTH = 64
const NAME_PATTERN = /^[\w-]{1,64}$/

/**
 * Returns a function that makes the ids of a turn's calls unique, since models repeat them. The first call keeps
 * the model's id.
 */
export function uniqueCallIds(rounds: readonly ToolRound[]): (value: unknown) => string {
  const used = new Set(rounds.flatMap(({ results }) => results.map(({ call }) => call.callId)))
  let next = 1
  return (value) => {
    let id = typeof value === 'string' && value.length <= ID_MAX_LENGTH ? value : ''
    while (id === '' || used.has(id)) {
      id = `call_${used.size}_${next}`
      next += 1
    }
    used.add(id)
    return id
  }
}

/** Makes a call safe to send back: providers reject invalid names and arguments that are not a JSON object. */
export function sanitizeCall(call: { name: string; arguments: string }): { name: string; arguments: string } {
  return {
    name: NAME_PATTERN.test(call.name) ? call.name : 'unknown',
    arguments: parseJsonObject(call.arguments) === null ? '{}' : call.arguments,
  }
}

/** Result of a tool call that did not run: providers reject a call without a result. */
const NOT_RUN = '{"error":"not_run"}'

/** Returns a function that finds the result of a call by its id. */
export function resultsByCallId({ results }: ToolRound): (callId: string) => string {
  const outputs = new Map(results.map(({ call, output }) => [call.callId, output]))
  return (callId) => outputs.get(callId) ?? NOT_RUN
}

/** Returns the value if it is a text, otherwise an empty text. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
