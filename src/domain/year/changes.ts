import { addDays, daysBetween } from '../time.ts'
import type { Day } from '../time.ts'
import { compareLists } from './calendar.ts'
import type { Comparison, GapStop, TimelineStop } from './calendar.ts'
import type { TimelineItem } from './chain.ts'
import type { GapReason } from './ledger.ts'

/** Changes of a list from one publication of the Year to another (docs/api.md). */

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

/** A publication, the one before it, and the gaps between them. */
export interface PublicationStep {
  item: TimelineItem
  /** null for the first publication. */
  previous: TimelineItem | null
  gaps: readonly GapStop[]
}

/** Every selectable publication as a step from the one before, by as-of day. */
export function publicationSteps(stops: readonly TimelineStop[]): PublicationStep[] {
  const steps: PublicationStep[] = []
  let gaps: GapStop[] = []
  for (const stop of stops) {
    if (stop.kind === 'gap') gaps.push(stop)
    else {
      steps.push({ item: stop.item, previous: steps.at(-1)?.item ?? null, gaps })
      gaps = []
    }
  }
  return steps
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
