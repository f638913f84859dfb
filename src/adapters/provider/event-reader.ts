import { SseParser, StreamTooLarge, hasData } from '../sse-parser.ts'
import type { StreamBounds, StreamRecord } from '../sse-parser.ts'
import type { ResponseBody } from './upstream.ts'

/** Time limits between the events of a response, in milliseconds. */
export interface IdleTimeouts {
  /** Time from the request to the first event. */
  firstEventMs: number
  /** Time between two events; comments do not count. */
  idleMs: number
  /** Replaces {@link AFTER_REASON_MS}; for tests. */
  afterReasonMs?: number
}

/** A completion with a finish reason is complete after this time without another event, in milliseconds. */
export const AFTER_REASON_MS = 10_000

/** Time for a stream to end after its last event, in milliseconds, so that its connection can be reused. */
export const END_MS = 500

/** The data of the last event of a stream. */
export const END_MARK = '[DONE]'

export function isEndMark(data: string): boolean {
  return /^"?\[done\]"?$/i.test(data)
}

/** A part of a stream: one chunk, or all up to and including its next event. */
export interface StreamPart {
  /** The part as it was received. */
  chunks: Uint8Array[]
  /** Data of the events that end in it; of the last one, if its end is missing, after the end. */
  events: string[]
  /** Null while the stream continues. A connection that broke is an end: the data before it counts. */
  ending: 'end' | 'silent' | 'too-large' | null
  /** True if the stream ended within an event. */
  isCut: boolean
}

/**
 * Reads the events of a response, limited in bytes and in the time between events. The signal ends everything
 * immediately, whether or not an event is awaited.
 */
export class EventReader {
  readonly #signal: AbortSignal
  readonly #stop = new AbortController()
  readonly #abort = (): void => {
    this.#stop.abort()
    this.#body?.destroy()
  }
  readonly #parser: SseParser
  #timer: NodeJS.Timeout | undefined
  #body: ResponseBody | null = null
  #chunks: AsyncIterator<Uint8Array> | null = null
  #hasStarted = false
  /** Time left for the next event after chunks without one; null before them. */
  #leftMs: number | null = null
  #hasEnded = false
  /** The time limit that was exceeded. */
  expired: 'first_event' | 'idle' | null = null

  /** Starts the time until the first event. */
  constructor({ firstEventMs }: IdleTimeouts, bounds: StreamBounds, signal: AbortSignal) {
    this.#parser = new SseParser(bounds)
    this.#signal = signal
    signal.addEventListener('abort', this.#abort, { once: true })
    this.#limit('first_event', firstEventMs)
  }

  /** Aborts the request. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  begin(body: ResponseBody): void {
    this.#body = body
    this.#chunks = body[Symbol.asyncIterator]()
  }

  /**
   * Reads up to the next event, or to the end.
   *
   * @param idleMs time limit; the first event has its own
   * @param isByChunk returns each chunk as it arrives; comments do not prolong the time limit
   * @throws the signal's reason
   */
  async read(idleMs: number, isByChunk = false): Promise<StreamPart> {
    const since = performance.now()
    const leftMs = this.#leftMs ?? idleMs
    if (this.#hasStarted) this.#limit('idle', leftMs)
    this.#hasStarted = true
    const part: StreamPart = { chunks: [], events: [], ending: null, isCut: false }
    const isRead = (): boolean => isByChunk || part.events.length > 0 || part.ending !== null
    do await this.#readChunk(part)
    while (!isRead())
    clearTimeout(this.#timer)
    this.#leftMs = part.events.length > 0 ? null : Math.max(1, leftMs - (performance.now() - since))
    this.#hasEnded = part.ending !== null
    return part
  }

  async #readChunk(part: StreamPart): Promise<void> {
    const chunk = await this.#chunks?.next().catch(() => null)
    this.#signal.throwIfAborted()
    if (!chunk || chunk.done === true) {
      const last = this.#parser.end()
      part.events.push(...dataOf(last === null ? [] : [last]))
      part.ending = this.expired === null ? 'end' : 'silent'
      part.isCut = last !== null
      return
    }
    try {
      part.events.push(...dataOf(this.#parser.push(chunk.value)))
      part.chunks.push(chunk.value)
    } catch (error) {
      if (!(error instanceof StreamTooLarge)) throw error
      part.ending = 'too-large'
      this.#abort()
    }
  }

  /** Ends the request. The connection is reused if nothing follows the last event. */
  close(isComplete = false): void {
    clearTimeout(this.#timer)
    if (isComplete && !this.#hasEnded) {
      void this.read(END_MS)
        .catch(() => null)
        .finally(() => this.close())
      return
    }
    this.#signal.removeEventListener('abort', this.#abort)
    if (!this.#hasEnded) this.#abort()
  }

  #limit(name: 'first_event' | 'idle', ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.expired = name
      this.#abort()
    }, ms)
  }
}

/** The data of events, without events that only keep a connection open. */
function dataOf(records: readonly StreamRecord[]): string[] {
  return records.map(({ data }) => data.trim()).filter(hasData)
}
