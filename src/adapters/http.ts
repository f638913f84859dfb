import type { IncomingHttpHeaders } from 'node:http'
import type { Agent, Dispatcher, request as undiciRequest } from 'undici'
import { networkReason } from '../domain/refusal.ts'
import type { HttpProbe, ProbeResult } from '../domain/ports.ts'
import type { Instant } from '../domain/time.ts'

/** The status and headers of a response, and its body, unread. */
export type HttpResponse = Dispatcher.ResponseData

/** A request whose response is read within a time limit. */
export interface HttpExchange {
  url: string | URL
  /** POST with a body and GET without one, unless it says otherwise. */
  method?: Dispatcher.HttpMethod
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array | null
  /** For the whole response, connection included, however slowly it drips in. */
  timeoutMs: number
  signal?: AbortSignal
}

/** Connections to servers; `close` ends them. Redirects are responses like any other: none is followed. */
export interface Connections {
  /**
   * Sends a request and reads its response.
   *
   * @param read what is left of the body afterwards is not read, unless it is short
   * @throws the signal's reason; TimeLimitExceeded; whatever the network or `read` failed with
   */
  exchange<T>(asked: HttpExchange, read: (response: HttpResponse) => T | Promise<T>): Promise<T>
  /** Sends a request as undici does; the caller sees to time limits, and reads the body to its end or destroys it. */
  request(
    url: string | URL,
    options: Omit<Dispatcher.RequestOptions, 'origin' | 'path'>,
  ): Promise<HttpResponse>
  close(): Promise<void>
}

/** A rest of a body up to this size is read, so that its connection can be used again. */
const REST_MAX_BYTES = 64 * 1024

/**
 * A pool of connections that is made at its first request: the client takes longer to load than a small archive to
 * audit, and a command on files never sends a request.
 *
 * @param options of undici's pool, without its own timers unless they are set: those start again with each byte
 */
