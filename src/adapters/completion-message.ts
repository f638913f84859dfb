import { asArray, asJsonObject, jsonText, textOf } from '../domain/text.ts'
import type { JsonObject } from '../domain/text.ts'
import { WrittenCalls } from './written-calls.ts'
import type { WrittenCall } from './written-calls.ts'

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
    return this.#calls.list
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
    if (!isDelta && this.#hasDeltas) return this.#addRest(contentText(whole?.['content']))
    this.#hasDeltas ||= isDelta
    const message = (isDelta ? delta : whole) ?? {}
    const content = contentText(message['content'])
    const refusal = textOf(message['refusal'])
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
  #addRest(whole: string): { content: string; refusal: string; hidden: string } {
    const content = whole.startsWith(this.text) ? whole.slice(this.text.length) : ''
    this.text += content
    return { content, refusal: '', hidden: '' }
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
  [/error|fail|abort|cancel|malformed|insufficient|overload|unexpected|other/i, 'error'],
  [/length|max_?tokens|max_?output/i, 'length'],
  [/filter|safety|sensitive|recitation|prohibited|blocklist|spii|guardrail|refusal/i, 'content_filter'],
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
  const errors = [completion['error'], firstChoice(completion)?.['error']]
  const error = errors.find((value) => !isEmpty(value)) ?? null
  if (error !== null || 'choices' in completion) return error
  const isError = completion['object'] === 'error' || completion['type'] === 'error'
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
