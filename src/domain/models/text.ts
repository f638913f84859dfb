/**
 * Text of a service as it may be published: well-formed Unicode, control characters as spaces, cut by code point.
 *
 * @param most code points kept
 */
export function publishedText(text: string, most: number): string {
  const plain = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
  // No code point is longer than two units: what is behind need not be looked at.
  const points = Array.from(plain.slice(0, 2 * most + 2).toWellFormed())
  return points.length > most ? `${points.slice(0, most - 1).join('')}…` : plain
}

/**
 * A published text that no reader takes for a recommendation: readers collect every text with a slash and `:free` as the
 * id of a model to use.
 */
export function withoutModelIds(text: string): string {
  return text.replaceAll(':free', ' (free)')
}

/** A JSON value with every text changed, names of fields included. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, change)]),
  )
}

/** A JSON value whose every text, names of fields included, is well-formed Unicode. */
export function wellFormed(value: unknown): unknown {
  return mapTexts(value, (text) => text.toWellFormed())
}
