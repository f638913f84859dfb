import { addDays, DAY_MS, dayOf, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'

/** The number of complete UTC days a Year covers (docs/ranking.md). */
export const TARGET_DAYS = 365

/** The rolling Year that ends with an as-of day (docs/ranking.md). */
export interface YearWindow {
  asOfDay: Day
  firstDay: Day
  /** Inclusive. */
  windowStart: Instant
  /** Exclusive: midnight after the as-of day. */
  windowEnd: Instant
}

/** The last UTC day that was complete at `now`. */
export function lastCompleteDay(now: Instant): Day {
  return addDays(dayOf(now), -1)
}

/** The 365-day window whose last day is `asOfDay`. */
export function windowEnding(asOfDay: Day): YearWindow {
  const windowEnd = startOfDay(asOfDay) + DAY_MS
  const windowStart = windowEnd - TARGET_DAYS * DAY_MS
  return { asOfDay, firstDay: dayOf(windowStart), windowStart, windowEnd }
}
