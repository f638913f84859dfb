import { compareLists } from './calendar.ts'
import type { Comparison } from './calendar.ts'
import type { GapReason } from './ledger.ts'
import { addDays, daysBetween } from '../time.ts'
import type { Day } from '../time.ts'

/** Fewest ranks that an item must rise or fall to count as a change. */
export const MOVED_RANKS = 10

/** Changes of one list of the Year between two publications. */
export interface YearChanges<T> extends Pick<Comparison<T>, 'entered' | 'left' | 'moved'> {
  /** The new number 1; null while the same item stays first. */
  newFirst: T | null
}

/** Compares one list of two publications. `moved` has moves of {@link MOVED_RANKS} or more, the longest first. */
export function changesBetween<T extends { key: string; rank: number }>(
  earlier: readonly T[],
  later: readonly T[],
): YearChanges<T> {
  const { entered, left, moved } = compareLists(earlier, later)
  const [first] = later
  const isNewFirst = first !== undefined && first.key !== earlier[0]?.key
  return {
    entered,
    left,
    moved: moved
      .filter(({ rose }) => Math.abs(rose) >= MOVED_RANKS)
      .toSorted((a, b) => Math.abs(b.rose) - Math.abs(a.rose)),
    newFirst: isNewFirst ? first : null,
  }
}

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
