/** Code-unit order, the same on every machine and in every locale. */
export function compareCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const encoder = new TextEncoder()

/** How many bytes of UTF-8 a text takes. */
export function byteLengthOf(text: string): number {
  return encoder.encode(text).byteLength
}
