import type { IncomingHttpHeaders } from 'node:http'
import type { Instant } from '../../domain/time.ts'

/** No wait is longer than this, whatever a header says: a year. */
const LONGEST_SECONDS = 366 * 86_400

/**
 * When a host asks to be asked again (RFC 9110, 10.2.3): `Retry-After` in seconds or as a date; null when it does not
 * say.
 */
export function retryAt(headers: IncomingHttpHeaders, now: Instant): Instant | null {
  const asked = headers['retry-after']?.trim() ?? ''
  if (/^\d{1,9}$/.test(asked)) return now + Math.min(Number(asked), LONGEST_SECONDS) * 1000
  // Only a text with letters is taken for a date: `Date.parse` makes dates of many another.
  const date = /^[A-Z][a-z]+,? /.test(asked) ? Date.parse(asked) : Number.NaN
  return Number.isNaN(date) ? null : Math.min(Math.max(date, now), now + LONGEST_SECONDS * 1000)
}
