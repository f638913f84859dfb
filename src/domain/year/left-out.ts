import type { Signal } from '../feed/signal.ts'
import { TARGET_DAYS } from './ledger.ts'
import type { YearWindow } from './ledger.ts'
import { COHORT_MINIMUM, isEligible, materializedDays } from './rank.ts'
import type { RankedYear, SourceObservation } from './rank.ts'

/** Causes that exclude rows and events from the lists of a Year (docs/publishing.md). */

/** Causes that do not depend on the day. */
const ROW_CAUSES = {
  noTitleProvenance: 'without title provenance',
  noPublicationTime: 'without a publication time',
  noPoints: 'without points',
} as const
export type RowCause = keyof typeof ROW_CAUSES

const EVENT_CAUSES = {
  ...ROW_CAUSES,
  outsideYear: `published outside the ${TARGET_DAYS} days`,
  smallCohort: `in hype sources that are unknown or have fewer than ${COHORT_MINIMUM} events`,
} as const
type EventCause = keyof typeof EVENT_CAUSES

/** Numbers by cause; a cause without any is absent. */
export type CauseCounts<Cause extends EventCause = EventCause> = Readonly<Partial<Record<Cause, number>>>

/** The values of a row that decide whether a Year can list it. */
type DecidingValues = Pick<Signal, 'source' | 'points' | 'publishedAt' | 'titleProvenance'>

/** Events of a window that the rules treat alike, with the values of one of them. */
export interface EventGroup extends DecidingValues {
  events: number
}

/** Returns the causes that exclude a row from every Year. News titles without provenance are fetched, so they are no cause. */
export function rowCausesOf(row: DecidingValues): RowCause[] {
  const causes: RowCause[] = []
  if (!isEligible(row)) causes.push('noTitleProvenance')
  if (row.publishedAt === null) causes.push('noPublicationTime')
  if (row.points === null) causes.push('noPoints')
  return causes
}

/**
 * Counts the events that a Year leaves out, by cause; an event can have several.
 *
 * @param groups the events observed in the window
 */
export function countLeftOut(
  groups: readonly EventGroup[],
  { windowStart, windowEnd }: Pick<YearWindow, 'windowStart' | 'windowEnd'>,
  excludedCohorts: RankedYear['excludedCohorts'],
): CauseCounts {
  const counts: Partial<Record<EventCause, number>> = {}
  const add = (cause: EventCause, events: number): void => {
    if (events > 0) counts[cause] = (counts[cause] ?? 0) + events
  }
  for (const group of groups) {
    const { publishedAt, events } = group
    for (const cause of rowCausesOf(group)) add(cause, events)
    if (publishedAt !== null && (publishedAt < windowStart || publishedAt >= windowEnd))
      add('outsideYear', events)
  }
  for (const { eligibleEvents } of excludedCohorts) add('smallCohort', eligibleEvents)
  return counts
}

/** Lists counts by cause, as in `3 without points, 1 without a publication time`; empty without any. */
export function describeCauses(counts: CauseCounts): string {
  const causes = Object.entries(EVENT_CAUSES) as [EventCause, string][]
  return causes
    .flatMap(([cause, text]) => (counts[cause] === undefined ? [] : [`${counts[cause]} ${text}`]))
    .join(', ')
}

/** The reason why a Year without news is not published, with the remedy. */
export function describeEmptyYear(observed: readonly SourceObservation[], leftOut: CauseCounts): string {
  const days = `${materializedDays(observed).size} of ${TARGET_DAYS} days have news signals`
  const found = `the Year would be empty: no event qualifies for a news list, and ${days}`
  const causes = describeCauses(leftOut)
  const events = causes === '' ? '' : `; events left out: ${causes}`
  return `${found}${events}; first run dash import signals or dash collect (signals of today count from tomorrow), or publish with --allow-empty`
}
