import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions'
import { asJsonObject, asArray, parseJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import type {
  ModelCall,
  ModelEvent,
  ToolDefinition,
  ToolRound,
  Usage,
} from '../../domain/agent/model-call.ts'
import { failedUpstream, respondingId } from './upstream.ts'
import type { FailedRound, Upstream } from './upstream.ts'

/** The models of a round, and additional request fields. */
export interface Target {
  /** One id, or several for the routing service, which uses the first that responds. */
  ids: readonly string[]
  /** Merged into the request. */
  extra?: Readonly<Record<string, unknown>>
}

/** The parts of a request that differ between providers. */
export interface RequestForm {
  /** OpenAI's own models refuse `max_tokens`; most other engines know no other name. */
  tokenLimit: 'max_tokens' | 'max_completion_tokens'
  /** True for engines that refuse `store`. */
  omitsStore: boolean
}

/** Time limit for the usage, which some providers send after the end of the answer. */
const USAGE_WAIT_MS = 2_000

/** The parts of an assistant message that later rounds send back. */
interface AssistantMessage {
  text: string
  calls: readonly { id: string; name: string; arguments: string }[]
}

/** Sends a call; the signal aborts it. */
export function sendCall(
  { client }: Upstream,
  { tokenLimit, omitsStore }: RequestForm,
  target: Target,
  call: ModelCall,
  signal: AbortSignal,
): Promise<Response> {
  const { ids, extra } = target
  const body: Omit<ChatCompletionCreateParamsStreaming, 'model'> = {
    messages: [
      { role: 'system', content: call.instructions },
      ...call.input.map(({ role, content }) => ({ role, content: content.toWellFormed() })),
      ...call.rounds.flatMap(toMessages),
    ],
    ...(call.tools.length > 0 ? { tools: call.tools.map(toTool) } : {}),
    [tokenLimit]: call.maxOutputTokens,
    stream: true,
    stream_options: { include_usage: true },
    ...(omitsStore ? {} : { store: false }),
    ...extra,
  }
  // The types of the SDK know no list of models.
  const params = { ...body, ...(ids.length === 1 ? { model: ids[0] } : { models: ids }) }
  return client.chat.completions
    .create(params as ChatCompletionCreateParamsStreaming, { signal })
    .asResponse()
}

function toTool({ name, description, parameters }: ToolDefinition): ChatCompletionTool {
  return { type: 'function', function: { name, description, parameters, strict: true } }
}

function toMessages(round: ToolRound): ChatCompletionMessageParam[] {
  const message = round.output as AssistantMessage
  const resultOf = resultsByCallId(round)
  const calls = message.calls.map(({ id, ...functionCall }) => ({
    id,
    type: 'function' as const,
    function: functionCall,
  }))
  return [
    { role: 'assistant', content: message.text === '' ? null : message.text, tool_calls: calls },
    ...calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: resultOf(id) })),
  ]
}

/** Text and end of the round in an event; either may be absent. */
interface ParsedEvent {
  text?: string
  end?: RoundEnd
}

/** End of a round: the final event, or its failure. */
type RoundEnd = Extract<ModelEvent, { kind: 'end' }> | FailedRound

/** Parses a completion. It has no end event: it ends when a choice has a finish reason, and usage may follow. */
export class CompletionParser {
  readonly #ids: readonly string[]
  readonly #uniqueId: (value: unknown) => string
  readonly #calls = new CallParts()
  #text = ''
  #refused = false
  #finish = ''
  #usage: Usage | null = null
  #named: unknown = null

  constructor({ ids }: Target, { rounds }: ModelCall) {
    this.#ids = ids
    this.#uniqueId = uniqueCallIds(rounds)
  }

  /** Idle limit in milliseconds after all required events have arrived; null before. */
  get finalIdleMs(): number | null {
    return this.#finish === '' ? null : USAGE_WAIT_MS
  }

