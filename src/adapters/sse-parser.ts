import { createParser } from 'eventsource-parser'

/** Bytes an event stream may have. */
export interface StreamBounds {
  /** Of one event, names and line ends included; the chunk that ends it is not counted. */
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

/** Parses an event stream (WHATWG HTML, 9.2.6) from chunks cut anywhere, and keeps no more than one event. */
export class SseParser {
  readonly #bounds: StreamBounds
  readonly #decoder = new TextDecoder()
  readonly #parser = createParser({
    onEvent: ({ event, data }) => void this.#events.push({ name: event ?? 'message', data }),
  })
  #events: StreamRecord[] = []
  /** The last character so far; a stream begins like a line. */
  #lastCharacter = '\n'
  #bytes = 0
  #eventBytes = 0

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
    const previous = this.#lastCharacter
    const text = this.#normalizeLineEnds(this.#decoder.decode(chunk, { stream: true }))
    const withPrevious = `${previous === '\r' ? '\n' : previous}${text}`
    // Comments and fields without data end at a blank line too, and are no part of the event behind it.
    const blankLine = withPrevious.lastIndexOf('\n\n')
    this.#eventBytes =
      blankLine < 0
        ? this.#eventBytes + Buffer.byteLength(text)
        : Buffer.byteLength(withPrevious.slice(blankLine + 2))
    if (this.#eventBytes > this.#bounds.maxEventBytes) {
      throw new StreamTooLarge('an event is larger than its bound')
    }
    return this.#parse(text)
  }

  /** The event without a blank line, or without any line end, behind it when the stream ends; null when there is none. */
  end(): StreamRecord | null {
    return this.#parse(`${this.#normalizeLineEnds(this.#decoder.decode())}\n\n`)[0] ?? null
  }

  /** CR, LF and CRLF as LF. The library waits behind a CR that ends a chunk, which holds back an event on an open stream. */
  #normalizeLineEnds(text: string): string {
    const remaining = this.#lastCharacter === '\r' && text.startsWith('\n') ? text.slice(1) : text
    this.#lastCharacter = text.at(-1) ?? this.#lastCharacter
    return remaining.replaceAll(/\r\n?/g, '\n')
  }

  #parse(text: string): StreamRecord[] {
    this.#parser.feed(text)
    return this.#events.splice(0)
  }
}
