/** Bytes an event stream may have. */
export interface StreamBounds {
  /** Of one event, its names and line ends included. */
  maxEventBytes: number
  /** Of the whole stream, comments included. */
  maxBytes: number
}

/** One event of a stream; what no reader here needs, its id, is left out. */
export interface StreamRecord {
  /** `message` where the stream does not say. */
  name: string
  data: string
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
 * end, a byte order mark, several data lines, comments. Every byte is looked at once, whatever the chunks are.
 */
export class EventStream {
  readonly #bounds: StreamBounds
  #bytes = 0
  #eventBytes = 0
  /** Chunks of the line that has not ended. */
  #line: Uint8Array[] = []
  #atStart = true
  #afterReturn = false
  #name = ''
  #data: string[] = []

  constructor(bounds: StreamBounds) {
    this.#bounds = bounds
  }

  /**
   * @returns the events that ended in this chunk
   * @throws StreamTooLarge
   */
  push(chunk: Uint8Array): StreamRecord[] {
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#bounds.maxBytes) throw new StreamTooLarge('the stream is larger than its bound')
    const events: StreamRecord[] = []
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

  /** The event without a blank line, or without any line end, behind it when the stream ends; null when there is none. */
  end(): StreamRecord | null {
    // An empty last line is the blank line itself, and gives the event.
    return this.#endLine() ?? this.#takeEvent()
  }

  #count(bytes: number): void {
    this.#eventBytes += bytes
    if (this.#eventBytes > this.#bounds.maxEventBytes) {
      throw new StreamTooLarge('an event is larger than its bound')
    }
  }

  #endLine(): StreamRecord | null {
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
    else if (line.startsWith('event:')) this.#name = line.slice(line[6] === ' ' ? 7 : 6)
    return null
  }

  #takeEvent(): StreamRecord | null {
    this.#eventBytes = 0
    const record =
      this.#data.length === 0 ? null : { name: this.#name || 'message', data: this.#data.join('\n') }
    this.#name = ''
    this.#data = []
    return record
  }
}
