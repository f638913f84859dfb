import { asArray, asJsonObject, jsonText, parseJsonObject, textOf } from '../domain/json.ts'
import type { JsonObject } from '../domain/json.ts'

const REASONING_TEXTS = ['reasoning', 'reasoning_content'] as const

/** Fields of a message that hold its reasoning. Engines may require them back with the calls of the message. */
export const REASONING_FIELDS = [...REASONING_TEXTS, 'reasoning_details'] as const

const SPOKEN_FIELDS = ['content', 'refusal', 'tool_calls', 'function_call', ...REASONING_FIELDS] as const

/** The message of a chat completion, whole or streamed, in the forms that different engines send. */
export class CompletionMessage {
  readonly #calls = new WrittenCalls()
  /** The reasoning by field. */
  readonly reasoning: Partial<Record<(typeof REASONING_TEXTS)[number], string>> & {
    reasoning_details?: readonly JsonObject[]
  } = {}
  text = ''
  refusal = ''
  /** The last finish reason as OpenAI names it; empty while there is none. Engines may send one with every chunk. */
  finish = ''
  isMissing = true
  #hasDeltas = false

  get calls(): readonly WrittenCall[] {
    // Some engines end with an empty call.
    return this.#calls.list.filter((call) => call.name + call.arguments !== '')
  }

