import { NEWS_SOURCES } from '../feed/source.ts'
import { compareCodeUnits } from '../order.ts'
import { daysBetween } from '../time.ts'
import type { Day } from '../time.ts'
import type { RankedYear } from './rank.ts'
import type { Coverage } from './schema.ts'
import { TARGET_DAYS } from './window.ts'
import type { YearWindow } from './window.ts'

/** What one source left in a window: the days it was observed on, and how many distinct events. */
export interface SourceObservation {
  source: string
  /** Days inside the window with at least one signal of the source, ascending. */
  days: Day[]
  /** Distinct events with a signal observed inside the window. */
  events: number
}

/**
 * The `coverage` of a publication (docs/ranking.md). News sources always appear, others when observed.
 */
export function coverageOf(
  window: YearWindow,
  observed: readonly SourceObservation[],
  ranked: RankedYear,
): Coverage {
  const bySource = new Map(observed.map((observation) => [observation.source, observation]))
  const materialized = new Set(NEWS_SOURCES.flatMap((source) => bySource.get(source)?.days ?? []))
  const days = daysBetween(window.firstDay, window.asOfDay)
  const present = days.filter((day) => materialized.has(day))
  const names = new Set<string>([...NEWS_SOURCES, ...bySource.keys(), ...ranked.eligible.keys()])
  return {
    targetDays: TARGET_DAYS,
    materializedDays: present.length,
    complete: present.length === TARGET_DAYS,
    firstDay: present[0] ?? null,
    lastDay: present.at(-1) ?? null,
    missingDays: days.filter((day) => !materialized.has(day)),
    sources: Object.fromEntries(
      [...names].sort(compareCodeUnits).map((source) => [
        source,
        {
          materializedDays: bySource.get(source)?.days.length ?? 0,
          events: bySource.get(source)?.events ?? 0,
          eligibleEvents: ranked.eligible.get(source) ?? 0,
        },
      ]),
    ),
    excludedCohorts: ranked.excludedCohorts,
    unverified: ranked.unverified,
  }
}
