const LF = 0x0a
const CR = 0x0d
const DATA = 'data:'

/** The last event of a stream, however much of its line end is missing. */
const END_MARK = /^data: ?\[DONE\]\s*$/
/** More bytes of a line than its field name and the end mark have. */
const HEAD_BYTES = 16

/** Finds the data lines of an event stream in bytes that are passed on unchanged; keeps the beginning of one line. */
export class DataLines {
  readonly #maxLineBytes: number
  #lineBytes = 0
  /** First bytes of the current line. */
  #head = ''
  #isDone = false

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes
  }

  /** True once the stream contained its end mark. */
  get isDone(): boolean {
    return this.#isDone
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
      if (end < chunk.length) {
        this.#lineBytes = 0
        this.#head = ''
      }
      from = end + 1
    }
    return found
  }

  /** Reads a part of a line. */
  #read(chunk: Uint8Array, from: number, to: number): boolean {
    this.#lineBytes += to - from
    const missing = HEAD_BYTES - this.#head.length
    this.#head += String.fromCharCode(...chunk.subarray(from, Math.min(to, from + missing)))
    this.#isDone ||= END_MARK.test(this.#head)
    return this.#head.startsWith(DATA) && to > from
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
 * The first data line of a stream so far. Empty ones do not count.
 *
 * @param bytes the stream from its beginning
 * @returns the place of its first byte, and its data; null if it is not complete yet
 */
export function firstDataLine(bytes: Uint8Array): { start: number; data: string } | null {
  for (let from = 0; from < bytes.length;) {
    const end = lineEnd(bytes, from)
    if (end === bytes.length) return null
    const line = new TextDecoder().decode(bytes.subarray(from, end))
    const data = line.startsWith(DATA) ? line.slice(DATA.length).trim() : ''
    if (data !== '') return { start: from, data }
    from = end + 1
  }
  return null
}
