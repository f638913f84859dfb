import { readFileSync } from 'node:fs'
import { isHttpUrl } from '../domain/address.ts'
import type { LogWitnesses } from '../domain/ports.ts'
import { Refusal, messageOf, networkReason } from '../domain/refusal.ts'
import type { WitnessResponse } from '../domain/year/log/cosigning.ts'
import { parsePolicy } from '../domain/year/log/log-policy.ts'
import type { LogPolicy } from '../domain/year/log/log-policy.ts'
import { parseDecimal } from '../domain/year/log/signed-note.ts'
import { TimeLimitExceeded, openHttpClient, readBody } from './http.ts'
import type { HttpResponse } from './http.ts'

/** Far more than the cosignatures of one witness. */
const RESPONSE_MAX_BYTES = 16 * 1024

const CONNECT_TIMEOUT_MS = 3_000

/** Time limit of a whole response. */
const RESPONSE_TIMEOUT_MS = 5_000

/** Content type of a response that states the size of the last cosigned checkpoint. */
const SIZE_TYPE = /^text\/x\.tlog\.size *(;|$)/

interface WitnessClientOptions {
  userAgent: string
  responseTimeoutMs?: number
}

/** Opens a client of witnesses. Redirects are not followed. */
export function openWitnessClient({
  userAgent,
  responseTimeoutMs = RESPONSE_TIMEOUT_MS,
}: WitnessClientOptions): Pick<LogWitnesses, 'addCheckpoint'> & {
  close(): Promise<void>
} {
  const http = openHttpClient({ connect: { timeout: CONNECT_TIMEOUT_MS } })
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'user-agent': userAgent }
  return {
    async addCheckpoint(url, body) {
      try {
        const request = {
          url: `${url.replace(/\/+$/, '')}/add-checkpoint`,
          headers,
          body,
          timeoutMs: responseTimeoutMs,
        }
        return await http.exchange(request, readResponse)
      } catch (error) {
        return refused(error instanceof TimeLimitExceeded ? error.message : networkReason(error))
      }
    },
    close: () => http.close(),
  }
}

function refused(reason: string, inconsistent = false): WitnessResponse {
  return { is: 'refused', inconsistent, reason }
}

async function readResponse({ statusCode, headers, body }: HttpResponse): Promise<WitnessResponse> {
  const bytes = await readBody(body, RESPONSE_MAX_BYTES)
  if (bytes === null) return refused(`its response has more than ${RESPONSE_MAX_BYTES} bytes`)
  const text = new TextDecoder().decode(bytes)
  if (statusCode === 200) return { is: 'cosigned', lines: text }
  const size = SIZE_TYPE.test(String(headers['content-type'])) ? parseDecimal(text.replace(/\n$/, '')) : null
  if (statusCode === 409 && size !== null) return { is: 'other-size', size }
  // Some witnesses report a different tree of the same size with 409 and no size instead of 422.
  return refused(`it responded with ${statusCode}`, statusCode === 422 || statusCode === 409)
}

/**
 * Most witnesses of a log. Every client of signed notes must accept 16 signatures: these and that of the log. All
 * witnesses are asked at the same time.
 */
const WITNESSES_MAX = 15

/** The witnesses of a policy file, and its text. */
interface WitnessPolicy {
  text: string
  parties: LogPolicy['witnesses']
}

/**
 * Reads the policy file that names the witnesses of a log.
 *
 * @param path absolute path of the file
 * @throws Refusal `configuration` if the file cannot be read or is not such a policy
 */
export function readWitnessPolicy(path: string): WitnessPolicy {
  const text = readText(path)
  const parsed = parsePolicy(text)
  const problem = parsed.problem ?? problemOf(parsed.policy)
  if (parsed.problem !== null || problem !== null)
    throw new Refusal('configuration', `the witness policy ${path} is invalid: ${problem}`)
  return { text, parties: parsed.policy.witnesses }
}

function readText(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    throw new Refusal('configuration', `the witness policy ${path} cannot be read (${messageOf(error)})`)
  }
}

function problemOf({ logs, witnesses }: LogPolicy): string | null {
  if (logs.length > 0) return 'it has a log line; remove it, dash adds that of this log'
  if (witnesses.every(({ url }) => url === null)) return 'no witness has a submission URL'
  if (witnesses.length > WITNESSES_MAX)
    return `it has ${witnesses.length} witnesses; keep at most ${WITNESSES_MAX}`
  const unusable = witnesses.find(({ url }) => url !== null && !isSubmissionUrl(url))
  return unusable
    ? `the URL of ${unusable.key.name} must be http or https, without user, query and fragment`
    : null
}

function isSubmissionUrl(url: string): boolean {
  return isHttpUrl(url) && !/[?#@]/.test(url)
}
