import type { IncomingHttpHeaders } from 'node:http'
import type { Agent, Dispatcher, request as send } from 'undici'
import { parseRetryAfter } from '../domain/http.ts'
import type { Reach, Reached } from '../domain/ports.ts'
import type { Instant } from '../domain/time.ts'

/** Connections to servers, of whoever opened them; `close` ends them. */
export interface Connections {
  /** Sends a request over a connection of the pool; everything else is undici's own `request`. */
  request(
    url: string | URL,
    options: Omit<Dispatcher.RequestOptions, 'origin' | 'path'>,
  ): Promise<Dispatcher.ResponseData>
  close(): Promise<void>
}

/**
 * A pool of connections that is made at its first request: the client takes longer to load than a small archive to
 * audit, and a command on files never asks a server for anything.
 */
export function openConnections(options: Agent.Options): Connections {
  let opening: Promise<{ request: typeof send; agent: Agent }> | null = null
  return {
    async request(url, asked) {
      opening ??= import('undici').then(({ Agent, request }) => ({ request, agent: new Agent(options) }))
      const { request, agent } = await opening
      return request(url, { ...asked, dispatcher: agent })
    },
    async close() {
      if (opening) await (await opening).agent.destroy()
    },
  }
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
const BODY_MAX_BYTES = 4 * 1024 * 1024

/** Asks addresses whether they answer; `close` ends the connections. */
export function openReach(): Reach & { close: () => Promise<void> } {
  const connections = openConnections({ headersTimeout: 0, bodyTimeout: 0 })
  return {
    async ask({ url, method, headers = {}, timeoutMs }, signal) {
      signal.throwIfAborted()
      // Node 20 collects `AbortSignal.timeout()` as garbage before it fires when only `AbortSignal.any()` knows it.
      const limit = new AbortController()
      const stop = (): void => limit.abort()
      const timer = setTimeout(stop, timeoutMs)
      signal.addEventListener('abort', stop, { once: true })
      try {
        const response = await connections.request(url, { method, headers, signal: limit.signal })
        const date = Date.parse(String(response.headers['date']))
        const reached: Reached = {
          status: response.statusCode,
          date: Number.isNaN(date) ? null : date,
          body: '',
        }
        return { ...reached, body: await readBody(response.body as AsyncIterable<Uint8Array>) }
      } catch (error) {
        signal.throwIfAborted()
        return {
          unreachable: limit.signal.aborted ? `no answer within ${timeoutMs / 1000} s` : reasonOf(error),
        }
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', stop)
      }
    },
    close: () => connections.close(),
  }
}

async function readBody(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    // Leaving the loop ends the connection: what is still to come is never read.
    if (size > BODY_MAX_BYTES) return ''
    chunks.push(chunk)
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}

/** The system's code, where there is one: it says more than the message, which may be empty. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && typeof error.code === 'string') return error.code
  return error.message
}
