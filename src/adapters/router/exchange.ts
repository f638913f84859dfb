import type { Clock } from '../../domain/ports.ts'
import type { AnswerEnding, RouterAnswer } from '../../domain/models/router.ts'
import type { Connections } from '../connections.ts'

/** One request to the service. */
export interface Exchange {
  url: string
  headers: Readonly<Record<string, string>>
  /** A JSON body makes it a POST. */
  body?: unknown
  /** For the whole answer, however slowly it drips in. */
  timeoutMs: number
  maxBytes: number
}

/**
 * Sends a request and reads its answer as far as it comes. No redirect is followed.
 *
 * @throws only the signal's own reason: whatever else goes wrong is how the answer ended
 */
export async function exchange(
  connections: Connections,
  { url, headers, body, timeoutMs, maxBytes }: Exchange,
  clock: Clock,
  signal: AbortSignal,
): Promise<RouterAnswer> {
  signal.throwIfAborted()
  // Node 20 collects `AbortSignal.timeout()` as garbage before it fires when only `AbortSignal.any()` knows it.
  const limit = new AbortController()
  const stop = (): void => limit.abort()
  const timer = setTimeout(stop, timeoutMs)
  signal.addEventListener('abort', stop, { once: true })
  const startedAt = performance.now()
  const read: Reading = { status: null, headers: {}, chunks: [], size: 0 }
  let ending: AnswerEnding
  try {
    const sent = body === undefined ? null : JSON.stringify(body)
    const response = await connections.request(url, {
      method: sent === null ? 'GET' : 'POST',
      headers: sent === null ? headers : { ...headers, 'content-type': 'application/json' },
      body: sent,
      signal: limit.signal,
    })
    ending = await readAnswer(response, read, maxBytes)
  } catch {
    signal.throwIfAborted()
    ending = limit.signal.aborted ? 'timeout' : read.status === null ? 'unreachable' : 'cut'
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
  const latencyMs = Math.round(performance.now() - startedAt)
  const text = new TextDecoder().decode(Buffer.concat(read.chunks))
  return { status: read.status, headers: read.headers, body: text, ending, endedAt: clock(), latencyMs }
}

interface Reading {
  status: number | null
  headers: Record<string, string>
  chunks: Uint8Array[]
  size: number
}

async function readAnswer(
  response: Awaited<ReturnType<Connections['request']>>,
  read: Reading,
  maxBytes: number,
): Promise<AnswerEnding> {
  read.status = response.statusCode
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined)
      read.headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value
  }
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    read.size += chunk.byteLength
    // Leaving the loop ends the connection: what is still to come is never read.
    if (read.size > maxBytes) return 'too-large'
    read.chunks.push(chunk)
  }
  return 'whole'
}
