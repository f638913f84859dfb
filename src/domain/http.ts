import type { Instant } from './time.ts'

/**
 * True when a text parses as an absolute http or https URL (docs/importing.md).
 *
 * The constructor is asked, not `URL.canParse`, which on Node 20 and 22 refuses some valid hosts after it has been
 * called often (`https://\u00ef.at`).
 */
export function isHttpUrl(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}

/**
 * The time at which a `Retry-After` asks to be asked again (RFC 9110, 10.2.3): seconds from now, or a date.
 *
 * @param header its value
 * @param now when the answer came
 * @param longestSeconds no wait is longer, whatever the header says
 * @returns never before now; null when it does not say
 */
export function parseRetryAfter(
  header: string | undefined,
  now: Instant,
  longestSeconds: number,
): Instant | null {
  const asked = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(asked)) return now + Math.ceil(Math.min(Number(asked), longestSeconds) * 1000)
  // A date has a day's name; `Date.parse` makes dates of many another text.
  const date = /^[A-Z][a-z]+,? /.test(asked) ? Date.parse(asked) : Number.NaN
  return Number.isNaN(date) ? null : Math.min(Math.max(date, now), now + longestSeconds * 1000)
}

/**
 * The innermost reason of a failed exchange, on one line. Clients wrap what the network said; where a host has several
 * addresses they collect one failure for each, of which the first is enough.
 */
export function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.errors.length > 0) return networkReason(error.errors[0])
  // An abort says nothing of its reason; the error around it does.
  if (error.cause instanceof Error && error.cause.name !== 'AbortError') return networkReason(error.cause)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return error.message || code
}

/** What a person can do about a server that was not reached. */
export const HOW_TO_REACH = 'check the address and the network, and try again'
