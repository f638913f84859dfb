import { listedModels } from '../models/ranking.ts'
import type { RankedModel } from '../models/schema.ts'
import { byteLengthOf } from '../text.ts'
import { asJsonObject } from '../json.ts'

/** Largest body of a request to `/v1`, in bytes (docs/v1.md). */
export const V1_BODY_MAX_BYTES = 4 * 1024 * 1024

/** Estimated size of a token of input, in bytes of UTF-8. */
const BYTES_PER_TOKEN = 3

/** Least context of `auto-long`, in tokens. */
const LONG_CONTEXT = 128_000

/** The grounded chat as a model of `/v1`. */
export const DASH_MODEL = 'dash'

/** The models of `/v1` that stand for the best ranked model with some capabilities. */
export const AUTO_MODELS = {
  auto: {},
  'auto-tools': { tools: true },
  'auto-json': { json: 'schema' },
  'auto-long': { context: LONG_CONTEXT },
} as const satisfies Record<string, Partial<CompletionNeeds>>

/** The capabilities that a request needs. */
export interface CompletionNeeds {
  tools: boolean
  /** `object`: any JSON object; `schema`: JSON of a given schema. */
  json: 'none' | 'object' | 'schema'
  /** Estimated tokens of input and output. */
  context: number
}

/** Needs as an error names them. */
export function formatNeeds({ tools, json, context }: CompletionNeeds): string[] {
  return [...(tools ? ['tools'] : []), ...(json === 'none' ? [] : [`json ${json}`]), `context ${context}`]
}

/** A request for a chat completion that may be passed on. */
export interface CompletionRequest {
  /** An `auto` model or a ranked id. */
  model: string
  needs: CompletionNeeds
  stream: boolean
  /**
   * Body at a price of zero and without fields that could cost anything.
   *
   * @param ids the list that stands for an `auto` model, or the ranked id alone
   */
  bodyFor: (ids: readonly string[]) => string
}

/** The reason to decline a request: the field, and how to correct it. */
export interface InvalidRequest {
  problem: string
}

/** Members of an object that are passed on; of a list, those of each item. `true` passes any value. */
interface Members {
  readonly [name: string]: Members | true
}

/** Fields of a request that are passed on; every other one is removed. */
const FIELDS: Members = {
  stream: true,
  stream_options: { include_usage: true, include_obfuscation: true },
  max_tokens: true,
  max_completion_tokens: true,
  temperature: true,
  top_p: true,
  top_k: true,
  min_p: true,
  frequency_penalty: true,
  presence_penalty: true,
  repetition_penalty: true,
  seed: true,
  stop: true,
  logit_bias: true,
  logprobs: true,
  top_logprobs: true,
  tool_choice: { type: true, function: { name: true } },
  parallel_tool_calls: true,
  response_format: {
    type: true,
    json_schema: { name: true, description: true, schema: true, strict: true },
  },
  reasoning: { effort: true, max_tokens: true, exclude: true, enabled: true, summary: true },
  reasoning_effort: true,
}

const TOOL_FIELDS: Members = {
  type: true,
  function: { name: true, description: true, parameters: true, strict: true },
}

const MESSAGE_FIELDS: Members = {
  role: true,
  content: { type: true, text: true, refusal: true },
  name: true,
  tool_calls: { index: true, id: true, type: true, function: { name: true, arguments: true } },
  tool_call_id: true,
  refusal: true,
  reasoning: true,
  reasoning_content: true,
  reasoning_details: true,
}

/** Most levels of objects and lists in a request; a serialiser that recurses needs a bound. */
const LEVELS_MAX = 128

/** Most values in a request: parsing takes time and memory for each. */
const VALUES_MAX = 100_000

/** A price above zero is refused by the routing service. */
const FREE_ONLY = { max_price: { prompt: 0, completion: 0, request: 0, image: 0 } }

type Fields = Readonly<Record<string, unknown>>

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Counts levels and values of JSON text without parsing it.
 *
 * @returns why the text is too complex; null if it is not, whether it is JSON or not
 */
export function complexityOf(text: string): string | null {
  let [level, values, isString] = [0, 0, false]
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (isString) {
      if (code === BACKSLASH) index += 1
      else if (code === QUOTE) isString = false
    } else if (code === QUOTE) isString = true
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) level -= 1
    else if (code === OPEN_LIST || code === OPEN_OBJECT || code === COMMA || code === COLON) {
      values += 1
      if (code === OPEN_LIST || code === OPEN_OBJECT) level += 1
      if (level > LEVELS_MAX) return `the body has more than ${LEVELS_MAX} levels`
      if (values > VALUES_MAX) return `the body has more than ${VALUES_MAX} values`
    }
  }
  return null
}

/**
 * Reads a request for a chat completion (docs/v1.md).
 *
 * @param body the parsed JSON of the request, which `complexityOf` found simple enough
 */
