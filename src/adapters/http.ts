import type { IncomingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream'
import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import type { Agent, Dispatcher, request as undiciRequest } from 'undici'
import { errorCode, networkReason } from '../domain/refusal.ts'
import type { Instant } from '../domain/time.ts'

/** Status and headers of a response, and its unread body. */
export type HttpResponse = Dispatcher.ResponseData

/** A request whose response is read within a time limit. */
export interface HttpRequest {
  url: string | URL
  /** Default: POST with a body, GET without one. */
  method?: Dispatcher.HttpMethod
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array | null
  /** Time limit in milliseconds for the whole response, including the connection and every chunk. */
  timeoutMs: number
  signal?: AbortSignal
}

/** A pool of connections; `close` ends them. Redirects are not followed: they are responses like any other. */
export interface HttpClient {
  /**
   * Sends a request and reads its response.
   *
   * @param read reads the response; a long rest of the body that it leaves is dropped
   * @throws the signal's reason; TimeLimitExceeded; errors of the network and of `read`
   */
  exchange<T>(request: HttpRequest, read: (response: HttpResponse) => T | Promise<T>): Promise<T>
  /** Sends a request as undici does. The caller sets time limits, and reads the body to its end or destroys it. */
  request(
    url: string | URL,
    options: Omit<Dispatcher.RequestOptions, 'origin' | 'path'>,
  ): Promise<HttpResponse>
  close(): Promise<void>
}

/** Up to this many remaining bytes are read so that the connection can be reused. */
const DRAIN_MAX_BYTES = 64 * 1024

/**
 * Creates a connection pool at the first request: loading the client takes longer than auditing a small archive,
 * and a command that only reads files never sends a request.
 *
 * @param options of undici's pool. Its own timeouts are off by default because they restart with each byte
 */
export function openHttpClient(options: Agent.Options): HttpClient {
  const load = async (): Promise<{ send: typeof undiciRequest; agent: Agent }> => {
    const undici = await import('undici')
    return {
      send: undici.request,
      agent: new undici.Agent({ headersTimeout: 0, bodyTimeout: 0, ...options }),
    }
  }
  let loading: ReturnType<typeof load> | null = null
  const open = (): ReturnType<typeof load> => (loading ??= load())
  const request: HttpClient['request'] = async (url, requestOptions) => {
    const { send, agent } = await open()
    const response = await send(url, { ...requestOptions, dispatcher: agent })
    // A body that is destroyed early emits an error when nothing else listens any more.
    response.body.on('error', () => undefined)
    return response
  }
  return {
    request,
    async exchange({ timeoutMs, signal = new AbortController().signal, ...requestFields }, read) {
      await open()
      return withTimeLimit(timeoutMs, signal, async (limitedSignal) => {
        const { url, body = null, method = body === null ? 'GET' : 'POST', headers = {} } = requestFields
        const response = await request(url, { method, headers, body, signal: limitedSignal })
        try {
          const value = await read(response)
          if (!response.body.destroyed)
            await response.body.dump({ limit: DRAIN_MAX_BYTES, signal: limitedSignal })
          return value
        } finally {
          response.body.destroy()
        }
      })
    },
    async close() {
      if (loading) await (await loading).agent.destroy()
    },
  }
}

/**
 * Returns the target of a redirect, in ASCII; empty if there is none. Servers send bytes outside ASCII, which arrive as
 * Latin-1: each is escaped as it was sent.
 */
export function redirectTarget({ location }: IncomingHttpHeaders): string {
  const [target = ''] = [location ?? []].flat()
  return target.replace(/[\x80-\xFF]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Returns each header as one text; names are in lower case. */
export function flattenHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) texts[name] = Array.isArray(value) ? value.join(', ') : value
  return texts
}

/** Returns the media type of a `content-type` header, in lower case and without parameters; empty if it is missing. */
export function mediaTypeOf(contentType: string | string[] | null | undefined): string {
  return typeof contentType === 'string' ? (contentType.trim().split(/[;,\s]/)[0] ?? '').toLowerCase() : ''
}

/** In a rate-limit header, numbers from here on are Unix times and smaller ones are seconds from now. */
const MIN_UNIX_TIME = 1_000_000_000

/** Longest wait accepted from a header: a year. */
const MAX_WAIT_SECONDS = 366 * 86_400

/**
 * Returns the time after which a source accepts another request (RFC 9110, 10.2.3): `Retry-After` in seconds or as
 * a date, otherwise the reset of an exhausted rate limit as GitHub (Unix time) and Reddit (seconds) send it. Null
 * if the headers do not say.
 */
export function retryAt(headers: IncomingHttpHeaders, now: Instant): Instant | null {
  const retryAfter = parseRetryAfter(headers['retry-after'], now, MAX_WAIT_SECONDS)
  if (retryAfter !== null) return retryAfter
  if (!isRateLimitUsedUp(headers)) return null
  const reset = Math.ceil(Number(headers['x-ratelimit-reset']))
  if (!Number.isSafeInteger(reset) || reset < 0) return null
  const seconds = reset >= MIN_UNIX_TIME ? reset - now / 1000 : reset
  return now + Math.min(Math.max(Math.ceil(seconds), 0), MAX_WAIT_SECONDS) * 1000
}

/**
 * Parses a `Retry-After` header (RFC 9110, 10.2.3): seconds from now, or a date.
 *
 * @param header value of the header
 * @param now time of the response
 * @param maxSeconds upper bound of the wait
 * @returns a time not before `now`; null for a missing or invalid header
 */
export function parseRetryAfter(
  header: string | undefined,
  now: Instant,
  maxSeconds: number,
): Instant | null {
  const value = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(value)) return now + Math.ceil(Math.min(Number(value), maxSeconds) * 1000)
  // HTTP dates begin with the name of a day; `Date.parse` accepts many other texts as dates.
  const date = /^[A-Z][a-z]+,? /.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? null : Math.min(Math.max(date, now), now + maxSeconds * 1000)
}

