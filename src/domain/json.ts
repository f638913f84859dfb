import { decodeUtf8 } from './text.ts'

/** Reading and writing JSON that nothing has checked yet. */

/** Parses JSON; undefined for invalid text. The parser's own error would repeat the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Serialises a value as JSON; an empty text for undefined, and for a value that is nested too deeply. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch (error) {
    if (error instanceof RangeError) return ''
    throw error
  }
}

/** Parses JSON in UTF-8; undefined for other bytes. */
export function parseJsonBytes(bytes: Uint8Array): unknown {
  const text = decodeUtf8(bytes)
  return text === null ? undefined : parseJson(text)
}

/** A JSON object, its fields unchecked. `__proto__` is a field like others. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Returns the value if it is an object, otherwise null. */
export function asJsonObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null
}

/** Parses a text as a JSON object; null for anything else. */
export function parseJsonObject(text: string): JsonObject | null {
  return asJsonObject(parseJson(text))
}

/** Returns the value if it is an array, otherwise an empty array. */
export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the value if it is a text, otherwise an empty text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
