import { asArray, asJsonObject, parseJsonObject } from '../domain/text.ts'
import type { JsonObject } from '../domain/text.ts'

/** A tool call as a model wrote it; parts that are missing are empty. */
export interface WrittenCall {
  id: string
  name: string
  arguments: string
}

/** Fields of a message that hold its reasoning. Engines may require them back with the calls of the message. */
export const REASONING_FIELDS = ['reasoning', 'reasoning_content'] as const

/** The message of a chat completion, whole or streamed, in the forms that different engines send. */
export class CompletionMessage {
  readonly calls: WrittenCall[] = []
  /** The reasoning by field. */
  readonly reasoning: Partial<Record<(typeof REASONING_FIELDS)[number], string>> = {}
  text = ''
  refusal = ''
  /** The last finish reason; empty while there is none. Engines may send one with every chunk. */
  finish = ''
  isMissing = true
  readonly #byIndex = new Map<unknown, WrittenCall>()

  /**
   * Adds a whole completion or the next chunk of a stream.
   *
   * @returns the content and the refusal that it adds, and the reasoning and the tool calls
   */
  add(completion: JsonObject): { content: string; refusal: string; hidden: string } {
    const choice = firstChoice(completion)
    this.finish = textOf(choice?.['finish_reason']) || this.finish
    const message = asJsonObject(choice?.['delta'] ?? choice?.['message'])
    if (message === null) return { content: '', refusal: '', hidden: '' }
    this.isMissing = false
    const content = contentText(message['content'])
    const refusal = textOf(message['refusal'])
    this.text += content
    this.refusal += refusal
    // The other parts of a list are reasoning too.
    let hidden = Array.isArray(message['content']) ? JSON.stringify(message['content']) : ''
    for (const field of REASONING_FIELDS) {
      const text = textOf(message[field])
      if (text !== '') this.reasoning[field] = (this.reasoning[field] ?? '') + text
      hidden += text
    }
    for (const part of asArray(message['tool_calls'])) hidden += this.#addCall(asJsonObject(part) ?? {})
    return { content, refusal, hidden }
  }

  /** @returns the text of the part */
  #addCall(part: JsonObject): string {
    const { name, arguments: written } = asJsonObject(part['function']) ?? {}
    const index = part['index'] ?? null
    const added: WrittenCall = {
      id: textOf(part['id']),
      name: textOf(name),
      // Some engines send the arguments as an object instead of a JSON text.
      arguments: asJsonObject(written) === null ? textOf(written) : JSON.stringify(written),
    }
    const current = this.#currentCall(index, added.id)
    if (current === undefined || beginsCall(current, added)) {
      this.calls.push(added)
      this.#byIndex.set(index, added)
      return added.name + added.arguments
    }
    current.id ||= added.id
    current.name ||= added.name
    current.arguments += added.arguments
    return added.name + added.arguments
  }

  #currentCall(index: unknown, id: string): WrittenCall | undefined {
    if (index !== null) return this.#byIndex.get(index)
    return (id === '' ? undefined : this.calls.findLast((call) => call.id === id)) ?? this.calls.at(-1)
  }
}

/**
 * True if a part begins another call. Ids and indexes do not decide it alone: engines omit them, repeat them for other
 * calls, or give each part another id. The first part of a call has its name.
 */
function beginsCall(current: WrittenCall, added: WrittenCall): boolean {
  if (added.name === '' || current.name === '') return false
  if (added.name !== current.name) return true
  const isWhole = parseJsonObject(current.arguments) !== null
  if (added.id === '' || current.id === '') return isWhole
  return added.id !== current.id || (isWhole && added.arguments.trim() !== '')
}

export function firstChoice(completion: JsonObject): JsonObject | null {
  return asJsonObject(asArray(completion['choices'])[0])
}

/** The text of a content, which may be a list of parts. Parts of other types are reasoning or references. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return textOf(content)
  return content
    .map((part) => {
      const { type = 'text', text } = asJsonObject(part) ?? {}
      return type === 'text' || type === 'output_text' ? textOf(text) : ''
    })
    .join('')
}

/** Returns the value if it is a text, otherwise an empty text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
