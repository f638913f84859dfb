import { BadRequestError } from 'openai'
import type { ResponseCreateParamsStreaming, ResponseInput, Tool } from 'openai/resources/responses/responses'
import type {
  InputMessage,
  ModelCall,
  ToolCall,
  ToolDefinition,
  ToolRound,
  Usage,
} from '../../domain/agent/model-call.ts'
import { fieldsOf, listOf } from '../http.ts'
import type { Fields } from '../http.ts'
import { failedUpstream } from './upstream.ts'
import type { Upstream } from './upstream.ts'
import { callIds, replayable, resultsOf, textOf, usageOf } from './wire-format.ts'
import type { ParsedEvent, RoundEnd, RoundParser, Target, WireFormat } from './wire-format.ts'

/** Kinds of items that are given back; no others are asked for. */
const REPLAYED = new Set(['message', 'reasoning', 'function_call'])

const ENCRYPTED_REASONING = 'reasoning.encrypted_content'

/**
 * The Responses API. Nothing is stored on the other side: rounds are given back as whole items, encrypted reasoning
 * included, each call followed by its result.
 */
export function responsesFormat(): WireFormat {
  // Models that do not reason decline to be asked for their reasoning.
  let reasons = true
  return {
    async send(upstream, to, call, signal) {
      try {
        return await request(upstream, to, call, reasons, signal)
      } catch (error) {
        if (!reasons || !(error instanceof BadRequestError) || !error.param?.startsWith('include'))
          throw error
        reasons = false
        return request(upstream, to, call, reasons, signal)
      }
    },
    parser: (to, call) => new ResponsesParser(to, call),
  }
}

function request(
  { client }: Upstream,
  to: Target,
  call: ModelCall,
  reasons: boolean,
  signal: AbortSignal,
): Promise<Response> {
  const body: ResponseCreateParamsStreaming = {
    model: to.model,
    instructions: call.instructions,
    input: [...call.input.map(messageOf), ...call.rounds.flatMap(replayOf)],
    ...(call.tools.length > 0 ? { tools: call.tools.map(toolOf) } : {}),
    ...(reasons ? { include: [ENCRYPTED_REASONING] } : {}),
    max_output_tokens: call.maxOutputTokens,
    store: false,
    stream: true,
    ...to.extra,
  }
  return client.responses.create(body, { signal }).asResponse()
}

function messageOf({ role, content }: InputMessage): ResponseInput[number] {
  return { type: 'message', role, content: content.toWellFormed() }
}

function toolOf({ name, description, parameters }: ToolDefinition): Tool {
  return { type: 'function', name, description, parameters, strict: true }
}

function replayOf(round: ToolRound): ResponseInput {
  const items = round.output as readonly Fields[]
  const resultOf = resultsOf(round)
  const results = items
    .filter(({ type }) => type === 'function_call')
    .map((item) => {
      const callId = textOf(item['call_id'])
      return { type: 'function_call_output', call_id: callId, output: resultOf(callId) }
    })
  return [...items, ...results] as unknown as ResponseInput
}

/** Calls are taken from finished items alone: events before may hold a part of them. */
class ResponsesParser implements RoundParser {
  readonly closingMs = null
  readonly #model: string
  readonly #idOf: (given: unknown) => string
  readonly #items: { index: number; item: Fields }[] = []
  readonly #calls: { index: number; call: ToolCall }[] = []
  #spoken = false
  #refused = false

  constructor({ model }: Target, { rounds }: ModelCall) {
    this.#model = model
    this.#idOf = callIds(rounds)
  }

  parse(event: Fields): ParsedEvent {
    switch (event['type']) {
      case 'response.refusal.delta':
        this.#refused = true
        return this.#text(event['delta'])
      case 'response.output_text.delta':
        return this.#text(event['delta'])
      case 'response.output_item.done':
        this.#keep(fieldsOf(event['item']), event['output_index'])
        return {}
      case 'response.completed':
        return { end: this.#completed(fieldsOf(event['response'])) }
      case 'response.incomplete':
        return { end: failed('incomplete', event) }
      case 'response.failed':
      case 'error':
        return { end: failed('failed', event) }
      default:
        return event['error'] ? { end: failed('failed', event) } : {}
    }
  }

  endOfStream(): RoundEnd {
    return failedUpstream('truncated')
  }

  #text(delta: unknown): ParsedEvent {
    const text = textOf(delta)
    if (text.trim() !== '') this.#spoken = true
    return text === '' ? {} : { text }
  }

  #keep(item: Fields | null, place: unknown): void {
    const type = textOf(item?.['type'])
    if (!item || !REPLAYED.has(type)) return
    const index = typeof place === 'number' ? place : this.#items.length
    // Reasoning that is kept nowhere cannot be referred to.
    if (type === 'reasoning' && !item['encrypted_content'] && listOf(item['content']).length === 0) return
    if (type !== 'function_call') {
      this.#items.push({ index, item })
      return
    }
    const told = { name: textOf(item['name']), arguments: textOf(item['arguments']) }
    const callId = this.#idOf(item['call_id'])
    this.#items.push({ index, item: { ...item, call_id: callId, ...replayable(told) } })
    this.#calls.push({ index, call: { callId, ...told } })
  }

  #completed(response: Fields | null): RoundEnd {
    const usage = usageOfResponse(response)
    if (!this.#spoken && this.#calls.length === 0) return failedUpstream('empty', { usage })
    return {
      kind: 'end',
      model: this.#model,
      calls: inOrder(this.#calls).map(({ call }) => call),
      refused: this.#refused,
      output: inOrder(this.#items).map(({ item }) => item),
      usage,
    }
  }
}

function inOrder<T extends { index: number }>(entries: readonly T[]): T[] {
  return entries.toSorted((a, b) => a.index - b.index)
}

function failed(code: 'failed' | 'incomplete', event: Fields): RoundEnd {
  const response = fieldsOf(event['response'])
  const body = JSON.stringify({ error: event['error'] ?? response?.['error'] ?? event })
  const evidence = { status: 200, headers: {}, body }
  return failedUpstream(code, { usage: usageOfResponse(response), evidence })
}

function usageOfResponse(response: Fields | null): Usage | null {
  return usageOf(fieldsOf(response?.['usage']), 'input_tokens', 'output_tokens')
}
