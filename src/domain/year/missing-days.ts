import { addDays, daysBetween } from '../time.ts'
import type { Day } from '../time.ts'
import type { GapReason } from './ledger.ts'

/** A day without a publication; `reason` is null if the ledger has no entry for it. */
export interface MissingDay {
  asOfDay: Day
  reason: GapReason | null
}

/**
 * Lists the days after a publication that have none: every recorded gap, and every other day up to `until`.
 *
 * @param history the as-of days of all publications, and all recorded gaps
 * @param after as-of day of the publication
 * @param until last day that must be published by now
 */
export function missingDays(
  history: {
    publications: readonly { asOfDay: Day }[]
    gaps: readonly { asOfDay: Day; reason: GapReason }[]
  },
  after: Day,
  until: Day,
): MissingDay[] {
  const published = new Set(history.publications.map(({ asOfDay }) => asOfDay))
  const reasons = new Map(history.gaps.map(({ asOfDay, reason }) => [asOfDay, reason]))
  const lastDay = [until, ...reasons.keys()].sort().at(-1) ?? until
  return daysBetween(addDays(after, 1), lastDay)
    .filter((asOfDay) => !published.has(asOfDay))
    .map((asOfDay) => ({ asOfDay, reason: reasons.get(asOfDay) ?? null }))
    .filter(({ asOfDay, reason }) => reason !== null || asOfDay <= until)
}