  /**
   * Adds a whole completion or the next chunk of a stream.
   *
   * @returns the content and the refusal that it adds, and the reasoning and the tool calls
   */
  add(completion: JsonObject): { content: string; refusal: string; hidden: string } {
    const choice = firstChoice(completion)
    this.finish = finishReason(choice) || this.finish
    const delta = asJsonObject(choice?.['delta'])
    const whole = asJsonObject(choice?.['message'])
    if (delta === null && whole === null) return { content: '', refusal: '', hidden: '' }
    this.isMissing = false
    const isDelta = SPOKEN_FIELDS.some((field) => !isEmpty(delta?.[field]))
    if (!isDelta && this.#hasDeltas) return this.#addRest(whole ?? {})
    this.#hasDeltas ||= isDelta
    const message = (isDelta ? delta : whole) ?? {}
    const content = contentText(message['content'])
    const refusal = textOf(message['refusal']) + refusalIn(message['content'])
    this.text += content
    this.refusal += refusal
    // Other parts are reasoning too.
    let hidden = typeof message['content'] === 'object' ? jsonText(message['content'] ?? '') : ''
    for (const field of REASONING_TEXTS) {
      const text = textOf(message[field])
      if (text !== '') this.reasoning[field] = textOf(this.reasoning[field]) + text
      hidden += text
    }
    const details = asArray(message['reasoning_details'])
    for (const detail of jsonText(details) === '' ? [] : details)
      this.reasoning.reasoning_details = addDetail(this.reasoning.reasoning_details ?? [], detail)
    hidden += this.#calls.add(message)
    return { content, refusal, hidden }
  }

  /** Adds the rest of a whole message that repeats the deltas before it. */
  #addRest(whole: JsonObject): { content: string; refusal: string; hidden: string } {
    const text = contentText(whole['content'])
    const content = text.startsWith(this.text) ? text.slice(this.text.length) : ''
    this.text += content
    return { content, refusal: '', hidden: this.calls.length > 0 ? '' : this.#calls.add(whole) }
  }
}

/** Adds a detail of reasoning, or the next part of the last one. */
function addDetail(details: readonly JsonObject[], added: unknown): JsonObject[] {
  const detail = asJsonObject(added) ?? {}
  const last = details.at(-1)
  const isNext =
    detail['type'] === 'reasoning.text' &&
    last?.['type'] === detail['type'] &&
    last['index'] === detail['index']
  if (!isNext) return [...details, detail]
  const text = textOf(last['text']) + textOf(detail['text'])
  return [...details.slice(0, -1), { ...last, ...detail, text }]
}

/** Other names of the reasons that say that an answer is not whole. */
const REASONS: readonly [RegExp, string][] = [
  [
    /error|fail|abort|cancel|malformed|insufficient|overload|unexpected|internal|time|interrupt|unavailable|other/i,
    'error',
  ],
  [/length|max|limit|window|truncat|repetition/i, 'length'],
  [/filter|safety|sensitive|recitation|prohibited|block|moderat|spii|guardrail|refusal/i, 'content_filter'],
  // Some engines write the absence of a reason as a text.
  [/^(?:null|none)$/i, ''],
]

/** The finish reason of a choice as OpenAI names it; empty if there is none. */
export function finishReason(choice: JsonObject | null): string {
  const reason = textOf(choice?.['finish_reason'])
  return REASONS.find(([names]) => names.test(reason))?.[1] ?? reason
}

/** The choice of index 0. Its place does not decide: other choices may be sent beside it, or in events of their own. */
export function firstChoice(completion: JsonObject): JsonObject | null {
  const choices = asArray(completion['choices'])
  const isFirst = (choice: unknown, place: number): boolean =>
    Number(asJsonObject(choice)?.['index'] ?? place) === 0
  return asJsonObject(choices.find(isFirst))
}

/**
 * The error in a completion or in an event; null if there is none. Engines send empty errors beside content. Without
 * choices, an empty object is an error without details, and an event may be the error itself.
 */
export function errorIn(completion: JsonObject): unknown {
  const holders = [completion, firstChoice(completion), asJsonObject(completion['x_groq'])]
  // MiniMax reports errors in `base_resp`, with `choices: null`.
  const state = asJsonObject(completion['base_resp'])
  const errors = [
    ...holders.map((holder) => holder?.['error']),
    isEmpty(state?.['status_code']) ? null : state,
  ]
  const error = errors.find((value) => !isEmpty(value)) ?? null
  if (error !== null || 'choices' in completion) return error
  const isError =
    completion['object'] === 'error' ||
    completion['type'] === 'error' ||
    ['message', 'detail'].some((name) => typeof completion[name] === 'string')
  return isError ? completion : asJsonObject(completion['error'])
}

/** True for a value that says nothing, and for objects and lists of such values. */
function isEmpty(value: unknown, levels = 3): boolean {
  if (typeof value !== 'object' || value === null) return !value
  return levels > 0 && Object.values(value).every((member) => isEmpty(member, levels - 1))
}

/** The text of a content, which may be a part or a list of parts. Parts of other types are reasoning or references. */
function contentText(content: unknown): string {
  const parts: unknown[] = Array.isArray(content) ? content : [content]
  return parts
    .map((part) => {
      const { type, text } = asJsonObject(part) ?? { text: part }
      const isText = [undefined, null, 'text', 'output_text'].includes(type as string)
      return isText ? textOf(asJsonObject(text)?.['value'] ?? text) : ''
    })
    .join('')
}

/** The refusal in a list of parts. */
function refusalIn(content: unknown): string {
  const parts = asArray(content).map(asJsonObject)
  return parts.map((part) => (part?.['type'] === 'refusal' ? textOf(part['refusal']) : '')).join('')
}

/** A tool call as a model wrote it; parts that are missing are empty. */
export interface WrittenCall {
  id: string
  name: string
  arguments: string
  /** Members that some engines require back with the call, such as a signature of thoughts. */
  extra: JsonObject
}

/** Of Gemini, of LiteLLM, and of Databricks. */
const EXTRA_FIELDS: ReadonlySet<string> = new Set([
  'extra_content',
  'provider_specific_fields',
  'thoughtSignature',
])

/** The tool calls of a message, whole or streamed, in the forms that different engines send. */
class WrittenCalls {
  readonly list: WrittenCall[] = []
  readonly #byIndex = new Map<unknown, WrittenCall>()

