import { asJsonObject, jsonText, parseJsonObject, textOf } from '../domain/text.ts'
import type { JsonObject } from '../domain/text.ts'

/** A tool call as a model wrote it; parts that are missing are empty. */
export interface WrittenCall {
  id: string
  name: string
  arguments: string
  /** A member that some engines require back with the call, such as a signature of thoughts. */
  extra: unknown
}

/** The tool calls of a message, whole or streamed, in the forms that different engines send. */
export class WrittenCalls {
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
      extra: jsonText(part['extra_content']) === '' ? null : part['extra_content'],
    }
    const text = added.name + added.arguments
    const current = this.#currentCall(index, added.id)
    if (current === undefined || beginsCall(current, added, index !== null)) {
      if (current !== undefined) added.name ||= current.name
      this.list.push(added)
      this.#byIndex.set(index, added)
    } else extend(current, added)
    return text
  }

  #currentCall(index: unknown, id: string): WrittenCall | undefined {
    if (index !== null) return this.#byIndex.get(index)
    return (id === '' ? undefined : this.list.findLast((call) => call.id === id)) ?? this.list.at(-1)
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
  if (isOtherId) return true
  const hasPlace = hasIndex || added.id !== ''
  // The rest of a name comes before the arguments.
  if (added.name !== current.name) return !hasPlace || current.arguments.trim() !== ''
  if (added.arguments.trim() === '') return !hasPlace && isWhole(current)
  return hasNewArguments(current, added) && isWhole(current)
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
  current.extra ??= added.extra
  current.name = added.name.startsWith(current.name) ? added.name : current.name + added.name
  const hasMore = isStart(current.arguments) && added.arguments.startsWith(current.arguments)
  const isReplaced = isStart(added.arguments) && isEmptyObject(current.arguments)
  if (hasMore || isReplaced) current.arguments = added.arguments
  else if (!(isEmptyObject(added.arguments) && isWhole(current))) current.arguments += added.arguments
}
