import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions'
import { asArray, asJsonObject, jsonText, parseJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import { ARGUMENTS_MAX_LENGTH } from '../../domain/agent/bounds.ts'
import { toolNameOf } from '../../domain/agent/model-call.ts'
import type {
  InputMessage,
  ModelCall,
  ModelEvent,
  ToolDefinition,
  ToolRound,
  Usage,
} from '../../domain/agent/model-call.ts'
import { decodeJson } from '../../domain/answers/written-json.ts'
import { thoughtFilter } from '../../domain/answers/thoughts.ts'
import type { ThoughtFilter } from '../../domain/answers/thoughts.ts'
import { CompletionMessage, errorIn } from '../completion-message.ts'
import { EMPTY_CONTENT, NO_TOOLS, SCHEMA_MEMBERS, SYSTEM, tokenLimit } from './refusals.ts'
import type { RequestBody, RequestForm } from './refusals.ts'
import { failedUpstream, respondingId } from './upstream.ts'
import type { FailedRound, Upstream } from './upstream.ts'

/** The models of a round, and additional request fields. */
export interface Target {
  /** One id, or several for the routing service, which uses the first that responds. */
  ids: readonly string[]
  /** Merged into the request. */
  extra?: Readonly<Record<string, unknown>>
}

/** The parts of an assistant message that later rounds send back. */
interface AssistantMessage {
  text: string
  reasoning: CompletionMessage['reasoning']
  calls: readonly { id: string; name: string; arguments: string; extra?: unknown }[]
}

/** Builds the request of a call. */
export function requestBody(form: RequestForm, { ids, extra }: Target, call: ModelCall): RequestBody {
  const tools = call.tools.map((tool) => toTool(tool, form))
  const hasSystem = !form.refused.has(SYSTEM)
  const isOtherLimit = form.refused.has(tokenLimit(form.isOpenAi))
  const body: RequestBody = {
    messages: [
      ...(hasSystem ? [{ role: 'system' as const, content: call.instructions }] : []),
      ...joinAdjacent(hasSystem ? call.input : [{ role: 'user', content: call.instructions }, ...call.input]),
      ...call.rounds.flatMap((round) => toMessages(round, form)),
    ],
    ...(tools.length > 0 ? { tools } : form.refused.has(NO_TOOLS) ? usedTools(call) : {}),
    [tokenLimit(form.isOpenAi !== isOtherLimit)]: call.maxOutputTokens,
    stream: true,
    stream_options: { include_usage: true },
    store: false,
    ...extra,
    // The types of the SDK know no list of models.
    ...(ids.length === 1 ? { model: ids[0] } : { models: ids }),
  }
  return withoutRefused(body, form)
}

function withoutRefused<Fields extends object>(fields: Fields, { refused }: RequestForm): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !refused.has(name))) as Fields
}

/** Sends a request; the signal aborts it. */
export function sendRequest({ client }: Upstream, body: RequestBody, signal: AbortSignal): Promise<Response> {
  return client.chat.completions.create(body as ChatCompletionCreateParamsStreaming, { signal }).asResponse()
}

/** Many engines require that user and assistant alternate. */
function joinAdjacent(input: readonly InputMessage[]): InputMessage[] {
  const joined: InputMessage[] = []
  for (const { role, content } of input) {
    const last = joined.at(-1)
    const text = content.toWellFormed()
    if (last?.role === role) last.content += `\n\n${text}`
    else joined.push({ role, content: text })
  }
  return joined
}

function toTool({ name, description, parameters }: ToolDefinition, form: RequestForm): ChatCompletionTool {
  const schema = withoutMembers(parameters, form)
  return {
    type: 'function',
    function: {
      name,
      description,
      ...(form.isOpenAi ? { parameters: schema, strict: true } : { parameters: toPlainSchema(schema) }),
    },
  }
}

/** The tools that were called, for engines that require the tools of earlier calls. None may be called again. */
function usedTools({ rounds }: ModelCall): Pick<RequestBody, 'tools' | 'tool_choice'> {
  const used = new Set(
    rounds.flatMap(({ output }) => (output as AssistantMessage).calls.map(({ name }) => name)),
  )
  const tools = Array.from(used, (name) => ({
    type: 'function' as const,
    function: { name, parameters: { type: 'object', properties: {} } },
  }))
  return tools.length > 0 ? { tools, tool_choice: 'none' } : {}
}

