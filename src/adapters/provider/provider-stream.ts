import { APIConnectionError, APIError } from 'openai'
import { SseParser, StreamTooLarge } from '../sse-parser.ts'
import type { StreamBounds } from '../sse-parser.ts'
import { fieldsOf } from '../http.ts'
import type { Fields } from '../http.ts'
import { ProviderFailure, failedRound, upstreamError } from './upstream.ts'
import type { ResponseBody, Upstream } from './upstream.ts'

/** How long a round may be silent, in milliseconds. */
export interface IdleTimeouts {
  /** From the request to the first event. */
  firstEventMs: number
  /** Between two events; comments are none. */
  idleMs: number
}

/** What is read behind the last event to use a connection again, and how long for. */
const REST_MAX_BYTES = 16 * 1024
const REST_MS = 500

const END_MARK = '[DONE]'

/** How connections break that stood: the request may have arrived. */
const BROKEN_CONNECTION = /^(?:UND_ERR_SOCKET|ECONNRESET|ETIMEDOUT|EPIPE|HPE_\w+)$/

/**
 * One request and the events of its answer, bounded in bytes and silence. Everything ends at once with the signal,
 * whether anybody waits for an event or not.
 */
export class ProviderStream {
  readonly #upstream: Upstream
  readonly #limits: IdleTimeouts
  readonly #signal: AbortSignal
  readonly #stop = new AbortController()
  readonly #cut = (): void => {
    this.#stop.abort()
    this.#body?.destroy()
  }
  readonly #silence = new IdleTimeout(this.#cut)
  readonly #stream: SseParser
  readonly #events: string[] = []
  #body: ResponseBody | null = null
  #chunks: AsyncIterator<Uint8Array> | null = null
  #started = false
  #ended = false

  constructor(upstream: Upstream, limits: IdleTimeouts, bounds: StreamBounds, signal: AbortSignal) {
    this.#upstream = upstream
    this.#limits = limits
    this.#stream = new SseParser(bounds)
    this.#signal = signal
    signal.addEventListener('abort', this.#cut, { once: true })
    this.#silence.watch('first_event', limits.firstEventMs)
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
      throw this.#failureOf(error)
    }
    this.#body = this.#upstream.bodyOf(response)
    const type = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    const encoding = response.headers.get('content-encoding') ?? 'identity'
    if (type !== 'text/event-stream' || encoding !== 'identity') throw upstreamError('invalid_stream')
    this.#chunks = this.#body[Symbol.asyncIterator]()
  }

  /**
   * The next event.
   *
   * @param idleMs a shorter limit of silence than the configured one
   * @returns null when the stream has ended, whole or not
   * @throws ProviderFailure; the signal's reason
   */
  async next(idleMs = Infinity): Promise<Fields | null> {
    if (this.#events.length === 0 && !this.#ended) await this.#read(Math.min(idleMs, this.#limits.idleMs))
    this.#signal.throwIfAborted()
    const event = this.#events.shift()
    if (event === undefined || event === END_MARK) return null
    return this.#parse(event)
  }

  /** Ends the request. A connection whose answer is `whole` may be used again. */
  close(whole: boolean): void {
    this.#silence.stop()
    this.#signal.removeEventListener('abort', this.#cut)
    if (this.#ended) return
    if (whole && this.#body && this.#chunks) void readRest(this.#body, this.#chunks)
    else this.#cut()
  }

  /** Reads until there is an event or the stream has ended. */
  async #read(idleMs: number): Promise<void> {
    if (this.#started) this.#silence.watch('idle', idleMs)
    try {
      while (this.#events.length === 0) {
        const { value, done } = await this.#nextChunk()
        if (done === true) break
        this.#events.push(...this.#stream.push(value).map(({ data }) => data))
      }
    } catch (error) {
      this.#signal.throwIfAborted()
      if (error instanceof StreamTooLarge) throw upstreamError('invalid_stream', {}, error)
      throw error
    }
    this.#started = true
    this.#silence.stop()
  }

  async #nextChunk(): Promise<IteratorResult<Uint8Array, undefined>> {
    const chunk = await this.#chunks?.next().catch((error: unknown) => {
      this.#signal.throwIfAborted()
      if (this.#silence.expired !== null) throw this.#failureOf(error)
      // A reset: what came before it counts.
      return null
    })
    if (chunk && chunk.done !== true) return chunk
    this.#ended = true
    const last = this.#stream.end()?.data ?? null
    if (last !== null) this.#events.push(last)
    return { done: true, value: undefined }
  }

  #parse(event: string): Fields {
    let parsed: Fields | null = null
    try {
      parsed = fieldsOf(JSON.parse(event))
    } catch (cause) {
      // Half of an event is what a cut stream ends with.
      throw upstreamError(
        this.#ended && this.#events.length === 0 ? 'truncated' : 'invalid_stream',
        {},
        cause,
      )
    }
    if (parsed === null) throw upstreamError('invalid_stream')
    return parsed
  }

  #failureOf(error: unknown): unknown {
    if (this.#signal.aborted) return this.#signal.reason
    if (this.#silence.expired !== null) {
      return new ProviderFailure(failedRound({ error: 'timeout', code: this.#silence.expired }), error)
    }
    return failureOfRequest(error)
  }
}

/** Whether a request may have reached the provider whose connection failed with this. */
export function mayHaveArrived(cause: unknown): boolean {
  const { code, syscall } = (cause ?? {}) as { code?: unknown; syscall?: unknown }
  // The time of a connection can be over before it stands, and long after.
  return typeof code === 'string' && BROKEN_CONNECTION.test(code) && syscall !== 'connect'
}

/** What an error of the client means; anything that is none of its errors is given back. */
function failureOfRequest(error: unknown): unknown {
  if (error instanceof APIConnectionError) {
    return upstreamError('connect', { dispatched: mayHaveArrived(error.cause) }, error)
  }
  if (!(error instanceof APIError) || error.status === undefined) return error
  const status = error.status as number
  const headers = Object.fromEntries((error.headers as Headers | undefined)?.entries() ?? [])
  const evidence = { status, headers, body: error.error ? JSON.stringify({ error: error.error }) : '' }
  return upstreamError(`http_${status}`, { dispatched: status >= 500, evidence }, error)
}

/** Reads what is left of an answer that has said everything, so that its connection can be used again. */
async function readRest(body: ResponseBody, chunks: AsyncIterator<Uint8Array>): Promise<void> {
  const timer = setTimeout(() => body.destroy(), REST_MS)
  timer.unref()
  try {
    for (let size = 0; size <= REST_MAX_BYTES;) {
      const { value, done } = await chunks.next()
      if (done === true) return
      size += value.byteLength
    }
    body.destroy()
  } catch {
    // The connection is lost, and nothing else.
  } finally {
    clearTimeout(timer)
  }
}

/** Ends a round that stays silent for too long; `expired` tells by which limit. */
class IdleTimeout {
  expired: 'first_event' | 'idle' | null = null
  readonly #onExpired: () => void
  #timer: NodeJS.Timeout | null = null

  constructor(onExpired: () => void) {
    this.#onExpired = onExpired
  }

  /** From now on there may be `ms` milliseconds of silence. */
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
