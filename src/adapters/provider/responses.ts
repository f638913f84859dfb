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
import type { Addressee, Dialect, Heard, Listener, RoundEnd } from './reply.ts'
import { fieldsOf, listOf } from '../http.ts'
import type { Fields } from '../http.ts'
import { textOf, upstreamError } from './upstream.ts'
import type { Upstream } from './upstream.ts'

/** No model reads or writes as many tokens in one round. */
const MOST_TOKENS = 10_000_000

/** Usage as the Responses API tells it; null when it does not or tells nonsense. */
function usageOfResponse(response: Fields | null): Usage | null {
  const usage = fieldsOf(response?.['usage'])
  if (usage === null) return null
  const cached = fieldsOf(usage['input_tokens_details'])?.['cached_tokens']
  return saneUsage(usage['input_tokens'], usage['output_tokens'], cached)
}

/** Usage as chat completions tell it; null when they do not or tell nonsense. */
export function usageOfCompletion(chunk: Fields): Usage | null {
  const usage = fieldsOf(chunk['usage'])
  if (usage === null) return null
  const cached = fieldsOf(usage['prompt_tokens_details'])?.['cached_tokens']
  return saneUsage(usage['prompt_tokens'], usage['completion_tokens'], cached)
}

/** A share of the cache that cannot be right counts as none: nothing is charged at a lower price without proof. */
function saneUsage(read: unknown, written: unknown, cached: unknown): Usage | null {
  if (!isCount(read) || !isCount(written)) return null
  return { in: read, out: written, cached: isCount(cached) && cached <= read ? cached : 0 }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS
}

/** Longest id and name of a call that every provider takes back. */
const ID_MAX_LENGTH = 64
const NAME_PATTERN = /^[\w-]{1,64}$/

/** Stands for the result of a call that nobody answered: a provider declines a round with an open call. */
const NOT_RUN = '{"error":"not_run"}'

/** Gives each call of a turn an id of its own, since models repeat them; the first one keeps what the model gave. */
export function callIds(rounds: readonly ToolRound[]): (given: unknown) => string {
  const used = new Set(rounds.flatMap(({ results }) => results.map(({ call }) => call.callId)))
  let next = 1
  return (given) => {
    let id = typeof given === 'string' && given.length <= ID_MAX_LENGTH ? given : ''
    while (id === '' || used.has(id)) {
      id = `call_${used.size}_${next}`
      next += 1
    }
    used.add(id)
    return id
  }
}

/** A call as it is given back: providers decline names they do not allow and arguments that are no JSON object. */
export function replayable(call: { name: string; arguments: string }): { name: string; arguments: string } {
  return {
    name: NAME_PATTERN.test(call.name) ? call.name : 'unknown',
    arguments: isObject(call.arguments) ? call.arguments : '{}',
  }
}

function isObject(text: string): boolean {
  try {
    return fieldsOf(JSON.parse(text)) !== null
  } catch {
    return false
  }
}

/** The results of a round by the ids of its calls. */
export function resultsOf({ results }: ToolRound): (callId: string) => string {
  const outputs = new Map(results.map(({ call, output }) => [call.callId, output]))
  return (callId) => outputs.get(callId) ?? NOT_RUN
}

/** Kinds of items that are given back; no others are asked for. */
const REPLAYED = new Set(['message', 'reasoning', 'function_call'])

const ENCRYPTED_REASONING = 'reasoning.encrypted_content'

/**
 * The Responses API. Nothing is stored on the other side: rounds are given back as whole items, encrypted reasoning
 * included, each call followed by its result.
 */
export function responsesDialect(): Dialect {
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
    listen: (to, call) => new ResponsesListener(to, call),
  }
}

function request(
  { client }: Upstream,
  to: Addressee,
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

/** Calls are taken from finished items alone: what is told of them before may be a part. */
class ResponsesListener implements Listener {
  readonly closingMs = null
  readonly #model: string
  readonly #idOf: (given: unknown) => string
  readonly #items: { index: number; item: Fields }[] = []
  readonly #calls: { index: number; call: ToolCall }[] = []
  #spoken = false
  #refused = false

  constructor({ model }: Addressee, { rounds }: ModelCall) {
    this.#model = model
    this.#idOf = callIds(rounds)
  }

  hear(event: Fields): Heard {
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
    return { kind: 'failed', ...upstreamError('truncated').round }
  }

  #text(delta: unknown): Heard {
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
    if (!this.#spoken && this.#calls.length === 0) {
      return { kind: 'failed', ...upstreamError('empty', { usage }).round }
    }
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
  return { kind: 'failed', ...upstreamError(code, { usage: usageOfResponse(response), evidence }).round }
}
