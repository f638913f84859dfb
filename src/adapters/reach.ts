import { openConnections } from './connections.ts'
import type { Reached, Reach } from '../domain/ports.ts'

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
