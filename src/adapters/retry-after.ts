import type { IncomingHttpHeaders } from 'node:http'
import { parseRetryAfter } from '../domain/retry-after.ts'
import type { Instant } from '../domain/time.ts'

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
