import { z } from 'zod'
import type { HumanVerifier } from '../domain/ports.ts'
import { openConnections, withTimeLimit } from './http.ts'
import type { Connections } from './http.ts'

/** The longest token the service gives out. */
const TOKEN_MAX_LENGTH = 2048

const ANSWER_MAX_BYTES = 64 * 1024

const CONNECT_TIMEOUT_MS = 3_000

/** How long a whole answer may take. */
const ANSWER_TIMEOUT_MS = 5_000

const answerSchema = z.object({ success: z.literal(true), hostname: z.string() })

/** A Turnstile-compatible service. */
export interface SiteverifyOptions {
  url: string
  secret: string
  answerTimeoutMs?: number
}

/**
 * The human challenge of a Turnstile-compatible service. A token is asked for once and never again, since it is good for
 * one answer only; redirections are not followed, so that the secret goes nowhere else.
 */
export function openSiteverify({
  url,
  secret,
  answerTimeoutMs = ANSWER_TIMEOUT_MS,
}: SiteverifyOptions): HumanVerifier & { close(): Promise<void> } {
  const connections = openConnections({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // One timer of our own for everything: these two start again with each byte.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    async isHuman(token, hostname, signal) {
      if (token === '' || token.length > TOKEN_MAX_LENGTH) return false
      try {
        const body = new URLSearchParams({ secret, response: token }).toString()
        const answer = await withTimeLimit(answerTimeoutMs, signal, (limited) =>
          ask(connections, url, body, limited),
        )
        const read = answerSchema.safeParse(answer)
        return read.success && read.data.hostname === hostname
      } catch {
        signal.throwIfAborted()
        // Whatever went wrong, nobody has vouched for the caller.
        return false
      }
    },
    close: () => connections.close(),
  }
}

/** The answer's JSON; null for anything but a 200. */
async function ask(
  connections: Connections,
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<unknown> {
  const response = await connections.request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body,
    signal,
  })
  if (response.statusCode !== 200) {
    await response.body.dump({ limit: ANSWER_MAX_BYTES, signal })
    return null
  }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength
    if (size > ANSWER_MAX_BYTES) return null
    chunks.push(chunk)
  }
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
}
