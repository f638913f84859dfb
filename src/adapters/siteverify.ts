import { z } from 'zod'
import type { HumanVerifier } from '../domain/ports.ts'
import { openHttpClient, readBody } from './http.ts'
import type { HttpResponse } from './http.ts'

/** The longest token the service gives out. */
const TOKEN_MAX_LENGTH = 2048

const RESPONSE_MAX_BYTES = 64 * 1024

const CONNECT_TIMEOUT_MS = 3_000

/** How long a whole answer may take. */
const RESPONSE_TIMEOUT_MS = 5_000

const successSchema = z.object({ success: z.literal(true), hostname: z.string() })

/** A Turnstile-compatible service. */
export interface SiteverifyOptions {
  url: string
  secret: string
  responseTimeoutMs?: number
}

/**
 * The human challenge of a Turnstile-compatible service. A token is asked for once and never again, since it is good for
 * one answer only; redirections are not followed, so that the secret goes nowhere else.
 */
export function openSiteverify({
  url,
  secret,
  responseTimeoutMs = RESPONSE_TIMEOUT_MS,
}: SiteverifyOptions): HumanVerifier & { close(): Promise<void> } {
  const http = openHttpClient({ connect: { timeout: CONNECT_TIMEOUT_MS } })
  return {
    async isHuman(token, hostname, signal) {
      if (token === '' || token.length > TOKEN_MAX_LENGTH) return false
      try {
        const body = new URLSearchParams({ secret, response: token }).toString()
        const json = await http.exchange(
          { url, headers: HEADERS, body, timeoutMs: responseTimeoutMs, signal },
          readJson,
        )
        const parsed = successSchema.safeParse(json)
        return parsed.success && parsed.data.hostname === hostname
      } catch {
        signal.throwIfAborted()
        // Whatever went wrong, nobody has vouched for the caller.
        return false
      }
    },
    close: () => http.close(),
  }
}

const HEADERS = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }

/** The answer's JSON; null for anything but a 200. */
async function readJson({ statusCode, body }: HttpResponse): Promise<unknown> {
  const bytes = statusCode === 200 ? await readBody(body, RESPONSE_MAX_BYTES) : null
  return bytes && JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
}
