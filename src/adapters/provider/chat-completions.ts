import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions'
import type { ModelCall, ToolDefinition, ToolRound, Usage } from '../../domain/agent/model-call.ts'
import { fieldsOf, listOf } from '../http.ts'
import type { Fields } from '../http.ts'
import { failedUpstream } from './upstream.ts'
import type { Upstream } from './upstream.ts'
import { callIds, replayable, resultsOf, textOf, usageOf } from './wire-format.ts'
import type { ParsedEvent, RoundEnd, RoundParser, Target, WireFormat } from './wire-format.ts'

/** Usage comes after the answer is finished, if it comes. */
const USAGE_MS = 2_000

/** What an assistant's message is made of when it is given back. */
interface Said {
  text: string
  calls: readonly { id: string; name: string; arguments: string }[]
}

/** Chat completions: for providers without the Responses API, most local engines and the routing service among them. */
export const chatFormat: WireFormat = {
  send: request,
  parser: (to, call) => new CompletionParser(to, call),
}

function request({ client }: Upstream, to: Target, call: ModelCall, signal: AbortSignal): Promise<Response> {
  const body: ChatCompletionCreateParamsStreaming = {
    model: to.model,
    messages: [
      { role: 'system', content: call.instructions },
      ...call.input.map(({ role, content }) => ({ role, content: content.toWellFormed() })),
      ...call.rounds.flatMap(replayOf),
    ],
    ...(call.tools.length > 0 ? { tools: call.tools.map(toolOf) } : {}),
    max_tokens: call.maxOutputTokens,
    stream: true,
    stream_options: { include_usage: true },
    ...to.extra,
  }
  return client.chat.completions.create(body, { signal }).asResponse()
}

function toolOf({ name, description, parameters }: ToolDefinition): ChatCompletionTool {
  return { type: 'function', function: { name, description, parameters, strict: true } }
}

function replayOf(round: ToolRound): ChatCompletionMessageParam[] {
  const said = round.output as Said
  const resultOf = resultsOf(round)
  const calls = said.calls.map(({ id, ...told }) => ({ id, type: 'function' as const, function: told }))
  return [
    { role: 'assistant', content: said.text === '' ? null : said.text, tool_calls: calls },
    ...calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: resultOf(id) })),
  ]
}

/** A completion has no event for its end: it has ended when a choice told why, and usage may still follow. */
class CompletionParser implements RoundParser {
  readonly #model: string
  readonly #idOf: (given: unknown) => string
  readonly #calls = new CallParts()
  #text = ''
  #refused = false
  #finish = ''
  #usage: Usage | null = null

  constructor({ model }: Target, { rounds }: ModelCall) {
    this.#model = model
    this.#idOf = callIds(rounds)
  }

  get closingMs(): number | null {
    return this.#finish === '' ? null : USAGE_MS
  }

  parse(chunk: Fields): ParsedEvent {
    const choice = fieldsOf(listOf(chunk['choices'])[0])
    const usage = fieldsOf(chunk['usage'])
    this.#usage = usageOf(usage, 'prompt_tokens', 'completion_tokens') ?? this.#usage
    if (chunk['error'] || choice?.['error']) return { end: this.#failed(chunk['error'] ?? choice?.['error']) }
    const delta = fieldsOf(choice?.['delta'])
    const refusal = textOf(delta?.['refusal'])
    if (refusal !== '') this.#refused = true
    const text = textOf(delta?.['content']) + refusal
    this.#text += text
    for (const part of listOf(delta?.['tool_calls'])) this.#calls.add(fieldsOf(part) ?? {})
    this.#finish = textOf(choice?.['finish_reason']) || this.#finish
    const whole = this.#finish !== '' && usage !== null
    return { ...(text === '' ? {} : { text }), ...(whole ? { end: this.endOfStream() } : {}) }
  }

  endOfStream(): RoundEnd {
    if (this.#finish === '') return this.#ended('truncated')
    if (this.#finish === 'error') return this.#failed({})
    if (this.#finish === 'length' || this.#finish === 'content_filter') return this.#ended('incomplete')
    const calls = this.#calls.all().map((told) => ({ callId: this.#idOf(told.id), told }))
    if (this.#text.trim() === '' && calls.length === 0) return this.#ended('empty')
    const said: Said = {
      text: this.#text,
      calls: calls.map(({ callId, told }) => ({ id: callId, ...replayable(told) })),
    }
    return {
      kind: 'end',
      model: this.#model,
      calls: calls.map(({ callId, told }) => ({ callId, name: told.name, arguments: told.arguments })),
      refused: this.#refused,
      output: said,
      usage: this.#usage,
    }
  }

  #ended(code: 'truncated' | 'incomplete' | 'empty'): RoundEnd {
    return failedUpstream(code, { usage: this.#usage })
  }

  #failed(error: unknown): RoundEnd {
    const evidence = { status: 200, headers: {}, body: JSON.stringify({ error }) }
    return failedUpstream('failed', { usage: this.#usage, evidence })
  }
}

interface Call {
  id: string
  name: string
  arguments: string
}

/**
 * Puts tool calls together from what chat completions stream of them. Parts belong together by their index; engines
 * that send whole calls leave it out or give the same one to all of them, and then another id begins another call.
 */
class CallParts {
  readonly #calls: Call[] = []
  readonly #byIndex = new Map<unknown, Call>()

  add(part: Fields): void {
    const told = fieldsOf(part['function']) ?? {}
    const id = textOf(part['id'])
    const call = this.#callOf(part['index'], id)
    if (call.id === '') call.id = id
    if (call.name === '') call.name = textOf(told['name'])
    const given = told['arguments']
    // Some engines send the arguments as an object instead of its text.
    call.arguments += typeof given === 'string' ? given : given ? JSON.stringify(given) : ''
  }

  /** In the order in which they began. */
  all(): readonly Call[] {
    return this.#calls
  }

  #callOf(index: unknown, id: string): Call {
    const open = index === undefined || index === null ? this.#calls.at(-1) : this.#byIndex.get(index)
    const continues = open && (id === '' || (open.id === id && index !== undefined && index !== null))
    if (continues) return open
    const call = { id: '', name: '', arguments: '' }
    this.#calls.push(call)
    this.#byIndex.set(index, call)
    return call
  }
}
