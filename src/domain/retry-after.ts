import type { Instant } from './time.ts'

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