function withoutMembers(schema: JsonObject, { refused }: RequestForm): JsonObject {
  const isRefused = (name: string): boolean => SCHEMA_MEMBERS.includes(name) && refused.has(name)
  const text = JSON.stringify(schema, (name, value: unknown) => (isRefused(name) ? undefined : value))
  return parseJsonObject(text) ?? {}
}

/**
 * Converts a strict schema for engines that know no strict tools, several of which refuse what only those need: lists of
 * types, null among the values, and `additionalProperties`. Arguments that may be null may be left out instead.
 */
function toPlainSchema(schema: JsonObject): JsonObject {
  const { type, enum: values, properties, items, required, additionalProperties: _closed, ...rest } = schema
  const inner = Object.entries(asJsonObject(properties) ?? {}).map(
    ([name, property]) => [name, asJsonObject(property) ?? {}] as const,
  )
  const optional = new Set(inner.filter(([, property]) => isNullable(property)).map(([name]) => name))
  const needed = asArray(required).filter((name) => !optional.has(String(name)))
  return {
    type: [type].flat().find((each) => each !== 'null'),
    ...rest,
    ...(values === undefined ? {} : { enum: asArray(values).filter((value) => value !== null) }),
    ...(items === undefined ? {} : { items: toPlainSchema(asJsonObject(items) ?? {}) }),
    ...(properties === undefined
      ? {}
      : { properties: Object.fromEntries(inner.map(([name, property]) => [name, toPlainSchema(property)])) }),
    // JSON Schema once forbade an empty list.
    ...(needed.length > 0 ? { required: needed } : {}),
  }
}

function isNullable({ type }: JsonObject): boolean {
  return asArray(type).includes('null')
}

function toMessages(round: ToolRound, form: RequestForm): ChatCompletionMessageParam[] {
  const { text, reasoning, calls } = round.output as AssistantMessage
  const resultOf = resultsByCallId(round)
  const message = {
    role: 'assistant' as const,
    content: text === '' && form.refused.has(EMPTY_CONTENT) ? 'Tools:' : text,
    ...withoutRefused(reasoning, form),
    tool_calls: calls.map(({ id, extra, ...called }) => ({
      id,
      type: 'function' as const,
      function: called,
      ...(extra === undefined ? {} : { extra_content: extra }),
    })),
  }
  return [
    message,
    ...calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: resultOf(id) })),
  ]
}

/** Text and end of the round in an event; either may be absent. */
interface ParsedEvent {
  text?: string
  /** See {@link ModelEvent}. */
  received?: string
  end?: RoundEnd
}

/** End of a round: the final event, or its failure. */
type RoundEnd = Extract<ModelEvent, { kind: 'end' }> | FailedRound

/**
 * Parses a completion. It has no end event, and engines may send a finish reason with every chunk: the end of the stream
 * ends it, and a reason proves it complete.
 */
export class CompletionParser {
  readonly #ids: readonly string[]
  readonly #uniqueId: (value: unknown) => string
  readonly #thinkers: Set<string>
  readonly #message = new CompletionMessage()
  #thoughts: ThoughtFilter | null = null
  /** Text of the answer, without thoughts. */
  #shown = ''
  #usage: Usage | null = null
  #named: unknown = null

  /** @param thinkers models that begin with thoughts without an opening tag; updated */
  constructor({ ids }: Target, { rounds }: ModelCall, thinkers: Set<string>) {
    this.#ids = ids
    this.#thinkers = thinkers
    this.#uniqueId = uniqueCallIds(rounds)
  }

  /** True after a finish reason: the completion may be at its end. */
  get hasReason(): boolean {
    return this.#message.finish !== ''
  }

