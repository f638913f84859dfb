import { z } from 'zod'
import type { HumanVerifier } from '../domain/ports.ts'
import { openHttpClient, readBody } from './http.ts'
import type { HttpResponse } from './http.ts'

/** Maximum length of a token, as the service documents it. */
const TOKEN_MAX_LENGTH = 2048

const RESPONSE_MAX_BYTES = 64 * 1024

const CONNECT_TIMEOUT_MS = 3_000

/** Time limit of a whole response. */
const RESPONSE_TIMEOUT_MS = 5_000

const successSchema = z.object({ success: z.literal(true), hostname: z.string() })

/** Address and credentials of a Turnstile-compatible service. */
export interface SiteverifyOptions {
  url: string
  secret: string
  responseTimeoutMs?: number
}

/**
 * Verifies tokens at a Turnstile-compatible service. A token is valid for one verification, so requests are never
 * retried. Redirects are not followed, so that the secret reaches no other host.
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
        // After any failure the caller counts as unverified.
        return false
      }
    },
    close: () => http.close(),
  }
}

const HEADERS = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }

/** Reads the JSON of a response; null for any status but 200. */
async function readJson({ statusCode, body }: HttpResponse): Promise<unknown> {
  const bytes = statusCode === 200 ? await readBody(body, RESPONSE_MAX_BYTES) : null
  return bytes && JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
}
