import { addDays, dayOf, startOfDay } from '../time.ts'
import { parseRetryAfter } from '../retry-after.ts'
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
  const times = [
    parseRetryAfter(header, now, LONGEST_WAIT_SECONDS),
    ...seconds.map((each) => afterSeconds(each, now)),
    resetAt,
  ]
  const told = times.filter((at) => at !== null)
  return told.length === 0 ? null : Math.max(now, ...told)
}

/** The midnight UTC that ends the day of an instant. */
export function utcMidnightAfter(instant: Instant): Instant {
  return startOfDay(addDays(dayOf(instant), 1))
}

function afterSeconds(seconds: unknown, now: Instant): Instant | null {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return null
  return now + Math.ceil(Math.min(seconds, LONGEST_WAIT_SECONDS) * 1000)
}
