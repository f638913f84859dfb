import { once as onceEmitted } from 'node:events'
import pLimit from 'p-limit'
import type { LimitFunction } from 'p-limit'
import { parseJsonObject } from '../../domain/json.ts'
import { BrokenStream } from '../../domain/v1/failures.ts'
import type { UpstreamFailure } from '../../domain/v1/failures.ts'
import type { Clock, PassThrough } from '../../domain/ports.ts'
import { flattenHeaders, mediaTypeOf, openHttpClient, isCompressed, readInto } from '../http.ts'
import type { HttpClient, HttpResponse } from '../http.ts'
import { classifyResponse } from '../router/classify.ts'
import type { RouterResponse } from '../router/classify.ts'
import { errorIn, finishReason, firstChoice } from '../completion-message.ts'
import {
  AFTER_REASON_MS,
  END_MARK,
  END_MS,
  EventReader,
  isEndMark,
  readError,
  respondingId,
  singleUseBody,
  unnamedIds,
} from './upstream.ts'
import type { IdleTimeouts, StreamPart } from './upstream.ts'

export interface PassThroughOptions extends IdleTimeouts {
  /** API base of the routing service without a trailing slash. Keys are sent to this base only. */
  base: string
  /** Identifies the product to the service: the URL under which it is used. */
  referer: string
  userAgent: string
  clock: Clock
}

/** Largest event of a stream, and largest whole completion. */
const STREAM_BOUNDS = { maxEventBytes: 1024 * 1024, maxBytes: Infinity }
const WHOLE_MAX_BYTES = 16 * 1024 * 1024

const BYTE_ORDER_MARK = Buffer.from('\uFEFF')

/** Larger completions are read a few at a time, because reading one takes several times its size in memory. */
const SMALL_MAX_BYTES = 1024 * 1024
const LARGE_AT_ONCE = 4

/**
 * Opens the routing service for callers with their own keys. This adapter keeps no key, follows no redirect and sends
 * none of the callers' headers except the key.
 */