/**
 * Returns the time of a response by the clock of its server: `Date`, and the `Age` that a cache adds (RFC 9111, 4.2.3).
 * Null if the headers do not say.
 */
export function timeOfResponse({ date, age = '0' }: IncomingHttpHeaders): Instant | null {
  const at = typeof date === 'string' && date.endsWith(' GMT') ? Date.parse(date) : Number.NaN
  return Number.isNaN(at) || !/^\d{1,9}$/.test(age) ? null : at + Number(age) * 1000
}

/** True if the headers report an exhausted rate limit. */
export function isRateLimitUsedUp(headers: IncomingHttpHeaders): boolean {
  const remaining = headers['x-ratelimit-remaining']
  return typeof remaining === 'string' && remaining.trim() !== '' && Number(remaining) === 0
}

/** Thrown when work exceeds its time limit. */
export class TimeLimitExceeded extends Error {
  override readonly name = 'TimeLimitExceeded'
}

/**
 * Runs work with a time limit of `ms` milliseconds.
 *
 * @param signal aborts earlier; the promise then rejects with the signal's reason
 * @throws TimeLimitExceeded naming the limit
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (limitedSignal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  // Node 20 collects `AbortSignal.timeout()` as garbage before it fires when only `AbortSignal.any()` knows it.
  const limit = new AbortController()
  const stop = (): void => limit.abort()
  const timer = setTimeout(stop, ms)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await work(limit.signal)
  } catch (error) {
    signal.throwIfAborted()
    if (limit.signal.aborted)
      throw new TimeLimitExceeded(`no complete response within ${ms} ms`, { cause: error })
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

/** Checks whether addresses respond. */
export interface HttpProbe {
  /**
   * Sends one request without a body and follows no redirect. An unreachable address is a result with its reason.
   *
   * @param request `timeoutMs`: for the whole response
   * @throws only the signal's own reason
   */
  send(
    request: {
      url: string
      method: 'GET' | 'HEAD'
      headers?: Readonly<Record<string, string>>
      timeoutMs: number
    },
    signal: AbortSignal,
  ): Promise<ProbeResult | { unreachable: string }>
}

export interface ProbeResult {
  status: number
  /** Time by the clock of the server; null when it does not say. */
  date: Instant | null
  /** The body; empty when it is too long. */
  body: string
}

const PROBE_MAX_BYTES = 4 * 1024 * 1024

/** Creates a probe that requests addresses and reports their response; `close` ends the connections. */
export function openHttpProbe(): HttpProbe & { close: () => Promise<void> } {
  const http = openHttpClient({})
  return {
    async send(request, signal) {
      try {
        return await http.exchange({ ...request, signal }, toProbeResult)
      } catch (error) {
        signal.throwIfAborted()
        const timedOut = error instanceof TimeLimitExceeded
        const reason = timedOut ? `no response within ${request.timeoutMs / 1000} s` : errorCode(error)
        return { unreachable: reason ?? networkReason(error) }
      }
    },
    close: () => http.close(),
  }
}

