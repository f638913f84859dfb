import type { ModelCall, ModelEvent, ToolRound, Usage } from '../../domain/agent/model-call.ts'
import { asJsonObject, parseJsonObject } from '../http.ts'
import type { JsonObject } from '../http.ts'
import type { FailedRound, Upstream } from './upstream.ts'

/** One of the two APIs. */
export interface WireFormat {
  /** Sends a call; the signal ends it. */
  send(upstream: Upstream, target: Target, call: ModelCall, signal: AbortSignal): Promise<Response>
  parser(target: Target, call: ModelCall): RoundParser
}

/** The model of a round and what is sent beside the call. */
export interface Target {
  model: string
  /** Merged into the request. */
  extra?: Readonly<Record<string, unknown>>
}

/** Parses the events of one round. */
export interface RoundParser {
  parse(event: JsonObject): ParsedEvent
  /** Limit of silence when everything has been said that must be; else null. */
  readonly finalIdleMs: number | null
  /** The end of the round when no more events come. */
  endOfStream(): RoundEnd
}

/** An event holds text, or the end, or neither. */
export interface ParsedEvent {
  text?: string
  end?: RoundEnd
}

export type RoundEnd = Extract<ModelEvent, { kind: 'end' }> | FailedRound

/** No model reads or writes as many tokens in one round. */
const MAX_TOKENS = 10_000_000

/**
 * Usage as a provider counts it; null when it does not or sends nonsense. A share of the cache that cannot be right counts
 * as none: nothing is charged at a lower price without proof.
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

/** Longest id and name of a call that every provider takes back. */
const ID_MAX_LENGTH = 64
const NAME_PATTERN = /^[\w-]{1,64}$/

/** Makes the ids of a turn's calls unique, since models repeat them; the first call keeps the id of the model. */
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

/** A call as it is given back: providers decline names they do not allow and arguments that are no JSON object. */
export function sanitizeCall(call: { name: string; arguments: string }): { name: string; arguments: string } {
  return {
    name: NAME_PATTERN.test(call.name) ? call.name : 'unknown',
    arguments: parseJsonObject(call.arguments) === null ? '{}' : call.arguments,
  }
}

/** The result of a tool call that did not run: a provider declines a round in which a call has no result. */
const NOT_RUN = '{"error":"not_run"}'

/** The results of a round by the ids of its calls. */
export function resultsByCallId({ results }: ToolRound): (callId: string) => string {
  const outputs = new Map(results.map(({ call, output }) => [call.callId, output]))
  return (callId) => outputs.get(callId) ?? NOT_RUN
}

/** The empty text for anything but a text. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
