import { asArray, asJsonObject, parseJsonObject } from '../../domain/text.ts'
import { BrokenStream } from '../../domain/v1/failures.ts'
import type { UpstreamFailure } from '../../domain/v1/failures.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'
import { flattenHeaders, mediaTypeOf, openHttpClient } from '../http.ts'
import { readBody } from '../response-body.ts'
import type { HttpClient, HttpResponse } from '../http.ts'
import { classifyResponse } from '../router/classify.ts'
import type { RouterResponse } from '../router/classify.ts'
import { DataLines, firstDataLine } from './data-lines.ts'
import { IdleTimeout } from './provider-stream.ts'
import type { IdleTimeouts } from './provider-stream.ts'
import { readError, respondingId, singleUseBody, unnamedIds } from './upstream.ts'

export interface PassThroughOptions extends IdleTimeouts {
  /** API base of the routing service without a trailing slash. Keys are sent to this base only. */
  base: string
  /** Identifies the product to the service: the URL under which it is used. */
  referer: string
  userAgent: string
  clock: Clock
}

/** Largest line of a stream, and largest whole completion. */
const LINE_MAX_BYTES = 1024 * 1024
const WHOLE_MAX_BYTES = 16 * 1024 * 1024

/** Time for a stream to end after its last event, in milliseconds, so that its connection can be reused. */
const END_MS = 500

/**
 * Opens the routing service for callers with their own keys. This adapter keeps no key, follows no redirect and sends
 * none of the callers' headers except the key.
 */
export function openPassThrough(options: PassThroughOptions): PassThrough {
  const http = openHttpClient({ connect: { timeout: 10_000 } })
  const attempt = async (
    { key, ids, bodyFor, stream }: Call,
    signal: AbortSignal,
  ): Promise<Completion | Failure> => {
    const exchange = new Exchange(signal, stream ? options.firstEventMs : null)
    let status: number | null = null
    try {
      const response = await post(http, options, { key, body: bodyFor(ids), stream }, exchange.signal)
      status = response.statusCode
      return await readResponse(response, stream, exchange, options)
    } catch (error) {
      signal.throwIfAborted()
      exchange.end()
      if (exchange.isLate) return failureOf({ ending: 'timeout' }, options.clock)
      if (!isNetworkError(error)) throw error
      // A response that began may have cost the account a request.
      return failureOf({ status, ending: status === null ? 'unreachable' : 'cut' }, options.clock)
    }
  }
  return {
    async send(call, signal) {
      signal.throwIfAborted()
      let { ids } = call
      let result = await attempt(call, signal)
      const others = 'chunks' in result || result.status !== 400 ? null : unnamedIds(result.text, ids)
      if (others !== null) {
        ids = others
        result = await attempt({ ...call, ids }, signal)
      }
      if ('chunks' in result) return { chunks: result.chunks, model: respondingId(ids, result.named) }
      const { text: _text, ...failure } = result
      return failure
    },
    close: () => http.close(),
  }
}

type Call = Parameters<PassThrough['send']>[0]

/** A completion, and what it names as its model. */
interface Completion {
  chunks: AsyncIterable<Uint8Array>
  named: unknown
}

/** A failure with the text of the service, which is never passed on. */
type Failure = UpstreamFailure & { text: string }

/** The time limits of one call, all of which end its request. */
class Exchange {
  readonly #stop = new AbortController()
  readonly #parent: AbortSignal
  readonly #abort = (): void => this.#stop.abort()
  readonly #timeout = new IdleTimeout(this.#abort)