  /**
   * Adds the calls of a message, or their next parts.
   *
   * @returns the text that they add
   */
  add({ tool_calls: calls, function_call: legacy }: JsonObject): string {
    const parts = [calls].flat().map(asJsonObject)
    const added = parts.filter((part) => part !== null)
    // Some engines send both forms.
    if (added.length === 0 && asJsonObject(legacy)) added.push({ index: 'legacy', function: legacy })
    return added.map((part) => this.#addPart(part)).join('')
  }

  #addPart(part: JsonObject): string {
    const { name, arguments: written, parameters } = asJsonObject(part['function']) ?? part
    const index = part['index'] ?? null
    const added: WrittenCall = {
      id: textOf(part['id']),
      name: textOf(name),
      arguments: argumentsText(written ?? parameters),
      extra: Object.fromEntries(
        Object.entries(part).filter(
          ([field, value]) => EXTRA_FIELDS.has(field) && value !== null && jsonText(value) !== '',
        ),
      ),
    }
    const text = added.name + added.arguments
    const current = this.#currentCall(index, added)
    if (current === undefined || beginsCall(current, added, index !== null)) {
      if (current !== undefined) added.name ||= current.name
      this.list.push(added)
      this.#byIndex.set(index, added)
    } else extend(current, added)
    return text
  }

  /** The call that a part may belong to. An id tells it where the index does not. */
  #currentCall(index: unknown, { id, name }: WrittenCall): WrittenCall | undefined {
    const known = id === '' ? undefined : this.list.findLast((call) => call.id === id)
    if (index === null) return known ?? this.list.at(-1)
    const indexed = this.#byIndex.get(index)
    if (name !== '' || indexed?.id === id) return indexed
    // The first part may have lacked the index.
    return known ?? indexed ?? (id === '' ? this.list.at(-1) : undefined)
  }
}

/** Some engines send the arguments as an object instead of a JSON text. */
function argumentsText(written: unknown): string {
  return asJsonObject(written) === null ? textOf(written) : jsonText(written)
}

/**
 * True if a part begins another call. Ids and indexes do not decide it alone: engines omit them, repeat them for other
 * calls, or give each part another id. The first part of a call has its name.
 *
 * @param hasIndex true if the part has the index of the current call
 */
function beginsCall(current: WrittenCall, added: WrittenCall, hasIndex: boolean): boolean {
  if (added.name === '')
    return hasNewArguments(current, added) && isStart(added.arguments) && isWhole(current)
  if (current.name === '') return false
  const isOtherId = added.id !== '' && current.id !== '' && added.id !== current.id
  if (isOtherId) return !goesOn(current, added, hasIndex)
  const hasPlace = hasIndex || added.id !== ''
  // The rest of a name comes before the arguments.
  if (added.name !== current.name) return !hasPlace || current.arguments.trim() !== ''
  if (added.arguments.trim() === '') return !hasPlace && isWhole(current)
  return hasNewArguments(current, added) && isWhole(current)
}

/** True if a part with another id has the rest of the arguments: they cannot begin, and those before it are not whole. */
function goesOn(current: WrittenCall, added: WrittenCall, hasIndex: boolean): boolean {
  if (added.name !== current.name || added.arguments.trim() === '') return false
  if (current.arguments.trim() === '') return hasIndex && !isWhole(added)
  return !isStart(added.arguments) && !isWhole(current)
}

function hasNewArguments(current: WrittenCall, added: WrittenCall): boolean {
  return !isEmptyObject(added.arguments) && !added.arguments.startsWith(current.arguments)
}

/** True for complete arguments. Some engines begin with an empty object. */
function isWhole({ arguments: written }: WrittenCall): boolean {
  return !isEmptyObject(written) && written.trimEnd().endsWith('}') && parseJsonObject(written) !== null
}

function isStart(written: string): boolean {
  return written.trimStart().startsWith('{')
}

function isEmptyObject(written: string): boolean {
  return /^\s*(?:\{\s*\}|null|"")\s*$/.test(written)
}

/** Adds a part to its call. Some engines send names and arguments again, whole or as far as they go. */
function extend(current: WrittenCall, added: WrittenCall): void {
  current.id ||= added.id
  current.extra = { ...added.extra, ...current.extra }
  current.name = added.name.startsWith(current.name) ? added.name : current.name + added.name
  const hasMore = isStart(current.arguments) && added.arguments.startsWith(current.arguments)
  const isReplaced = isStart(added.arguments) && isEmptyObject(current.arguments)
  if (hasMore || isReplaced) current.arguments = added.arguments
  else if (!(isEmptyObject(added.arguments) && isWhole(current))) current.arguments += added.arguments
}