  parse(chunk: JsonObject): ParsedEvent {
    const choice = asJsonObject(asArray(chunk['choices'])[0])
    const usage = asJsonObject(chunk['usage'])
    this.#usage = parseUsage(usage) ?? this.#usage
    this.#named = chunk['model'] ?? this.#named
    if (chunk['error'] || choice?.['error']) return { end: this.#endedEarly('failed') }
    const delta = asJsonObject(choice?.['delta'])
    const refusal = asText(delta?.['refusal'])
    if (refusal !== '') this.#refused = true
    const text = asText(delta?.['content']) + refusal
    this.#text += text
    for (const part of asArray(delta?.['tool_calls'])) this.#calls.add(asJsonObject(part) ?? {})
    this.#finish = asText(choice?.['finish_reason']) || this.#finish
    const isComplete = this.#finish !== '' && usage !== null
    return { ...(text === '' ? {} : { text }), ...(isComplete ? { end: this.endOfStream() } : {}) }
  }

  /** Returns the end of the round when the stream has ended. */
  endOfStream(): RoundEnd {
    if (this.#finish === '') return this.#endedEarly('truncated')
    if (this.#finish === 'error') return this.#endedEarly('failed')
    if (this.#finish === 'length' || this.#finish === 'content_filter') return this.#endedEarly('incomplete')
    const calls = this.#calls.all().map((call) => ({ callId: this.#uniqueId(call.id), call }))
    if (this.#text.trim() === '' && calls.length === 0) return this.#endedEarly('empty')
    const message: AssistantMessage = {
      text: this.#text,
      calls: calls.map(({ callId, call }) => ({ id: callId, ...sanitizeCall(call) })),
    }
    return {
      kind: 'end',
      model: respondingId(this.#ids, this.#named),
      calls: calls.map(({ callId, call }) => ({ callId, name: call.name, arguments: call.arguments })),
      refused: this.#refused,
      output: message,
      usage: this.#usage,
    }
  }

  #endedEarly(code: 'truncated' | 'failed' | 'incomplete' | 'empty'): RoundEnd {
    return failedUpstream(code, { usage: this.#usage })
  }
}

interface PartialCall {
  id: string
  name: string
  arguments: string
}

/**
 * Assembles tool calls from the parts that chat completions stream. Parts of a call share an index. Engines that
 * send whole calls omit the index or repeat it; then another id begins another call.
 */
class CallParts {
  readonly #calls: PartialCall[] = []
  readonly #byIndex = new Map<unknown, PartialCall>()

  add(part: JsonObject): void {
    const functionFields = asJsonObject(part['function']) ?? {}
    const id = asText(part['id'])
    const call = this.#findCall(part['index'], id)
    if (call.id === '') call.id = id
    if (call.name === '') call.name = asText(functionFields['name'])
    const argumentsField = functionFields['arguments']
    // Some engines send the arguments as an object instead of a JSON text.
    call.arguments +=
      typeof argumentsField === 'string'
        ? argumentsField
        : argumentsField
          ? JSON.stringify(argumentsField)
          : ''
  }

  /** All calls in the order of their first parts. */
  all(): readonly PartialCall[] {
    return this.#calls
  }

  #findCall(index: unknown, id: string): PartialCall {
    const current = index === undefined || index === null ? this.#calls.at(-1) : this.#byIndex.get(index)
    const isSameCall = current && (id === '' || (current.id === id && index !== undefined && index !== null))
    if (isSameCall) return current
    const call = { id: '', name: '', arguments: '' }
    this.#calls.push(call)
    this.#byIndex.set(index, call)
    return call
  }
}

/** No model reads or writes this many tokens in one round. */
const MAX_TOKENS = 10_000_000

/**
 * Parses the usage a provider reports; null if it is missing or invalid. An impossible number of cached tokens
 * counts as zero, so that no discount is assumed.
 */
function parseUsage(usage: JsonObject | null): Usage | null {
  const { prompt_tokens: read, completion_tokens: written, prompt_tokens_details: details } = usage ?? {}
  const cached = asJsonObject(details)?.['cached_tokens']
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
function uniqueCallIds(rounds: readonly ToolRound[]): (value: unknown) => string {
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
function sanitizeCall(call: { name: string; arguments: string }): { name: string; arguments: string } {
  return {
    name: NAME_PATTERN.test(call.name) ? call.name : 'unknown',
    arguments: parseJsonObject(call.arguments) === null ? '{}' : call.arguments,
  }
}

/** Result of a tool call that did not run: providers reject a call without a result. */
const NOT_RUN = '{"error":"not_run"}'

/** Returns a function that finds the result of a call by its id. */
function resultsByCallId({ results }: ToolRound): (callId: string) => string {
  const outputs = new Map(results.map(({ call, output }) => [call.callId, output]))
  return (callId) => outputs.get(callId) ?? NOT_RUN
}

/** Returns the value if it is a text, otherwise an empty text. */
function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
