import { addDays, dayOf, startOfDay } from '../time.ts'
import type { Instant } from '../time.ts'

/** Nobody waits longer; a greater number is a mistake, or an attack. */
const LONGEST_WAIT_SECONDS = 172_800

/**
 * The earliest time to ask again, as an answer tells it: the latest of all it names.
 *
 * @param header value of `Retry-After`: seconds, or a date
 * @param seconds what the body names, of any type
 * @param resetAt when the limit begins anew
 * @param now when the answer came
 * @returns null when it tells nothing
 */
export function retryAtOf(
  header: string | undefined,
  seconds: readonly unknown[],
  resetAt: Instant | null,
  now: Instant,
): Instant | null {
  const times = [afterHeader(header, now), ...seconds.map((each) => afterSeconds(each, now)), resetAt]
  const told = times.filter((at) => at !== null)
  return told.length === 0 ? null : Math.max(now, ...told)
}

/** The midnight UTC that ends the day of an instant. */
export function utcMidnightAfter(instant: Instant): Instant {
  return startOfDay(addDays(dayOf(instant), 1))
}

function afterHeader(header: string | undefined, now: Instant): Instant | null {
  if (header === undefined) return null
  const text = header.trim()
  if (/^\d+(\.\d+)?$/.test(text)) return afterSeconds(Number(text), now)
  // A date has a day's name; Date.parse would take almost anything else too.
  const date = /^[A-Z][a-z]{2},? /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? null : afterSeconds(Math.max(0, date - now) / 1000, now)
}

function afterSeconds(seconds: unknown, now: Instant): Instant | null {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return null
  return now + Math.ceil(Math.min(seconds, LONGEST_WAIT_SECONDS) * 1000)
}