export function openConnections(options: Agent.Options): Connections {
  const load = async (): Promise<{ send: typeof undiciRequest; agent: Agent }> => {
    const undici = await import('undici')
    return {
      send: undici.request,
      agent: new undici.Agent({ headersTimeout: 0, bodyTimeout: 0, ...options }),
    }
  }
  let loading: ReturnType<typeof load> | null = null
  const open = (): ReturnType<typeof load> => (loading ??= load())
  const request: Connections['request'] = async (url, sent) => {
    const { send, agent } = await open()
    const response = await send(url, { ...sent, dispatcher: agent })
    // A body that is destroyed early emits an error when nothing else listens any more.
    response.body.on('error', () => undefined)
    return response
  }
  return {
    request,
    async exchange({ timeoutMs, signal = new AbortController().signal, ...asked }, read) {
      await open()
      return withTimeLimit(timeoutMs, signal, async (limited) => {
        const { url, body = null, method = body === null ? 'GET' : 'POST', headers = {} } = asked
        const response = await request(url, { method, headers, body, signal: limited })
        try {
          const value = await read(response)
          if (!response.body.destroyed) await response.body.dump({ limit: REST_MAX_BYTES, signal: limited })
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

/** @returns null for a body of more than `maxBytes`, of which no more is read */
export async function readBody(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = []
  await readInto(chunks, body, maxBytes)
  const bytes = Buffer.concat(chunks)
  return bytes.byteLength > maxBytes ? null : bytes
}

/**
 * Reads a body until it has ended, or more than `maxBytes` came.
 *
 * @param chunks what came is added here, so that it is there when the body breaks off
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
    // Leaving the loop ends the connection: what is still to come is never read.
    if (size > maxBytes) return
  }
}

/** Each header as one text; names are in lower case. */
export function headerTexts(headers: IncomingHttpHeaders): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) texts[name] = Array.isArray(value) ? value.join(', ') : value
  return texts
}

/** The system's or the client's code of a failure; null without one. */
export function networkCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** Larger numbers in a rate-limit header are Unix times, smaller ones seconds from now. */
const LEAST_UNIX_TIME = 1_000_000_000

/** No wait is longer than this, whatever a header says: a year. */
const LONGEST_SECONDS = 366 * 86_400

/**
 * When a source asks to be asked again (RFC 9110, 10.2.3): `Retry-After` in seconds or as a date, else the reset of
 * a rate limit that is used up, as GitHub (Unix time) and Reddit (seconds) send it. null when it does not say.
 */
export function retryAt(headers: IncomingHttpHeaders, now: Instant): Instant | null {
  const asked = parseRetryAfter(headers['retry-after'], now, LONGEST_SECONDS)
  if (asked !== null) return asked
  if (!isUsedUp(headers)) return null
  const reset = Math.ceil(Number(headers['x-ratelimit-reset']))
  if (!Number.isSafeInteger(reset) || reset < 0) return null
  const seconds = reset >= LEAST_UNIX_TIME ? reset - now / 1000 : reset
  return now + Math.min(Math.max(Math.ceil(seconds), 0), LONGEST_SECONDS) * 1000
}

/**
 * The time at which a `Retry-After` asks to be asked again (RFC 9110, 10.2.3): seconds from now, or a date.
 *
 * @param header its value
 * @param now when the answer came
 * @param longestSeconds no wait is longer, whatever the header says
 * @returns never before now; null when it does not say
 */
export function parseRetryAfter(
  header: string | undefined,
  now: Instant,
  longestSeconds: number,
): Instant | null {
  const asked = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(asked)) return now + Math.ceil(Math.min(Number(asked), longestSeconds) * 1000)
  // A date has a day's name; `Date.parse` makes dates of many another text.
  const date = /^[A-Z][a-z]+,? /.test(asked) ? Date.parse(asked) : Number.NaN
  return Number.isNaN(date) ? null : Math.min(Math.max(date, now), now + longestSeconds * 1000)
}

/** True when a source says that nothing is left of its rate limit. */
export function isUsedUp(headers: IncomingHttpHeaders): boolean {
  const left = headers['x-ratelimit-remaining']
  return typeof left === 'string' && left.trim() !== '' && Number(left) === 0
}

/** Work that did not end within its limit. */
export class TimeLimitExceeded extends Error {
  override readonly name = 'TimeLimitExceeded'
}

/**
 * Runs work that must end within `ms`.
 *
 * @param signal ends it earlier; then the rejection is the signal's reason
 * @throws TimeLimitExceeded naming the limit when the time is over
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (limited: AbortSignal) => Promise<T>,
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
    if (limit.signal.aborted) throw new TimeLimitExceeded(`no whole answer within ${ms} ms`, { cause: error })
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

/** No answer that is read here is longer. */
const REACH_MAX_BYTES = 4 * 1024 * 1024

/** Asks addresses whether they answer; `close` ends the connections. */
export function openReach(): HttpProbe & { close: () => Promise<void> } {
  const connections = openConnections({})
  return {
    async send(asked, signal) {
      try {
        return await connections.exchange({ ...asked, signal }, reached)
      } catch (error) {
        signal.throwIfAborted()
        const late = error instanceof TimeLimitExceeded
        const why = late ? `no answer within ${asked.timeoutMs / 1000} s` : networkCode(error)
        return { unreachable: why ?? networkReason(error) }
      }
    },
    close: () => connections.close(),
  }
}

async function reached({ statusCode, headers, body }: HttpResponse): Promise<ProbeResult> {
  const date = Date.parse(String(headers['date']))
  return {
    status: statusCode,
    date: Number.isNaN(date) ? null : date,
    body: new TextDecoder().decode((await readBody(body, REACH_MAX_BYTES)) ?? new Uint8Array()),
  }
}

/** A JSON object of another service; nothing is known of its fields. */
export type Fields = Readonly<Record<string, unknown>>

/** null for anything but an object. */
export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
}

/** The JSON object of a text; null for anything else. */
export function jsonFields(text: string): Fields | null {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return null
  }
}

/** An empty list for anything but a list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
