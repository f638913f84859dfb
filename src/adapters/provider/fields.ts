/** A JSON object of a provider's, of which nothing is known. */
export type Fields = Readonly<Record<string, unknown>>

/** null for anything but an object. */
export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The empty text for anything but a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