  constructor(parent: AbortSignal, ms: number | null) {
    this.#parent = parent
    parent.addEventListener('abort', this.#abort, { once: true })
    if (ms !== null) this.limit(ms)
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** True after a time limit was exceeded. */
  get isLate(): boolean {
    return this.#timeout.expired !== null
  }

  /** Replaces the time limit. */
  limit(ms: number): void {
    this.#timeout.watch('idle', ms)
  }

  unlimit(): void {
    this.#timeout.stop()
  }

  /** Ends the request if it is still open. */
  end(): void {
    this.unlimit()
    this.#parent.removeEventListener('abort', this.#abort)
    this.#abort()
  }
}

function post(
  http: HttpClient,
  { base, referer, userAgent }: PassThroughOptions,
  { key, body, stream }: Pick<Call, 'key' | 'stream'> & { body: string },
  signal: AbortSignal,
): Promise<HttpResponse> {
  return http.request(`${base}/chat/completions`, {
    method: 'POST',
    headers: {
      accept: stream ? 'text/event-stream' : 'application/json',
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': userAgent,
      'http-referer': referer,
      'x-openrouter-title': 'dash',
    },
    body: singleUseBody(body),
    signal,
  })
}

async function readResponse(
  { statusCode: status, headers: received, body }: HttpResponse,
  stream: boolean,
  exchange: Exchange,
  { idleMs, clock }: PassThroughOptions,
): Promise<Completion | Failure> {
  const headers = flattenHeaders(received)
  const type = mediaTypeOf(headers['content-type'])
  const isPlain = (headers['content-encoding'] ?? 'identity') === 'identity'
  const isExpected = status === 200 && isPlain && type === (stream ? 'text/event-stream' : 'application/json')
  if (isExpected && stream) return readStream(body, headers, exchange, { idleMs, clock })
  const bytes = isExpected ? await readBody(body, WHOLE_MAX_BYTES) : Buffer.from(await readError(body))
  exchange.end()
  const text = bytes?.toString() ?? ''
  const completion = isExpected ? parseJsonObject(text) : null
  const ending = bytes === null ? 'too-large' : 'whole'
  const failure = failureOf({ status, headers, body: text, ending }, clock)
  // An empty completion is passed on; an error inside a 200 states a status.
  if (!Array.isArray(completion?.['choices']) || failure.status !== null) return declined(failure)
  return { chunks: once(bytes ?? Buffer.alloc(0)), named: completion['model'] }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** A response that is no completion although it carries no error. */
function declined(failure: Failure): Failure {
  return failure.class === 'answered' ? { ...failure, class: 'invalid_answer' } : failure
}

/** Reads a stream up to its first data line, which may be an error. */
async function readStream(
  body: HttpResponse['body'],
  headers: Readonly<Record<string, string>>,
  exchange: Exchange,
  { idleMs, clock }: Pick<PassThroughOptions, 'idleMs' | 'clock'>,
): Promise<Completion | Failure> {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>
  const begun = await readFirstLine(chunks)
  const invalid = { status: 200, headers, body: '', ending: 'whole' } as const
  if (begun !== null) {
    const { bytes, data } = begun
    const failure = failureOf({ status: 200, headers, body: data, ending: 'whole' }, clock)
    const isError = failure.status !== null && hasError(data)
    const event = parseJsonObject(data)
    exchange.unlimit()
    if (data === '[DONE]' || (event !== null && !isError))
      return { chunks: passOn(bytes, chunks, exchange, idleMs), named: event?.['model'] }
    exchange.end()
    return isError ? failure : failureOf(invalid, clock)
  }
  exchange.end()
  return failureOf(invalid, clock)
}

function hasError(data: string): boolean {
  const event = parseJsonObject(data)
  return Boolean(event?.['error'] ?? asJsonObject(asArray(event?.['choices'])[0])?.['error'])
}

/** @returns the bytes from the first data line on; null if the stream has none, or too long a line */
async function readFirstLine(
  chunks: AsyncIterator<Uint8Array, undefined>,
): Promise<{ bytes: Uint8Array; data: string } | null> {
  let waiting: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { value = Buffer.from('\n'), done } = await chunks.next()
    waiting.push(value)
    size += value.byteLength
    if (value.includes(0x0a) || value.includes(0x0d)) {
      const bytes = Buffer.concat(waiting)
      const line = firstDataLine(bytes)
      if (line !== null) return { bytes: bytes.subarray(line.start), data: line.data }
      // Lines before it are comments: only the incomplete last one is kept.
      const rest = bytes.subarray(Math.max(bytes.lastIndexOf(0x0a), bytes.lastIndexOf(0x0d)) + 1)
      waiting = [rest]
      size = rest.byteLength
    }
    if (done === true || size > LINE_MAX_BYTES) return null
  }
}

/**
 * Passes a stream on. The next chunk is read when the caller has taken the last one.
 *
 * @throws BrokenStream
 */
async function* passOn(
  first: Uint8Array,
  chunks: AsyncIterator<Uint8Array, undefined>,
  exchange: Exchange,
  idleMs: number,
): AsyncGenerator<Uint8Array> {
  const lines = new DataLines(LINE_MAX_BYTES)
  let idleLeft = idleMs
  try {
    for (let chunk: Uint8Array | null = first; chunk !== null;) {
      const hasData = lines.push(chunk)
      if (hasData === null) throw new BrokenStream('invalid_stream')
      yield chunk
      if (lines.isDone) idleLeft = Math.min(idleLeft, END_MS)
      else if (hasData) idleLeft = idleMs
      const waitedSince = performance.now()
      exchange.limit(idleLeft)
      chunk = await nextChunk(chunks, exchange, lines.isDone)
      exchange.unlimit()
      // Comments do not prolong the time until the next event, or until the end.
      idleLeft = Math.max(1, idleLeft - (performance.now() - waitedSince))
    }
    if (!lines.isDone) throw new BrokenStream('truncated')
  } finally {
    exchange.end()
  }
}

/** @returns null at the end of the stream; after its last event, any end counts */
async function nextChunk(
  chunks: AsyncIterator<Uint8Array, undefined>,
  exchange: Exchange,
  isDone: boolean,
): Promise<Uint8Array | null> {
  try {
    const { value, done } = await chunks.next()
    return done === true ? null : value
  } catch (error) {
    if (isDone) return null
    throw new BrokenStream(exchange.isLate ? 'idle' : 'truncated', error)
  }
}

function failureOf(response: Partial<RouterResponse>, clock: Clock): Failure {
  const whole = {
    status: null,
    headers: {},
    body: '',
    ending: 'whole',
    endedAt: clock(),
    ...response,
  } as const
  const { class: kind, correlated, status, retryAt, resetAt, limit, remaining } = classifyResponse(whole)
  // One request has no other model to compare with: a 429 that names no owner counts as the account's.
  const owned = correlated === 'account_minute' ? correlated : kind
  return { class: owned, status, retryAt, resetAt, limit, remaining, text: whole.body }
}

function isNetworkError(error: unknown): boolean {
  return error instanceof Error && ('code' in error || error.name === 'AggregateError')
}
