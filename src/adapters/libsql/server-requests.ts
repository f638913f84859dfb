import { Refusal } from '../../domain/refusal.ts'
import { StorageFault, storageUnavailable } from '../../domain/storage.ts'
import { openConnections } from '../connections.ts'
import type { Connections } from '../connections.ts'

const CONNECT_TIMEOUT_MS = 5_000

/** Time for a whole answer; a server lets a write wait for another for up to five seconds. */
const ANSWER_TIMEOUT_MS = 10_000

/** Failures before the first byte of a request was sent. */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_\w+|\w*CERT\w*)$/

/** What the driver sends its requests through, over connections of our own. */
export interface ServerRequests {
  /**
   * @throws Refusal `storage_unavailable` when the server cannot be reached or takes no request of ours, and a plain
   *   error when it does not answer in time
   */
  fetch: (asked: Request) => Promise<Response>
  close(): void
}

/** @param name as errors name the server */
export function openServerRequests(name: string, answerTimeoutMs = ANSWER_TIMEOUT_MS): ServerRequests {
  const connections = openConnections({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // One timer of our own for everything: these two start again with each byte.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    async fetch(asked) {
      // Node 20 collects `AbortSignal.timeout()` as garbage before it fires.
      const limit = new AbortController()
      const timer = setTimeout(() => limit.abort(), answerTimeoutMs)
      try {
        return await ask(connections, asked, limit.signal, name)
      } catch (error) {
        if (limit.signal.aborted) {
          throw new StorageFault(`${name} gave no answer within ${answerTimeoutMs} ms`, { cause: error })
        }
        const code = networkCode(error)
        if (error instanceof Refusal || code === null) throw error
        const mend = 'start it or correct DASH_DATABASE_URL'
        throw storageUnavailable(`${name} cannot be reached (${code}); ${mend}`, error)
      } finally {
        clearTimeout(timer)
      }
    },
    close: () => void connections.close(),
  }
}

async function ask(
  connections: Connections,
  asked: Request,
  signal: AbortSignal,
  name: string,
): Promise<Response> {
  const body = Buffer.from(await asked.arrayBuffer())
  const {
    statusCode,
    headers,
    body: answer,
  } = await connections.request(asked.url, {
    signal,
    method: 'POST',
    headers: Object.fromEntries(asked.headers),
    body,
  })
  const bytes = await answer.arrayBuffer()
  if (statusCode === 401 || statusCode === 403) {
    throw storageUnavailable(`${name} answered ${statusCode}; correct DASH_DATABASE_AUTH_TOKEN`)
  }
  const type = headers['content-type']
  return new Response(bytes, {
    status: statusCode,
    headers: typeof type === 'string' ? { 'content-type': type } : {},
  })
}

/** True when the server cannot have seen the request that failed so. */
export function wasNeverSent(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (NEVER_SENT.test(networkCode(cause) ?? '')) return true
  }
  return false
}

/** Code of a failure of the network or of the TLS on it; null for anything else. */
function networkCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}
