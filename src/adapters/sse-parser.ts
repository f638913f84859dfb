import { createParser } from 'eventsource-parser'

/** Size limits of an event stream. */
export interface StreamBounds {
  /** Limit of one event, including names and line ends; the chunk that ends it is not counted. */
  maxEventBytes: number
  /** Limit of the whole stream, including comments. */
  maxBytes: number
}

/** One event of a stream, without its id, which is not used. */
export interface StreamRecord {
  /** `message` if the stream names none. */
  name: string
  data: string
}

/** Limit of the bytes before an event with data: a stream of comments alone would keep a core busy. */
const GAP_MAX_BYTES = 1024 * 1024

/** Data that only keeps a connection open: none, or an empty value in JSON. */
const NO_DATA = new Set(['', 'null', '""', '[]'])

export function hasData(data: string): boolean {
  return !NO_DATA.has(data.trim())
}

/** Thrown when a stream exceeds its limits. */
export class StreamTooLarge extends Error {
  override readonly name = 'StreamTooLarge'
}

/**
 * Parses an event stream (WHATWG HTML, 9.2.6) from arbitrary chunks. Buffers at most one event.
 */
export class SseParser {
  readonly #bounds: StreamBounds
  readonly #decoder = new TextDecoder()
  readonly #parser = createParser({
    onEvent: ({ event, data }) => void this.#events.push({ name: event ?? 'message', data }),
  })
  #events: StreamRecord[] = []
  /** If true, a JSON object in place of a stream is one event. */
  takesObject = false
  /** The last character so far; initially a line feed, since a stream begins like a line. */
  #lastCharacter = '\n'
  /** True if the body is a JSON object that is taken; null before its first character. */
  #isObject: boolean | null = null
  #bytes = 0
  #eventBytes = 0
  /** Since the last event with data. */
  #gapBytes = 0

  constructor(bounds: StreamBounds) {
    this.#bounds = bounds
  }

  /**
   * @returns the events that ended in this chunk
   * @throws StreamTooLarge
   */
  push(chunk: Uint8Array): StreamRecord[] {
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#bounds.maxBytes) throw new StreamTooLarge('the stream is larger than allowed')
    const previous = this.#lastCharacter
    const text = this.#asField(this.#normalizeLineEnds(this.#decoder.decode(chunk, { stream: true })))
    const withPrevious = `${previous === '\r' ? '\n' : previous}${text}`
    // Comments and fields without data also end at a blank line and do not count towards the next event.
    const blankLine = withPrevious.lastIndexOf('\n\n')
    this.#eventBytes =
      blankLine < 0
        ? this.#eventBytes + Buffer.byteLength(text)
        : Buffer.byteLength(withPrevious.slice(blankLine + 2))
    if (this.#eventBytes > this.#bounds.maxEventBytes) {
      throw new StreamTooLarge('an event is larger than allowed')
    }
    const events = this.#parse(text)
    this.#gapBytes = events.some(({ data }) => hasData(data)) ? 0 : this.#gapBytes + chunk.byteLength
    if (this.#gapBytes > GAP_MAX_BYTES + this.#bounds.maxEventBytes) {
      throw new StreamTooLarge('the stream has more bytes without an event than allowed')
    }
    return events
  }

  /** Ends the stream. Returns the last event if its final blank line or line end is missing; null if there is none. */
  end(): StreamRecord | null {
    return this.#parse(`${this.#normalizeLineEnds(this.#decoder.decode())}\n\n`)[0] ?? null
  }

  /**
   * Converts CR, LF and CRLF to LF. The library waits after a CR that ends a chunk, which would delay an event on
   * an open stream.
   */
  #normalizeLineEnds(text: string): string {
    const remaining = this.#lastCharacter === '\r' && text.startsWith('\n') ? text.slice(1) : text
    this.#lastCharacter = text.at(-1) ?? this.#lastCharacter
    return remaining.replaceAll(/\r\n?/g, '\n')
  }

  #asField(text: string): string {
    const isFirst = this.#isObject === null && text.trim() !== ''
    if (isFirst) this.#isObject = this.takesObject && text.trimStart().startsWith('{')
    return this.#isObject === true ? `${isFirst ? 'data:' : ''}${text.replaceAll('\n', ' ')}` : text
  }

  #parse(text: string): StreamRecord[] {
    this.#parser.feed(text)
    return this.#events.splice(0)
  }
}
