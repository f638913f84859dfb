/**
 * Days and instants. A day is a `YYYY-MM-DD` string in UTC; an instant is integer epoch milliseconds.
 * Instants are never compared as text (docs/ranking.md).
 */

/** A UTC calendar day, `YYYY-MM-DD`. */
export type Day = string

/** Epoch milliseconds, a safe integer. */
export type Instant = number
export const DAY_MS = 86_400_000

const DAY_PATTERN = /^\d{4}-\d{2}-\d{2}$/
const INSTANT_PATTERN = /^(\d{4}-\d{2}-\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/

/** The UTC day that contains an instant. */
export function dayOf(instant: Instant): Day {
  return new Date(instant).toISOString().slice(0, 10)
}

/** Midnight UTC at which a day starts. The day must be valid: see {@link parseDay}. */
export function startOfDay(day: Day): Instant {
  return Date.parse(`${day}T00:00:00.000Z`)
}

/** The day `count` days after (or, negative, before) `day`. */
export function addDays(day: Day, count: number): Day {
  return dayOf(startOfDay(day) + count * DAY_MS)
}

/** Every day from `first` to `last`, both included; empty when `last` is earlier. */
export function daysBetween(first: Day, last: Day): Day[] {
  const days: Day[] = []
  for (let at = startOfDay(first); at <= startOfDay(last); at += DAY_MS) days.push(dayOf(at))
  return days
}

/** ISO-8601 with milliseconds and `Z`, the only form the product writes. */
export function formatInstant(instant: Instant): string {
  return new Date(instant).toISOString()
}

/** The day, or null for anything that is not a real calendar day (30 February is not one). */
export function parseDay(text: string): Day | null {
  return DAY_PATTERN.test(text) && startOfRealDay(text) !== null ? text : null
}

/** Midnight UTC of a `YYYY-MM-DD` text; null when the day does not exist. */
function startOfRealDay(text: string): Instant | null {
  const at = startOfDay(text)
  // Date.parse moves a day past the end of its month into the next month.
  return new Date(at).getUTCDate() === Number(text.slice(8)) ? at : null
}

/**
 * Epoch milliseconds of an ISO-8601 instant with seconds and a zone (`Z` or `+hh:mm`), or null.
 * Dates are real: day 30 of February, hour 24 and second 60 are refused. Digits past the millisecond are cut.
 */
export function parseInstant(text: string): Instant | null {
  const match = INSTANT_PATTERN.exec(text)
  if (!match) return null
  const [, day = '', hour = '', minute = '', second = '', fraction = '', zone = ''] = match
  const midnight = startOfRealDay(day)
  if (midnight === null || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null
  const millis = Number(fraction.padEnd(3, '0').slice(0, 3))
  const atUtc = midnight + ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000 + millis
  if (zone === 'Z') return atUtc
  const zoneHours = Number(zone.slice(1, 3))
  const zoneMinutes = Number(zone.slice(4, 6))
  if (zoneHours > 23 || zoneMinutes > 59) return null
  const offsetMs = (zoneHours * 60 + zoneMinutes) * 60_000
  return zone.startsWith('-') ? atUtc + offsetMs : atUtc - offsetMs
}

/** An instant to the minute for readers, with its day named as seen from `now`: `yesterday 18:00 UTC`. */
export function minuteSeenFrom(now: Instant, at: Instant): string {
  const day = dayOf(at)
  const name = day === dayOf(now) ? 'today' : day === dayOf(now - DAY_MS) ? 'yesterday' : day
  return `${name} ${formatInstant(at).slice(11, 16)} UTC`
}
