import { APIConnectionError, APIError } from 'openai'
import { asJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import { SseParser, StreamTooLarge, hasData } from '../sse-parser.ts'
import type { StreamBounds, StreamRecord } from '../sse-parser.ts'
import { mediaTypeOf } from '../http.ts'
import { ProviderFailure, failedRound, upstreamError } from './upstream.ts'
import type { ResponseBody, Upstream } from './upstream.ts'

/** Time limits between the events of a round, in milliseconds. */
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

/** The data of the last event of a stream. */
export const END_MARK = '[DONE]'

export function isEndMark(data: string): boolean {
  return /^"?\[done\]"?$/i.test(data)
}

/** Bytes and milliseconds spent on reading the rest of a response so that its connection can be reused. */
const DRAIN_MAX_BYTES = 16 * 1024
const DRAIN_MS = 500

/** Error codes of established connections that broke: the request may have arrived. */
const BROKEN_CONNECTION = /^(?:UND_ERR_SOCKET|ECONNRESET|ETIMEDOUT|EPIPE|HPE_\w+)$/

/**
 * One request and the events of its response, limited in bytes and idle time. The signal ends everything
 * immediately, whether or not an event is awaited.
 */
export class ProviderStream {
  readonly #upstream: Upstream
  readonly #limits: IdleTimeouts
  readonly #signal: AbortSignal
  readonly #stop = new AbortController()
  readonly #abort = (): void => {
    this.#stop.abort()
    this.#body?.destroy()
  }
  readonly #idleTimeout = new IdleTimeout(this.#abort)
  readonly #parser: SseParser
  readonly #events: string[] = []
  #body: ResponseBody | null = null
  #chunks: AsyncIterator<Uint8Array> | null = null
  #started = false
  #ended = false

  constructor(upstream: Upstream, limits: IdleTimeouts, bounds: StreamBounds, signal: AbortSignal) {
    this.#upstream = upstream
    this.#limits = limits
    this.#parser = new SseParser(bounds)
    this.#signal = signal
    signal.addEventListener('abort', this.#abort, { once: true })
    this.#idleTimeout.watch('first_event', limits.firstEventMs)
  }

  /**
   * Sends the request.
   *
   * @throws ProviderFailure; the signal's reason
   */
  async open(send: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    this.#signal.throwIfAborted()
    let response: Response
    try {
      response = await send(this.#stop.signal)
    } catch (error) {
      throw this.#toFailure(error)
    }
    this.#body = this.#upstream.bodyOf(response)
    const type = mediaTypeOf(response.headers.get('content-type'))
    const encoding = response.headers.get('content-encoding') ?? 'identity'
    if (type !== 'text/event-stream' || encoding !== 'identity') throw upstreamError('invalid_stream')
    this.#chunks = this.#body[Symbol.asyncIterator]()
  }

  /**
   * The next event.
   *
   * @param hasReason true after a finish reason: silence then ends the stream
   * @returns null when the stream has ended, complete or not
   * @throws ProviderFailure; the signal's reason
   */
  async next(hasReason: boolean): Promise<JsonObject | null> {
    const { idleMs, afterReasonMs = AFTER_REASON_MS } = this.#limits
    try {
      if (this.#events.length === 0 && !this.#ended) await this.#read(hasReason ? afterReasonMs : idleMs)
    } catch (error) {
      if (hasReason && this.#idleTimeout.expired !== null) return null
      throw error
    }
    this.#signal.throwIfAborted()
    const event = this.#events.shift()
    if (event === undefined || isEndMark(event)) return null
    return this.#parse(event)
  }

  /** Ends the request. The connection is reused if the response is complete. */
  close(isComplete: boolean): void {
    this.#idleTimeout.stop()
    this.#signal.removeEventListener('abort', this.#abort)
    if (this.#ended) return
    if (isComplete && this.#body && this.#chunks) void drain(this.#body, this.#chunks)
    else this.#abort()
  }

  /** Reads until an event is available or the stream has ended. */
  async #read(idleMs: number): Promise<void> {
    if (this.#started) this.#idleTimeout.watch('idle', idleMs)
    try {
      while (this.#events.length === 0) {
        const { value, done } = await this.#nextChunk()
        if (done === true) break
        this.#events.push(...dataOf(this.#parser.push(value)))
      }
    } catch (error) {
      this.#signal.throwIfAborted()
      if (error instanceof StreamTooLarge) throw upstreamError('invalid_stream', {}, error)
      throw error
    }
    this.#started = true
    this.#idleTimeout.stop()
  }

  async #nextChunk(): Promise<IteratorResult<Uint8Array, undefined>> {
    const chunk = await this.#chunks?.next().catch((error: unknown) => {
      this.#signal.throwIfAborted()
      if (this.#idleTimeout.expired !== null) throw this.#toFailure(error)
      // The connection was reset: the data before it counts.
      return null
    })
    if (chunk && chunk.done !== true) return chunk
    this.#ended = true
    const last = this.#parser.end()
    if (last !== null) this.#events.push(...dataOf([last]))
    return { done: true, value: undefined }
  }

  #parse(event: string): JsonObject {
    let parsed: JsonObject | null = null
    try {
      parsed = asJsonObject(JSON.parse(event))
    } catch (cause) {
      // A cut stream can end with half an event.
      throw upstreamError(
        this.#ended && this.#events.length === 0 ? 'truncated' : 'invalid_stream',
        {},
        cause,
      )
    }
    if (parsed === null) throw upstreamError('invalid_stream')
    return parsed
  }

  #toFailure(error: unknown): unknown {
    if (this.#signal.aborted) return this.#signal.reason
    if (this.#idleTimeout.expired !== null) {
      return new ProviderFailure(failedRound({ error: 'timeout', code: this.#idleTimeout.expired }), error)
    }
    return toRequestFailure(error)
  }
}

/** The data of events, without events that only keep a connection open. */
export function dataOf(records: readonly StreamRecord[]): string[] {
  return records.map(({ data }) => data.trim()).filter(hasData)
}

/** Returns whether a request may have reached the provider although its connection failed. */
export function mayHaveArrived(cause: unknown): boolean {
  const { code, syscall } = (cause ?? {}) as { code?: unknown; syscall?: unknown }
  // ETIMEDOUT occurs both while connecting and on an established connection.
  return typeof code === 'string' && BROKEN_CONNECTION.test(code) && syscall !== 'connect'
}

/** Statuses of errors that may name a part of the request. Engines that render templates report theirs as 500. */
const REFUSAL_STATUSES = new Set([400, 404, 422, 500, 501])

/** Converts an error of the SDK's client to a ProviderFailure; returns any other error unchanged. */
function toRequestFailure(error: unknown): unknown {
  if (error instanceof APIConnectionError) {
    return upstreamError('connect', { dispatched: mayHaveArrived(error.cause) }, error)
  }
  if (!(error instanceof APIError) || error.status === undefined) return error
  const status = error.status as number
  const refusal = REFUSAL_STATUSES.has(status) ? String(error.error) : null
  return upstreamError(`http_${status}`, { dispatched: status >= 500, refusal }, error)
}

/** Reads the rest of a complete response so that its connection can be reused. */
async function drain(body: ResponseBody, chunks: AsyncIterator<Uint8Array>): Promise<void> {
  const timer = setTimeout(() => body.destroy(), DRAIN_MS)
  timer.unref()
  try {
    for (let size = 0; size <= DRAIN_MAX_BYTES;) {
      const { value, done } = await chunks.next()
      if (done === true) return
      size += value.byteLength
    }
    body.destroy()
  } catch {
    // Only the connection is lost; the response is complete.
  } finally {
    clearTimeout(timer)
  }
}

/** Ends a round without events for too long; `expired` names the exceeded limit. */
export class IdleTimeout {
  expired: 'first_event' | 'idle' | null = null
  readonly #onExpired: () => void
  #timer: NodeJS.Timeout | null = null

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired
  }

  /** Restarts the timer with a limit of `ms` milliseconds. */
  watch(limit: 'first_event' | 'idle', ms: number): void {
    this.stop()
    this.#timer = setTimeout(() => {
      this.expired = limit
      this.#onExpired()
    }, ms)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
