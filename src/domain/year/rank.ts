import {
  PERCENTILE_ORDERS,
  comparePoints,
  comparePointsAndComments,
  groupBySource,
  listedEvents,
  mapLists,
  rankLists,
  scoreAmong,
} from '../feed/columns.ts'
import type { FeedEvent, RankedLists, Scored } from '../feed/columns.ts'
import {
  HYPE_SOURCES,
  NEWS_SOURCES,
  hypeProviderOf,
  isNewsSource,
  isTitleTooLong,
  saveKey,
} from '../feed/source.ts'
import { compareCodeUnits } from '../text.ts'
import { daysBetween } from '../time.ts'
import type { Day } from '../time.ts'
import { TARGET_DAYS } from './ledger.ts'
import type { YearWindow } from './ledger.ts'
import type { Coverage } from './schema.ts'

/**
 * The version-3 ranking (docs/ranking.md): a pure function of the window's
 * events and the titles their sources verified.
 */

/** The fewest eligible events that make a hype cohort comparable. */
export const COHORT_MINIMUM = 5

/**
 * An event with the values of its latest signal up to the as-of day: published inside the window, with known points.
 */
export type YearEvent = FeedEvent

/** A title, and the channel of the owning source that verified it. */
export interface VerifiedTitle {
  title: string
  provenance: string
}

export interface RankedEvent extends Scored {
  rank: number
  title: VerifiedTitle
}

export interface RankedYear extends RankedLists<RankedEvent> {
  excludedCohorts: { provider: string; eligibleEvents: number }[]
  /**
   * Number of events excluded for their title: hype and image events without provenance, and fetched titles that are
   * too long.
   */
  unverified: number
  /** Number of eligible events by source. */
  eligible: Map<string, number>
}

/** The ranking, or the events whose titles must be fetched first. */
export type RankOutcome = { do: 'ranked'; year: RankedYear } | { do: 'hydrate'; events: YearEvent[] }

/**
 * Ranks a Year, or returns the events to be listed whose titles are unverified.
 *
 * @param events at most one for each (source, sourceId), all eligible except for missing provenance
 * @param hydrated titles by save key, from their owning sources
 */
export function rankYear(
  events: readonly YearEvent[],
  hydrated: ReadonlyMap<string, VerifiedTitle>,
): RankOutcome {
  const bySource = groupBySource(withoutOverlongTitles(events, hydrated).filter(isEligible))
  const titleOf = ({ event, key }: Scored): VerifiedTitle | null =>
    event.titleProvenance === null
      ? (hydrated.get(key) ?? null)
      : { title: event.title, provenance: event.titleProvenance }
  const scoredOf = (source: string): Scored[] => {
    const compare = hypeProviderOf(source) === null ? comparePointsAndComments : comparePoints
    return scoreAmong(bySource.get(source) ?? [], compare)
  }
  const { cohorts, excludedCohorts } = chooseCohorts(bySource)
  // An unknown title keeps its position, so that one pass finds a whole batch of titles to fetch.
  const lists = rankLists(scoredOf, cohorts, PERCENTILE_ORDERS, (scored) => titleOf(scored)?.title ?? null)
  const missing = listedEvents([lists]).filter((scored) => titleOf(scored) === null)
  if (missing.length > 0) return { do: 'hydrate', events: missing.map(({ event }) => event) }
  const eligible = new Map([...bySource].map(([source, members]) => [source, members.length]))
  const year = {
    ...mapLists(lists, (scored, rank) => ({ ...scored, rank, title: titleOf(scored) as VerifiedTitle })),
    excludedCohorts,
    unverified: events.length - [...eligible.values()].reduce((sum, count) => sum + count, 0),
    eligible,
  }
  return { do: 'ranked', year }
}

/** Rule 7: an event is not eligible when its source's title is too long. */
function withoutOverlongTitles(
  events: readonly YearEvent[],
  hydrated: ReadonlyMap<string, VerifiedTitle>,
): readonly YearEvent[] {
  const overlong = new Set([...hydrated].flatMap(([key, { title }]) => (isTitleTooLong(title) ? [key] : [])))
  if (overlong.size === 0) return events
  return events.filter(
    ({ source, sourceId, titleProvenance }) =>
      titleProvenance !== null || !overlong.has(saveKey(source, sourceId)),
  )
}

/** Rule 7: hype and image events without provenance are not eligible; news events are hydrated instead. */
export function isEligible({
  source,
  titleProvenance,
}: Pick<YearEvent, 'source' | 'titleProvenance'>): boolean {
  return titleProvenance !== null || (source !== 'midjourney' && hypeProviderOf(source) === null)
}

/** Rule 4: the ranked cohorts that are large enough; the others are left out and counted. */
function chooseCohorts(
  bySource: ReadonlyMap<string, YearEvent[]>,
): { cohorts: string[] } & Pick<RankedYear, 'excludedCohorts'> {
  const hype = [...bySource.keys()].filter((source) => hypeProviderOf(source) !== null).sort(compareCodeUnits)
  const isRanked = (source: string): boolean =>
    HYPE_SOURCES.includes(source) && (bySource.get(source)?.length ?? 0) >= COHORT_MINIMUM
  return {
    cohorts: hype.filter(isRanked),
    excludedCohorts: hype
      .filter((source) => !isRanked(source))
      .map((source) => ({
        provider: hypeProviderOf(source) ?? '',
        eligibleEvents: bySource.get(source)?.length ?? 0,
      })),
  }
}

/** True if every news list is empty, and with them `popular`. */
export function isEmptyYear({ columns }: Pick<RankedYear, 'columns'>): boolean {
  return NEWS_SOURCES.every((source) => columns[source].length === 0)
}

/** Observations of one source in a window. */
export interface SourceObservation {
  source: string
  /** Days inside the window with at least one signal of the source, ascending. */
  days: Day[]
  /** Distinct events with a signal observed inside the window. */
  events: number
}

/** The days on which a news source was observed: the coverage of a Year. */
export function materializedDays(observed: readonly SourceObservation[]): Set<Day> {
  const news = observed.filter(({ source }) => isNewsSource(source))
  return new Set(news.flatMap(({ days }) => days))
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
  const materialized = materializedDays(observed)
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