export function openPassThrough(options: PassThroughOptions): PassThrough {
  const http = openHttpClient({ connect: { timeout: 10_000 } })
  const largeReads = pLimit(LARGE_AT_ONCE)
  const attempt = async ({ key, ids, bodyFor, stream }: Call, signal: AbortSignal): Promise<Result> => {
    const reader = stream ? new EventReader(options, STREAM_BOUNDS, signal) : null
    let status: number | null = null
    try {
      const sent = { key, body: bodyFor(ids), stream }
      const response = await post(http, options, sent, reader?.signal ?? signal)
      status = response.statusCode
      const result = await readResponse(response, reader, signal, { ...options, largeReads })
      if (!('chunks' in result)) reader?.close()
      return result
    } catch (error) {
      reader?.close()
      signal.throwIfAborted()
      if (reader && reader.expired !== null) return failureOf({ ending: 'timeout' }, options.clock)
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
type Result = Completion | Failure

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
      'accept-encoding': 'identity',
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
  reader: EventReader | null,
  signal: AbortSignal,
  options: PassThroughOptions & { largeReads: LimitFunction },
): Promise<Result> {
  const headers = flattenHeaders(received)
  const type = mediaTypeOf(headers['content-type'])
  const isPlain = !isCompressed(headers)
  const isExpected = status === 200 && isPlain && type === (reader ? 'text/event-stream' : 'application/json')
  const classify = (text: string, ending: RouterResponse['ending'] = 'whole'): Failure =>
    failureOf({ status, headers, body: text, ending }, options.clock)
  if (!isExpected) return classify(await readError(body))
  if (reader) return readStream(body, reader, classify, options)
  const bytes = await readWhole(body, options.largeReads, signal)
  if (bytes === null) return classify('', 'too-large')
  const text = new TextDecoder().decode(bytes)
  const completion = parseJsonObject(text)
  const failure = classify(text)
  // An empty completion is passed on; an error inside a 200 states a status.
  if (!Array.isArray(completion?.['choices']) || failure.status !== null) return failure
  // Without a byte order mark, which parsers of JSON refuse.
  const start = bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0
  return { chunks: once(bytes.subarray(start)), named: completion['model'] }
}

/**
 * Reads a whole completion; null if it is too large. Of large ones a few are read at a time; the others wait, and so do
 * their senders.
 */
async function readWhole(
  body: HttpResponse['body'],
  largeReads: LimitFunction,
  signal: AbortSignal,
): Promise<Buffer | null> {
  const chunks: Uint8Array[] = []
  await readInto(chunks, body.iterator({ destroyOnReturn: false }), SMALL_MAX_BYTES)
  const size = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (size <= SMALL_MAX_BYTES) return Buffer.concat(chunks)
  const reading = largeReads(async () => {
    signal.throwIfAborted()
    await readInto(chunks, body, WHOLE_MAX_BYTES - size)
    const bytes = Buffer.concat(chunks.splice(0))
    return bytes.byteLength > WHOLE_MAX_BYTES ? null : bytes
  })
  // The wait for a place ends with the request.
  const aborted = onceEmitted(signal, 'abort').then(() => Promise.reject(signal.reason as Error))
  return Promise.race([reading, aborted])
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Reads a stream up to its first event, which may be an error. */
async function readStream(
  body: HttpResponse['body'],
  reader: EventReader,
  classify: (text: string) => Failure,
  options: PassThroughOptions,
): Promise<Result> {
  reader.begin(body)
  const part = await reader.read(options.firstEventMs)
  if (part.ending === 'silent') return failureOf({ ending: 'timeout' }, options.clock)
  const [first = ''] = part.events
  const event = parseJsonObject(first)
  const failure = classify(first)
  if (failure.status !== null && event !== null && errorIn(event) !== null) return failure
  if (event === null && !isEndMark(first)) return classify('')
  return { chunks: passOn(withoutComments(part), reader, options), named: event?.['model'] }
}

/**
 * Finds the first event with data, from up to three other fields on, in Latin-1 text, where a byte order mark has three
 * characters.
 */
const DATA_LINE =
  /(?<=^(?:\xEF\xBB\xBF)?|[\r\n])(?:(?:event|id|retry):[^\r\n]*(?:\r\n?|\n)){0,3}data:(?![ \t]*(?:null|""|\[\])?[ \t]*(?:[\r\n]|$))/

/** Removes what stands before the first event with data. */
function withoutComments(part: StreamPart): StreamPart {
  const bytes = Buffer.concat(part.chunks)
  return { ...part, chunks: [bytes.subarray(Math.max(0, bytes.toString('latin1').search(DATA_LINE)))] }
}

/**
 * Passes a stream on. The next part is read when the caller has taken the last one. If a stream ends after a finish
 * reason without an end mark, the mark is added.
 *
 * @throws BrokenStream
 */
async function* passOn(
  first: StreamPart,
  reader: EventReader,
  { idleMs, afterReasonMs = AFTER_REASON_MS }: IdleTimeouts,
): AsyncGenerator<Uint8Array> {
  let isDone = false
  let hasReason = false
  let part = first
  try {
    for (;;) {
      yield* part.chunks
      const { events, ending, isCut } = part
      isDone ||= events.some(isEndMark)
      hasReason ||= events.some(provesEnd)
      if (ending === null) {
        part = await readOn(reader, isDone ? END_MS : hasReason ? afterReasonMs : idleMs)
        continue
      }
      if (isDone) return
      if (ending === 'too-large') throw new BrokenStream('invalid_stream')
      // Half an event is no end.
      const isComplete = hasReason && (!isCut || events.every((data) => parseJsonObject(data) !== null))
      if (!isComplete) throw new BrokenStream(ending === 'silent' ? 'idle' : 'truncated')
      yield Buffer.from(`${isCut ? '\n\n' : ''}data: ${END_MARK}\n\n`)
      return
    }
  } finally {
    reader.close()
  }
}

/** @throws BrokenStream if the request is aborted */
function readOn(reader: EventReader, idleMs: number): Promise<StreamPart> {
  return reader.read(idleMs, true).catch((error: unknown) => {
    throw new BrokenStream('truncated', error)
  })
}

function provesEnd(data: string): boolean {
  const reason = finishReason(firstChoice(parseJsonObject(data) ?? {}))
  return reason !== '' && reason !== 'error'
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
  const { class: found, correlated, status, retryAt, resetAt, limit, remaining } = classifyResponse(whole)
  // A response without an error that is no completion.
  const kind = found === 'answered' ? 'invalid_answer' : found
  // One request has no other model to compare with: a 429 that names no owner counts as the account's.
  const owned = correlated === 'account_minute' ? correlated : kind
  return { class: owned, status, retryAt, resetAt, limit, remaining, text: whole.body }
}

function isNetworkError(error: unknown): boolean {
  return error instanceof Error && ('code' in error || error.name === 'AggregateError')
}
