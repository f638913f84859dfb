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

const resultSchema = z.object({
  success: z.boolean(),
  hostname: z.string().optional(),
  'error-codes': z.array(z.string()).catch([]),
})

/** Address and credentials of a Turnstile-compatible service. */
export interface SiteverifyOptions {
  url: string
  secret: string
  responseTimeoutMs?: number
  /** Called when no visitor can be verified: the service failed, or does not accept this secret or host. */
  onFault: (error: unknown) => void
}

/**
 * Verifies tokens at a Turnstile-compatible service. A token is valid for one verification, so requests are never
 * retried. Redirects are not followed, so that the secret reaches no other host.
 */
export function openSiteverify({
  url,
  secret,
  responseTimeoutMs = RESPONSE_TIMEOUT_MS,
  onFault,
}: SiteverifyOptions): HumanVerifier & { close(): Promise<void> } {
  const http = openHttpClient({ connect: { timeout: CONNECT_TIMEOUT_MS } })
  return {
    async isHuman(token, hostname, signal) {
      if (token === '' || token.length > TOKEN_MAX_LENGTH) return false
      try {
        const body = new URLSearchParams({ secret, response: token }).toString()
        const result = await http.exchange(
          { url, headers: HEADERS, body, timeoutMs: responseTimeoutMs, signal },
          readResult,
        )
        if (result['error-codes'].includes('invalid-input-secret'))
          throw new Error('DASH_VERIFICATION_SECRET is not accepted')
        if (!result.success) return false
        if (result.hostname === hostname) return true
        throw new Error(`the challenge was solved on ${result.hostname}, not on ${hostname}`)
      } catch (error) {
        signal.throwIfAborted()
        // After any failure the caller counts as unverified.
        onFault(error)
        return false
      }
    },
    close: () => http.close(),
  }
}

const HEADERS = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }

async function readResult({ statusCode, body }: HttpResponse): Promise<z.infer<typeof resultSchema>> {
  if (statusCode !== 200) throw new Error(`the response has the status ${statusCode}`)
  const bytes = await readBody(body, RESPONSE_MAX_BYTES)
  return resultSchema.parse(bytes && JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
}