export function parseCompletionRequest(body: unknown): CompletionRequest | InvalidRequest {
  const fields = asJsonObject(body)
  if (fields === null) return invalid('the body is not a JSON object')
  const { model } = fields
  // The OpenAI API takes null for what is not given.
  const stream = fields['stream'] ?? false
  const tools = fields['tools'] ?? []
  if (typeof model !== 'string' || model === '') return invalid('`model` is not the id of a model')
  if (typeof stream !== 'boolean') return invalid('`stream` is neither true nor false')
  const messages = parseMessages(fields['messages'])
  if ('problem' in messages) return messages
  if (!Array.isArray(tools) || !tools.every((tool) => asJsonObject(tool)?.['type'] === 'function'))
    return invalid('`tools` is not a list of tools of the type `function`; other tools cost money')
  if ((asJsonObject(fields['tool_choice'])?.['type'] ?? 'function') !== 'function')
    return invalid('`tool_choice` is not of the type `function`; other tools cost money')
  const functions = tools.map((tool) => pickIn(tool, TOOL_FIELDS))
  const passed = {
    ...pick(fields, FIELDS),
    messages,
    ...(functions.length > 0 ? { tools: functions } : {}),
  }
  return {
    model,
    stream,
    needs: needsOf(fields, model, messages, functions),
    bodyFor: (ids) => {
      const target = isAuto(model) ? { models: ids } : { model: ids[0] }
      return JSON.stringify({ ...passed, stream, ...target, provider: FREE_ONLY })
    },
  }
}

function parseMessages(value: unknown): Fields[] | InvalidRequest {
  if (!Array.isArray(value) || value.length === 0) return invalid('`messages` is not a list of messages')
  const messages: Fields[] = []
  for (const [index, item] of value.entries()) {
    const message = asJsonObject(item)
    if (message === null || typeof message['role'] !== 'string')
      return invalid(`\`messages[${index}]\` has no \`role\``)
    if (!isText(message['content']))
      return invalid(
        `the content of \`messages[${index}]\` is not text; images, files and audio are not passed on`,
      )
    messages.push(pick(message, MESSAGE_FIELDS))
  }
  return messages
}

/** True for text, for nothing, and for parts that are text. Files would be converted by plugins that cost money. */
function isText(content: unknown): boolean {
  if (!Array.isArray(content)) return content === undefined || content === null || typeof content === 'string'
  return content.every((part) => ['text', 'refusal'].includes(String(asJsonObject(part)?.['type'])))
}

function needsOf(
  fields: Fields,
  model: string,
  messages: unknown,
  tools: readonly unknown[],
): CompletionNeeds {
  const named: Partial<CompletionNeeds> = isAuto(model) ? AUTO_MODELS[model] : {}
  const input = byteLengthOf(JSON.stringify([messages, tools]))
  const output = Math.max(tokensOf(fields['max_tokens']), tokensOf(fields['max_completion_tokens']))
  const context = Math.ceil(input / BYTES_PER_TOKEN) + output
  const json = jsonOf(asJsonObject(fields['response_format'])?.['type'])
  return {
    tools: named.tools ?? tools.length > 0,
    json: json === 'none' ? (named.json ?? 'none') : json,
    context: Math.max(context, named.context ?? 0),
  }
}

function isAuto(model: string): model is keyof typeof AUTO_MODELS {
  return Object.hasOwn(AUTO_MODELS, model)
}

function jsonOf(type: unknown): CompletionNeeds['json'] {
  if (type === undefined || type === 'text') return 'none'
  return type === 'json_object' ? 'object' : 'schema'
}

function tokensOf(value: unknown): number {
  return typeof value === 'number' && value > 0 ? Math.min(Math.ceil(value), Number.MAX_SAFE_INTEGER) : 0
}

function pick(fields: Fields, members: Members): Fields {
  const known = Object.entries(members).filter(([name]) => Object.hasOwn(fields, name))
  return Object.fromEntries(
    known.map(([name, inner]) => [name, inner === true ? fields[name] : pickIn(fields[name], inner)]),
  )
}

/** Picks the members of a value that may be an object, a list, or neither. */
function pickIn(value: unknown, members: Members): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => pickIn(item, members))
  const fields = asJsonObject(value)
  return fields === null ? value : pick(fields, members)
}

function invalid(problem: string): InvalidRequest {
  return { problem }
}

/** The models for a request, best first, or the reason for each model that there is none. */
export type Selection =
  { models: readonly RankedModel[] } | { rejected: Readonly<Record<string, string>> } | { unknown: true }

/**
 * Selects the models for the list of a request by measured capability (docs/v1.md).
 *
 * @param ranked the current ranking, best first
 * @param model an `auto` model, or a ranked id, which is the only candidate then
 */
export function selectModels(
  ranked: readonly RankedModel[],
  model: string,
  needs: CompletionNeeds,
): Selection {
  const considered = isAuto(model) ? ranked : ranked.filter(({ id }) => id === model)
  if (considered.length === 0 && !isAuto(model)) return { unknown: true }
  const rejected: Record<string, string> = {}
  const fitting = considered.filter((each) => {
    const reason = rejectionOf(each, needs)
    if (reason !== null) rejected[each.id] = reason
    return reason === null
  })
  const models = listedModels(fitting)
  return models.length > 0 ? { models } : { rejected }
}

/** The first need that a model does not meet; null if it meets all. What was not measured is not assumed. */
function rejectionOf(model: RankedModel, { tools, json, context }: CompletionNeeds): string | null {
  if (tools && model.toolUse !== 'proven') return `tool use is ${model.toolUse}`
  if (tools && !model.supportsTools) return 'no tools in the catalogue'
  if (json === 'schema' && !model.supportsStructuredOutputs) return 'no structured outputs'
  if (json === 'object' && !(model.supportsResponseFormat || model.supportsStructuredOutputs))
    return 'no JSON response format'
  if (model.contextLength < context)
    return `a context of ${model.contextLength} tokens, but about ${context} are needed`
  return null
}
