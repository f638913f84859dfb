/** Bytes an event stream may have. */
export interface StreamBounds {
  /** Of one event, its names and line ends included. */
  maxEventBytes: number
  /** Of the whole stream, comments included. */
  maxBytes: number
}

/** A stream that is larger than its bounds. */
export class StreamTooLarge extends Error {
  override readonly name = 'StreamTooLarge'
}

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Parses an event stream (WHATWG HTML, 9.2.6) from chunks cut anywhere, and keeps no more than one event: every line
 * end, a byte order mark, several data lines, comments. Of an event only its data is kept; no provider's events need
 * their name or id. Every byte is looked at once, whatever the chunks are.
 */
export class EventStream {
  readonly #bounds: StreamBounds
  #bytes = 0
  #eventBytes = 0
  /** Chunks of the line that has not ended. */
  #line: Uint8Array[] = []
  #atStart = true
  #afterReturn = false
  #data: string[] = []

  constructor(bounds: StreamBounds) {
    this.#bounds = bounds
  }

  /**
   * @returns data of the events that ended in this chunk
   * @throws StreamTooLarge
   */
  push(chunk: Uint8Array): string[] {
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#bounds.maxBytes) throw new StreamTooLarge('the stream is larger than its bound')
    const events: string[] = []
    let begin = 0
    for (let at = 0; at < chunk.byteLength; at += 1) {
      const byte = chunk[at]
      if (byte === LINE_FEED && this.#afterReturn) {
        this.#afterReturn = false
        begin = at + 1
        continue
      }
      this.#afterReturn = byte === CARRIAGE_RETURN
      if (byte !== LINE_FEED && byte !== CARRIAGE_RETURN) continue
      this.#count(at - begin)
      this.#line.push(chunk.subarray(begin, at))
      begin = at + 1
      const event = this.#endLine()
      if (event !== null) events.push(event)
    }
    this.#count(chunk.byteLength - begin)
    // A copy: the rest of a large chunk would stay in memory with its last bytes.
    if (begin < chunk.byteLength) this.#line.push(chunk.slice(begin))
    return events
  }

  /** Data of the event that has no blank line after it when the stream ends; null when there is none. */
  end(): string | null {
    this.#endLine()
    return this.#takeEvent()
  }

  #count(bytes: number): void {
    this.#eventBytes += bytes
    if (this.#eventBytes > this.#bounds.maxEventBytes) {
      throw new StreamTooLarge('an event is larger than its bound')
    }
  }

  #endLine(): string | null {
    const bytes = this.#line.length === 1 ? this.#line[0] : Buffer.concat(this.#line)
    this.#line = []
    let line = Buffer.from(
      bytes?.buffer ?? new ArrayBuffer(0),
      bytes?.byteOffset,
      bytes?.byteLength,
    ).toString()
    if (this.#atStart && line.startsWith(BYTE_ORDER_MARK)) line = line.slice(1)
    this.#atStart = false
    if (line === '') return this.#takeEvent()
    if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5))
    else if (line === 'data') this.#data.push('')
    return null
  }

  #takeEvent(): string | null {
    this.#eventBytes = 0
    if (this.#data.length === 0) return null
    const data = this.#data.join('\n')
    this.#data = []
    return data
  }
}