async function toProbeResult({ statusCode, headers, body }: HttpResponse): Promise<ProbeResult> {
  return {
    status: statusCode,
    date: timeOfResponse(headers),
    body: new TextDecoder().decode((await readBody(body, PROBE_MAX_BYTES)) ?? new Uint8Array()),
  }
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * Reads a body.
 *
 * @returns null if the body has more than `maxBytes`; the rest is not read
 */
export async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = []
  await readInto(chunks, body, maxBytes)
  const bytes = Buffer.concat(chunks)
  return bytes.byteLength > maxBytes ? null : bytes
}

/**
 * Reads a body until it ends or exceeds `maxBytes`.
 *
 * @param chunks receives the data, so that it is available if the body breaks off
 */
export async function readInto(
  chunks: Uint8Array[],
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<void> {
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.byteLength
    // Leaving the loop ends the connection; the rest is never read.
    if (size > maxBytes) return
  }
}

/** Thrown for a body whose content coding cannot be undone. */
export class UnsupportedCoding extends Error {
  override readonly name = 'UnsupportedCoding'
}

/** Makes a decoder for a body that begins with the given bytes; null if they are not compressed. */
const DECODERS: Readonly<Record<string, (start: Uint8Array) => Transform | null>> = {
  gzip: createAnyGunzip,
  'x-gzip': createAnyGunzip,
  br: () => createBrotliDecompress(),
  // Some servers leave out the header of zlib.
  deflate: ([first = 0]) => ((first & 0x0f) === 8 ? createInflate() : createInflateRaw()),
}

/** Compressions that are not undone. Other unknown names are mistakes, such as `utf-8`, and are ignored as by browsers. */
const UNSUPPORTED_CODINGS: ReadonlySet<string> = new Set('zstd compress x-compress dcb dcz'.split(' '))

/** Most codings of one body. */
const MAX_CODINGS = 3

/** Servers name gzip wrongly, twice or not at all, but its first bytes begin no text. */
function createAnyGunzip([first, second = 0x8b]: Uint8Array): Transform | null {
  return first === 0x1f && second === 0x8b ? createGunzip() : null
}

/**
 * Reads a body and undoes its compression, requested or not. It does so as a stream, so that a decompression bomb ends
 * at the limit.
 *
 * @returns at most `maxBytes`; `isCut`: the body has more, which is not read
 * @throws UnsupportedCoding; errors of the network and of a broken compression
 */
export async function readDecoded(
  { headers, body }: { headers: Headers; body: Readable },
  maxBytes: number,
): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Uint8Array[] = []
  const collect = (source: AsyncIterable<Uint8Array>): Promise<void> => readInto(chunks, source, maxBytes)
  let failure: unknown = null
  try {
    let decoded = body
    // The coding that was applied last stands last.
    for (const coding of ['gzip', ...codingsOf(headers)].toReversed()) {
      const decoder = DECODERS[coding]?.(await startOf(decoded))
      if (decoder) decoded = pipeline(decoded, decoder, () => undefined)
    }
    await collect(decoded)
  } catch (error) {
    failure = error
  } finally {
    body.destroy()
  }
  const bytes = Buffer.concat(chunks)
  const isCut = bytes.byteLength > maxBytes
  // An error after the limit is a consequence of the limit.
  if (failure !== null && !isCut) throw failure
  return { bytes: bytes.subarray(0, maxBytes), isCut }
}

/** True for a `Content-Encoding` that names a compression; any other name, such as `none` or `utf-8`, names none. */
export function isCompressed(headers: Headers): boolean {
  return compressionsOf(headers).length > 0
}

function compressionsOf(headers: Headers): string[] {
  const names = [headers['content-encoding'] ?? []].flat().join(',').toLowerCase().split(',')
  return names
    .map((name) => name.trim())
    .filter((name) => Object.hasOwn(DECODERS, name) || UNSUPPORTED_CODINGS.has(name))
}

/** The codings in the order in which they were applied. */
function codingsOf(headers: Headers): string[] {
  const codings = compressionsOf(headers)
  if (codings.length > MAX_CODINGS || codings.some((coding) => UNSUPPORTED_CODINGS.has(coding)))
    throw new UnsupportedCoding(`unsupported compression ${codings.join(', ').slice(0, 40)}`)
  return codings
}

/** Returns the first bytes of a body without consuming them; nothing if it is empty or failed. */
async function startOf(body: Readable): Promise<Uint8Array> {
  if (body.readableLength === 0 && !body.readableEnded && !body.destroyed)
    await new Promise((resolve) => {
      for (const event of ['readable', 'end', 'error', 'close']) body.once(event, resolve)
    })
  const start = body.read() as Buffer | null
  if (start !== null) body.unshift(start)
  return start ?? Buffer.alloc(0)
}
