const LF = 0x0a
const CR = 0x0d
const DATA = 'data:'

/** Finds the data lines of an event stream in bytes that are passed on unchanged; keeps nothing but counters. */
export class DataLines {
  readonly #maxLineBytes: number
  #lineBytes = 0
  /** Number of characters of `data:` at the beginning of the current line; -1 for another line. */
  #matched = 0

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes
  }

  /**
   * @returns true if a line that begins with `data:` has ended or grown in this chunk; null if a line is longer than
   *   allowed
   */
  push(chunk: Uint8Array): boolean | null {
    let found = false
    for (let from = 0; from < chunk.length;) {
      const end = lineEnd(chunk, from)
      found = this.#read(chunk, from, end) || found
      if (this.#lineBytes > this.#maxLineBytes) return null
      if (end < chunk.length) this.#lineBytes = this.#matched = 0
      from = end + 1
    }
    return found
  }

  /** Reads a part of a line. */
  #read(chunk: Uint8Array, from: number, to: number): boolean {
    this.#lineBytes += to - from
    for (let at = from; at < to && this.#matched >= 0 && this.#matched < DATA.length; at += 1)
      this.#matched = chunk[at] === DATA.charCodeAt(this.#matched) ? this.#matched + 1 : -1
    return this.#matched === DATA.length && to > from
  }
}

/** Index of the next CR or LF; the length of the chunk if there is none. */
function lineEnd(chunk: Uint8Array, from: number): number {
  const feed = chunk.indexOf(LF, from)
  const end = feed === -1 ? chunk.length : feed
  const carriage = chunk.subarray(from, end).indexOf(CR)
  return carriage === -1 ? end : from + carriage
}

/**
 * The first data line of a stream so far.
 *
 * @param bytes the stream from its beginning
 * @returns the place of its first byte, and its data; null if it is not complete yet
 */
export function firstDataLine(bytes: Uint8Array): { start: number; data: string } | null {
  for (let from = 0; from < bytes.length;) {
    const end = lineEnd(bytes, from)
    if (end === bytes.length) return null
    const line = new TextDecoder().decode(bytes.subarray(from, end))
    if (line.startsWith(DATA)) return { start: from, data: line.slice(DATA.length).trim() }
    from = end + 1
  }
  return null
}
