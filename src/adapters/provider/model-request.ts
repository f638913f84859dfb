import type {
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions'
import { asArray, asJsonObject, parseJsonObject } from '../../domain/json.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { InputMessage, ModelCall, ToolDefinition, ToolRound } from '../../domain/agent/model-call.ts'
import type { CompletionMessage } from '../completion-message.ts'
import {
  CALL_MESSAGES,
  EMPTY_CONTENT,
  NO_REASONING,
  NO_TOOLS,
  SCHEMA_MEMBERS,
  STREAM,
  SYSTEM,
  tokenLimit,
} from './refusals.ts'
import type { RequestBody, RequestForm } from './refusals.ts'
import type { StreamedResponse, Upstream } from './upstream.ts'

/** The models of a round, and additional request fields. */
export interface Target {
  /** One id, or several for the routing service, which uses the first that responds. */
  ids: readonly string[]
  /** Merged into the request. */
  extra?: Readonly<Record<string, unknown>>
}

/** The parts of an assistant message that later rounds send back. */
export interface AssistantMessage {
  text: string
  reasoning: CompletionMessage['reasoning']
  calls: readonly { id: string; name: string; arguments: string; extra?: JsonObject }[]
}

/** Builds the request of a call. */
export function requestBody(form: RequestForm, { ids, extra }: Target, call: ModelCall): RequestBody {
  const tools = call.tools.map((tool) => toTool(tool, form))
  const hasSystem = !form.refused.has(SYSTEM)
  const isOtherLimit = form.refused.has(tokenLimit(form.isOpenAi))
  const isText = form.refused.has(CALL_MESSAGES)
  const input = [...call.input, ...(isText ? call.rounds.flatMap(toTexts) : [])]
  const body: RequestBody = {
    messages: [
      ...(hasSystem ? [{ role: 'system' as const, content: call.instructions }] : []),
      ...joinAdjacent(hasSystem ? input : [{ role: 'user', content: call.instructions }, ...input]),
      ...(isText ? [] : call.rounds.flatMap((round) => toMessages(round, form))),
    ],
    ...(tools.length > 0 ? { tools } : form.refused.has(NO_TOOLS) ? usedTools(call) : {}),
    [tokenLimit(form.isOpenAi !== isOtherLimit)]: call.maxOutputTokens,
    ...(form.refused.has(STREAM) ? {} : { stream: true, stream_options: { include_usage: true } }),
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
export async function sendRequest(
  { client }: Upstream,
  body: RequestBody,
  signal: AbortSignal,
): Promise<StreamedResponse> {
  const request = client.chat.completions.create(body as ChatCompletionCreateParamsStreaming, { signal })
  return (await request.asResponse()) as StreamedResponse
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
  const optional = new Set(
    inner.filter(([, each]) => asArray(each['type']).includes('null')).map(([name]) => name),
  )
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

/** Words for engines that refuse calls without any. */
const CALLING = 'Tools:'

function toMessages(round: ToolRound, form: RequestForm): ChatCompletionMessageParam[] {
  const { text, reasoning, calls } = round.output as AssistantMessage
  const resultOf = resultsByCallId(round)
  const message = {
    role: 'assistant' as const,
    content: text === '' && form.refused.has(EMPTY_CONTENT) ? CALLING : text,
    ...(form.refused.has(NO_REASONING) ? { reasoning_content: reasoning.reasoning ?? CALLING } : {}),
    ...withoutRefused(reasoning, form),
    tool_calls: calls.map(({ id, extra, ...called }) => ({
      id,
      type: 'function' as const,
      function: called,
      ...extra,
    })),
  }
  return [
    message,
    ...calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: resultOf(id) })),
  ]
}

/** The messages of a round as text, for engines whose templates know no others. */
function toTexts(round: ToolRound): InputMessage[] {
  const { text, calls } = round.output as AssistantMessage
  const resultOf = resultsByCallId(round)
  const written = calls.map((called) => `${called.name}(${called.arguments})`)
  const results = calls.map(({ id, name }) => `${name}: ${resultOf(id)}`)
  return [
    { role: 'assistant', content: [text, ...written].join('\n').trim() },
    { role: 'user', content: results.join('\n') },
  ]
}

/** Result of a tool call that did not run: providers reject a call without a result. */
const NOT_RUN = '{"error":"not_run"}'

/** Returns a function that finds the result of a call by its id. */
function resultsByCallId({ results }: ToolRound): (callId: string) => string {
  const outputs = new Map(results.map(({ call, output }) => [call.callId, output]))
  return (callId) => outputs.get(callId) ?? NOT_RUN
}
