import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions'
import { asJsonObject, asArray } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import type { ModelCall, ToolDefinition, ToolRound, Usage } from '../../domain/agent/model-call.ts'
import { failedUpstream } from './upstream.ts'
import type { Upstream } from './upstream.ts'
import { uniqueCallIds, sanitizeCall, resultsByCallId, asText, parseUsage } from './wire-format.ts'
import type { ParsedEvent, RoundEnd, RoundParser, Target, WireFormat } from './wire-format.ts'

/** Time limit for the usage, which some providers send after the end of the answer. */
const USAGE_WAIT_MS = 2_000

/** The parts of an assistant message that later rounds send back. */
interface AssistantMessage {
  text: string
  calls: readonly { id: string; name: string; arguments: string }[]
}

/** The chat completions API, for providers without the Responses API: most local engines and the routing service. */
export const chatFormat: WireFormat = {
  send: sendRequest,
  parser: (target, call) => new CompletionParser(target, call),
}

function sendRequest(
  { client }: Upstream,
  target: Target,
  call: ModelCall,
  signal: AbortSignal,
): Promise<Response> {
  const body: ChatCompletionCreateParamsStreaming = {
    model: target.model,
    messages: [
      { role: 'system', content: call.instructions },
      ...call.input.map(({ role, content }) => ({ role, content: content.toWellFormed() })),
      ...call.rounds.flatMap(toMessages),
    ],
    ...(call.tools.length > 0 ? { tools: call.tools.map(toTool) } : {}),
    max_tokens: call.maxOutputTokens,
    stream: true,
    stream_options: { include_usage: true },
    ...target.extra,
  }
  return client.chat.completions.create(body, { signal }).asResponse()
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

/** Parses a completion. It has no end event: it ends when a choice has a finish reason, and usage may follow. */
class CompletionParser implements RoundParser {
  readonly #model: string
  readonly #uniqueId: (value: unknown) => string
  readonly #calls = new CallParts()
  #text = ''
  #refused = false
  #finish = ''
  #usage: Usage | null = null

  constructor({ model }: Target, { rounds }: ModelCall) {
    this.#model = model
    this.#uniqueId = uniqueCallIds(rounds)
  }

  get finalIdleMs(): number | null {
    return this.#finish === '' ? null : USAGE_WAIT_MS
  }

  parse(chunk: JsonObject): ParsedEvent {
    const choice = asJsonObject(asArray(chunk['choices'])[0])
    const usage = asJsonObject(chunk['usage'])
    this.#usage = parseUsage(usage, 'prompt_tokens', 'completion_tokens') ?? this.#usage
    if (chunk['error'] || choice?.['error']) return { end: this.#failed(chunk['error'] ?? choice?.['error']) }
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

  endOfStream(): RoundEnd {
    if (this.#finish === '') return this.#endedEarly('truncated')
    if (this.#finish === 'error') return this.#failed({})
    if (this.#finish === 'length' || this.#finish === 'content_filter') return this.#endedEarly('incomplete')
    const calls = this.#calls.all().map((call) => ({ callId: this.#uniqueId(call.id), call }))
    if (this.#text.trim() === '' && calls.length === 0) return this.#endedEarly('empty')
    const message: AssistantMessage = {
      text: this.#text,
      calls: calls.map(({ callId, call }) => ({ id: callId, ...sanitizeCall(call) })),
    }
    return {
      kind: 'end',
      model: this.#model,
      calls: calls.map(({ callId, call }) => ({ callId, name: call.name, arguments: call.arguments })),
      refused: this.#refused,
      output: message,
      usage: this.#usage,
    }
  }

  #endedEarly(code: 'truncated' | 'incomplete' | 'empty'): RoundEnd {
    return failedUpstream(code, { usage: this.#usage })
  }

  #failed(error: unknown): RoundEnd {
    const evidence = { status: 200, headers: {}, body: JSON.stringify({ error }) }
    return failedUpstream('failed', { usage: this.#usage, evidence })
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
