import { once as onceEmitted } from 'node:events'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { parseJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import { BrokenStream } from '../../domain/v1/failures.ts'
import type { UpstreamFailure } from '../../domain/v1/failures.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'
import { flattenHeaders, mediaTypeOf, openHttpClient } from '../http.ts'
import { readInto } from '../response-body.ts'
import type { HttpClient, HttpResponse } from '../http.ts'
import { classifyResponse } from '../router/classify.ts'
import type { RouterResponse } from '../router/classify.ts'
import { errorIn, finishReason, firstChoice } from '../completion-message.ts'
import { SseParser, StreamTooLarge } from '../sse-parser.ts'
import { AFTER_REASON_MS, END_MARK, IdleTimeout, dataOf, isEndMark } from './provider-stream.ts'
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

/** Largest event of a stream, and largest whole completion. */
const EVENT_MAX_BYTES = 1024 * 1024
const WHOLE_MAX_BYTES = 16 * 1024 * 1024

/** Parsers of JSON refuse it. */
const BYTE_ORDER_MARK = Buffer.from('\uFEFF')

/** Larger completions are read a few at a time, because reading one takes several times its size in memory. */
const SMALL_MAX_BYTES = 1024 * 1024
const LARGE_AT_ONCE = 4

/** Time for a stream to end after its last event, in milliseconds, so that its connection can be reused. */
const END_MS = 500

/**
 * Opens the routing service for callers with their own keys. This adapter keeps no key, follows no redirect and sends
 * none of the callers' headers except the key.
 */
export function openPassThrough(options: PassThroughOptions): PassThrough {
  const http = openHttpClient({ connect: { timeout: 10_000 } })
  const largeReads = pLimit(LARGE_AT_ONCE)
  const attempt = async (
    { key, ids, bodyFor, stream }: Call,
    signal: AbortSignal,
  ): Promise<Completion | Failure> => {
    const exchange = new Exchange(signal, stream ? options.firstEventMs : null)
    let status: number | null = null
    try {
      const response = await post(http, options, { key, body: bodyFor(ids), stream }, exchange.signal)
      status = response.statusCode
      return await readResponse(response, stream, exchange, { ...options, largeReads })
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
  options: PassThroughOptions & { largeReads: LimitFunction },
): Promise<Completion | Failure> {
  const { clock, largeReads } = options
  const headers = flattenHeaders(received)
  const type = mediaTypeOf(headers['content-type'])
  const isPlain = (headers['content-encoding'] ?? 'identity') === 'identity'
  const isExpected = status === 200 && isPlain && type === (stream ? 'text/event-stream' : 'application/json')
  if (isExpected && stream) return readStream(body, headers, exchange, options)
  const parse = (bytes: Buffer | null): Completion | Failure => {
    exchange.end()
    const hasMark = bytes?.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    const content = bytes?.subarray(hasMark ? BYTE_ORDER_MARK.length : 0) ?? Buffer.alloc(0)
    const text = content.toString()
    const completion = isExpected ? parseJsonObject(text) : null
    const ending = bytes === null ? 'too-large' : 'whole'
    const failure = failureOf({ status, headers, body: text, ending }, clock)
    // An empty completion is passed on; an error inside a 200 states a status.
    if (!Array.isArray(completion?.['choices']) || failure.status !== null) return declined(failure)
    return { chunks: once(content), named: completion['model'] }
  }
  if (!isExpected) return parse(Buffer.from(await readError(body)))
  return readWhole(body, parse, largeReads, exchange.signal)
}

/**
 * Reads a whole completion and parses it. Of large ones a few are read at a time; the others wait, and so do their
 * senders.
 *
 * @param parse gets null for a completion that is too large
 */
async function readWhole<T>(
  body: HttpResponse['body'],
  parse: (bytes: Buffer | null) => T,
  largeReads: LimitFunction,
  signal: AbortSignal,
): Promise<T> {
  const chunks: Uint8Array[] = []
  await readInto(chunks, body.iterator({ destroyOnReturn: false }), SMALL_MAX_BYTES)
  const size = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (size <= SMALL_MAX_BYTES) return parse(Buffer.concat(chunks))
  const reading = largeReads(async () => {
    signal.throwIfAborted()
    await readInto(chunks, body, WHOLE_MAX_BYTES - size)
    const bytes = Buffer.concat(chunks.splice(0))
    return parse(bytes.byteLength > WHOLE_MAX_BYTES ? null : bytes)
  })
  // The wait for a place ends with the request.
  const aborted = onceEmitted(signal, 'abort').then(() => Promise.reject(signal.reason as Error))
  return Promise.race([reading, aborted])
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** A response that is no completion although it carries no error. */
function declined(failure: Failure): Failure {
  return failure.class === 'answered' ? { ...failure, class: 'invalid_answer' } : failure
}

/** Reads a stream up to its first event, which may be an error. */
async function readStream(
  body: HttpResponse['body'],
  headers: Readonly<Record<string, string>>,
  exchange: Exchange,
  options: PassThroughOptions,
): Promise<Completion | Failure> {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, undefined>
  const reader = new StreamReader()
  const first = await readFirstEvent(chunks, reader)
  const response = { status: 200, headers, ending: 'whole' } as const
  const failure = failureOf({ ...response, body: first?.data ?? '' }, options.clock)
  const event = parseJsonObject(first?.data ?? '')
  const isError = failure.status !== null && event !== null && errorIn(event) !== null
  if (first !== null && (isEndMark(first.data) || (event !== null && !isError))) {
    exchange.unlimit()
    return { chunks: passOn(first.bytes, chunks, reader, exchange, options), named: event?.['model'] }
  }
  exchange.end()
  return isError ? failure : failureOf({ ...response, body: '' }, options.clock)
}

/** Reads the events of a stream that is passed on, to find its end. */
class StreamReader {
  readonly #parser = new SseParser({ maxEventBytes: EVENT_MAX_BYTES, maxBytes: Infinity })
  isDone = false
  /** True after a finish reason: the completion may be at its end. */
  hasReason = false
  /** True if the stream ended within an event. */
  isCut = false

  /** @throws BrokenStream for an event that is too large */
  push(chunk: Uint8Array): string[] {
    try {
      return this.#read(dataOf(this.#parser.push(chunk)))
    } catch (error) {
      if (error instanceof StreamTooLarge) throw new BrokenStream('invalid_stream', error)
      throw error
    }
  }

  /** Reads the last event if its end is missing. Half an event is no end. */
  end(): string[] {
    const last = this.#parser.end()
    this.isCut = last !== null
    const events = this.#read(last === null ? [] : dataOf([last]))
    this.hasReason &&= events.every((data) => parseJsonObject(data) !== null)
    return events
  }

  #read(events: string[]): string[] {
    for (const data of events) {
      this.isDone ||= isEndMark(data)
      this.hasReason ||= provesEnd(parseJsonObject(data) ?? {})
    }
    return events
  }
}

function provesEnd(event: JsonObject): boolean {
  const reason = finishReason(firstChoice(event))
  return reason !== '' && reason !== 'error'
}

/** Finds the first line with data in Latin-1 text, where a byte order mark has three characters. */
const DATA_LINE = /(?<=^(?:\xEF\xBB\xBF)?|[\r\n])data:(?![ \t]*(?:null|""|\[\])?[ \t]*(?:[\r\n]|$))/

/** @returns the bytes from the first line with data on, and the data; null if the stream has none, or too much */
async function readFirstEvent(
  chunks: AsyncIterator<Uint8Array, undefined>,
  reader: StreamReader,
): Promise<{ bytes: Uint8Array; data: string } | null> {
  const held: Uint8Array[] = []
  for (;;) {
    const { value = new Uint8Array(), done = false } = await chunks.next()
    held.push(value)
    let data: string | undefined
    try {
      data = (done ? reader.end() : reader.push(value))[0]
    } catch (error) {
      if (error instanceof BrokenStream) return null
      throw error
    }
    if (data === undefined) {
      if (done) return null
      continue
    }
    const bytes = Buffer.concat(held)
    // The lines before it are comments.
    return { bytes: bytes.subarray(Math.max(0, bytes.toString('latin1').search(DATA_LINE))), data }
  }
}

/**
 * Passes a stream on. The next chunk is read when the caller has taken the last one. If a stream ends after a finish
 * reason without an end mark, the mark is added.
 *
 * @throws BrokenStream
 */
async function* passOn(
  first: Uint8Array,
  chunks: AsyncIterator<Uint8Array, undefined>,
  reader: StreamReader,
  exchange: Exchange,
  { idleMs, afterReasonMs = AFTER_REASON_MS }: IdleTimeouts,
): AsyncGenerator<Uint8Array> {
  const limit = (): number => (reader.isDone ? END_MS : reader.hasReason ? afterReasonMs : idleMs)
  let idleLeft = limit()
  try {
    yield first
    for (;;) {
      const waitedSince = performance.now()
      exchange.limit(idleLeft)
      const chunk = await nextChunk(chunks, exchange, reader)
      exchange.unlimit()
      const hasEvent = (chunk === null ? reader.end() : reader.push(chunk)).length > 0
      if (chunk === null) break
      yield chunk
      // Comments do not prolong the time until the next event, or until the end.
      idleLeft = hasEvent ? limit() : Math.max(1, idleLeft - (performance.now() - waitedSince))
    }
    if (reader.isDone) return
    if (!reader.hasReason) throw new BrokenStream('truncated')
    yield Buffer.from(`${reader.isCut ? '\n\n' : ''}data: ${END_MARK}\n\n`)
  } finally {
    exchange.end()
  }
}

/** @returns null at the end of the stream; after a finish reason or the last event, any end counts */
async function nextChunk(
  chunks: AsyncIterator<Uint8Array, undefined>,
  exchange: Exchange,
  { isDone, hasReason }: StreamReader,
): Promise<Uint8Array | null> {
  try {
    const { value, done } = await chunks.next()
    return done === true ? null : value
  } catch (error) {
    if (isDone || hasReason) return null
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