  parse(chunk: JsonObject): ParsedEvent {
    const usage = parseUsage(asJsonObject(chunk['usage']))
    // Counts of a completion only grow: a smaller one, such as zeros in the last chunk, is none.
    if (tokensOf(usage) >= tokensOf(this.#usage)) this.#usage = usage ?? this.#usage
    this.#named = chunk['model'] ?? this.#named
    const error = errorIn(chunk)
    if (error !== null) {
      const refusal = this.#message.isMissing ? jsonText(error) : null
      return { end: this.#endedEarly('failed', refusal) }
    }
    const { content, refusal, hidden } = this.#message.add(chunk)
    return { received: content + refusal + hidden, ...this.#show(this.#filter.push(content), refusal) }
  }

  /** Returns the end of the round when the stream has ended. */
  endOfStream(): ParsedEvent {
    const { finish, text, refusal, calls: written } = this.#message
    const last = this.#show(written.length > 0 && this.#isThinker ? '' : this.#filter.end(), '')
    if (last.end) return last
    if (finish === '') return { end: this.#endedEarly('truncated') }
    if (finish === 'error') return { end: this.#endedEarly('failed') }
    if (finish === 'length' || finish === 'content_filter') return { end: this.#endedEarly('incomplete') }
    const calls = written.map((call) => ({ callId: this.#uniqueId(call.id), call }))
    if (this.#shown.trim() === '' && calls.length === 0) return { end: this.#endedEarly('empty') }
    const output: AssistantMessage = {
      text: text + refusal,
      reasoning: this.#message.reasoning,
      calls: calls.map(({ callId, call }) => ({
        id: callId,
        ...sanitizeCall(call),
        ...(call.extra === null ? {} : { extra: call.extra }),
      })),
    }
    const end: RoundEnd = {
      kind: 'end',
      model: respondingId(this.#ids, this.#named),
      calls: calls.map(({ callId, call }) => ({ callId, name: call.name, arguments: call.arguments })),
      refused: refusal !== '',
      output,
      usage: this.#usage,
    }
    return { ...last, end }
  }

  /** The model of the response as far as it is known. */
  get #model(): string {
    return this.#ids.length === 1 ? String(this.#ids[0]) : String(this.#named)
  }

  get #isThinker(): boolean {
    return this.#thinkers.has(this.#model)
  }

  get #filter(): ThoughtFilter {
    return (this.#thoughts ??= thoughtFilter(this.#isThinker))
  }

  /** Text that was shown and turned out to be thoughts ends the round; the model is known from then on. */
  #show(content: string, refusal: string): ParsedEvent {
    if (this.#filter.hasLeaked) {
      this.#thinkers.add(this.#model)
      return { end: this.#endedEarly('invalid_stream') }
    }
    const text = content + refusal
    this.#shown += text
    return text === '' ? {} : { text }
  }

  #endedEarly(
    code: 'invalid_stream' | 'truncated' | 'failed' | 'incomplete' | 'empty',
    refusal: string | null = null,
  ): RoundEnd {
    return failedUpstream(code, { usage: this.#usage, refusal })
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

function tokensOf(usage: Usage | null): number {
  return usage === null ? 0 : usage.in + usage.out
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
      // Some engines accept nothing but nine letters and digits.
      id = `call${String(next).padStart(5, '0')}`
      next += 1
    }
    used.add(id)
    return id
  }
}

/** Makes a call safe to send back: providers reject invalid names and arguments that are not a JSON object. */
function sanitizeCall(call: { name: string; arguments: string }): { name: string; arguments: string } {
  const { name, arguments: written } = call
  const isObject = parseJsonObject(written) !== null
  const decoded = isObject || written.length > ARGUMENTS_MAX_LENGTH ? null : decodeJson(written)
  return {
    name: toolNameOf(name) ?? (NAME_PATTERN.test(name) ? name : 'unknown'),
    arguments: isObject ? written : JSON.stringify(asJsonObject(decoded) ?? {}),
  }
}

/** Result of a tool call that did not run: providers reject a call without a result. */
const NOT_RUN = '{"error":"not_run"}'

/** Returns a function that finds the result of a call by its id. */
function resultsByCallId({ results }: ToolRound): (callId: string) => string {
  const outputs = new Map(results.map(({ call, output }) => [call.callId, output]))
  return (callId) => outputs.get(callId) ?? NOT_RUN
}
