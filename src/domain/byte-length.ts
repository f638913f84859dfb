const encoder = new TextEncoder()

/** How many bytes of UTF-8 a text takes. */
export function byteLengthOf(text: string): number {
  return encoder.encode(text).byteLength
}
