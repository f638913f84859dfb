import { BadRequestError } from 'openai'
import type { ResponseCreateParamsStreaming, ResponseInput, Tool } from 'openai/resources/responses/responses'
import { asJsonObject, asArray } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import type {
  InputMessage,
  ModelCall,
  ToolCall,
  ToolDefinition,
  ToolRound,
  Usage,
} from '../../domain/agent/model-call.ts'
import { failedUpstream } from './upstream.ts'
import type { Upstream } from './upstream.ts'
import { uniqueCallIds, sanitizeCall, resultsByCallId, asText, parseUsage } from './wire-format.ts'
import type { ParsedEvent, RoundEnd, RoundParser, Target, WireFormat } from './wire-format.ts'

/** Types of output items that later rounds send back; no others are requested. */
const REPLAYED_ITEMS = new Set(['message', 'reasoning', 'function_call'])

const ENCRYPTED_REASONING = 'reasoning.encrypted_content'

/**
 * The Responses API. The provider stores nothing: later rounds send whole items back, including encrypted
 * reasoning, and each call with its result.
 */
export function responsesFormat(): WireFormat {
  // Models without reasoning reject a request for it.
  let includeReasoning = true
  return {
    async send(upstream, target, call, signal) {
      try {
        return await sendRequest(upstream, target, call, includeReasoning, signal)
      } catch (error) {
        if (!includeReasoning || !(error instanceof BadRequestError) || !error.param?.startsWith('include'))
          throw error
        includeReasoning = false
        return sendRequest(upstream, target, call, includeReasoning, signal)
      }
    },
    parser: (target, call) => new ResponsesParser(target, call),
  }
}

function sendRequest(
  { client }: Upstream,
  target: Target,
  call: ModelCall,
  includeReasoning: boolean,
  signal: AbortSignal,
): Promise<Response> {
  const body: ResponseCreateParamsStreaming = {
    model: target.model,
    instructions: call.instructions,
    input: [...call.input.map(toMessage), ...call.rounds.flatMap(toInput)],
    ...(call.tools.length > 0 ? { tools: call.tools.map(toTool) } : {}),
    ...(includeReasoning ? { include: [ENCRYPTED_REASONING] } : {}),
    max_output_tokens: call.maxOutputTokens,
    store: false,
    stream: true,
    ...target.extra,
  }
  return client.responses.create(body, { signal }).asResponse()
}

function toMessage({ role, content }: InputMessage): ResponseInput[number] {
  return { type: 'message', role, content: content.toWellFormed() }
}

function toTool({ name, description, parameters }: ToolDefinition): Tool {
  return { type: 'function', name, description, parameters, strict: true }
}

function toInput(round: ToolRound): ResponseInput {
  const items = round.output as readonly JsonObject[]
  const resultOf = resultsByCallId(round)
  const results = items
    .filter(({ type }) => type === 'function_call')
    .map((item) => {
      const callId = asText(item['call_id'])
      return { type: 'function_call_output', call_id: callId, output: resultOf(callId) }
    })
  return [...items, ...results] as unknown as ResponseInput
}

/**
 * Parses the events of the Responses API. Calls are read from finished items only: earlier events may hold a part
 * of them.
 */
class ResponsesParser implements RoundParser {
  readonly finalIdleMs = null
  readonly #model: string
  readonly #uniqueId: (value: unknown) => string
  readonly #items: { index: number; item: JsonObject }[] = []
  readonly #calls: { index: number; call: ToolCall }[] = []
  #hasText = false
  #refused = false

  constructor({ model }: Target, { rounds }: ModelCall) {
    this.#model = model
    this.#uniqueId = uniqueCallIds(rounds)
  }

  parse(event: JsonObject): ParsedEvent {
    switch (event['type']) {
      case 'response.refusal.delta':
        this.#refused = true
        return this.#text(event['delta'])
      case 'response.output_text.delta':
        return this.#text(event['delta'])
      case 'response.output_item.done':
        this.#addItem(asJsonObject(event['item']), event['output_index'])
        return {}
      case 'response.completed':
        return { end: this.#completed(asJsonObject(event['response'])) }
      case 'response.incomplete':
        return { end: failedByEvent('incomplete', event) }
      case 'response.failed':
      case 'error':
        return { end: failedByEvent('failed', event) }
      default:
        return event['error'] ? { end: failedByEvent('failed', event) } : {}
    }
  }

  endOfStream(): RoundEnd {
    return failedUpstream('truncated')
  }

  #text(delta: unknown): ParsedEvent {
    const text = asText(delta)
    if (text.trim() !== '') this.#hasText = true
    return text === '' ? {} : { text }
  }

  #addItem(item: JsonObject | null, outputIndex: unknown): void {
    const type = asText(item?.['type'])
    if (!item || !REPLAYED_ITEMS.has(type)) return
    const index = typeof outputIndex === 'number' ? outputIndex : this.#items.length
    // A later request cannot refer to reasoning without content: nothing is stored.
    if (type === 'reasoning' && !item['encrypted_content'] && asArray(item['content']).length === 0) return
    if (type !== 'function_call') {
      this.#items.push({ index, item })
      return
    }
    const functionCall = { name: asText(item['name']), arguments: asText(item['arguments']) }
    const callId = this.#uniqueId(item['call_id'])
    this.#items.push({ index, item: { ...item, call_id: callId, ...sanitizeCall(functionCall) } })
    this.#calls.push({ index, call: { callId, ...functionCall } })
  }

  #completed(response: JsonObject | null): RoundEnd {
    const usage = responseUsage(response)
    if (!this.#hasText && this.#calls.length === 0) return failedUpstream('empty', { usage })
    return {
      kind: 'end',
      model: this.#model,
      calls: sortByIndex(this.#calls).map(({ call }) => call),
      refused: this.#refused,
      output: sortByIndex(this.#items).map(({ item }) => item),
      usage,
    }
  }
}

function sortByIndex<T extends { index: number }>(entries: readonly T[]): T[] {
  return entries.toSorted((a, b) => a.index - b.index)
}

function failedByEvent(code: 'failed' | 'incomplete', event: JsonObject): RoundEnd {
  const response = asJsonObject(event['response'])
  const body = JSON.stringify({ error: event['error'] ?? response?.['error'] ?? event })
  const evidence = { status: 200, headers: {}, body }
  return failedUpstream(code, { usage: responseUsage(response), evidence })
}

function responseUsage(response: JsonObject | null): Usage | null {
  return parseUsage(asJsonObject(response?.['usage']), 'input_tokens', 'output_tokens')
}
