import {
  compareInColumn,
  compareInHype,
  compareInPopular,
  comparePoints,
  comparePointsAndComments,
  groupBySource,
  scoreAmong,
  takeDistinct,
  topOf,
} from '../feed/columns.ts'
import type { FeedEvent, Scored } from '../feed/columns.ts'
import {
  HYPE_PROVIDERS,
  NEWS_SOURCES,
  hypeProviderOf,
  isRankedProvider,
  isTitleTooLong,
  saveKey,
} from '../feed/source.ts'
import type { NewsSource } from '../feed/source.ts'
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

export interface RankedEvent {
  event: YearEvent
  key: string
  provider: string | null
  rank: number
  percentile: number
  title: VerifiedTitle
}

export interface RankedYear {
  columns: Record<NewsSource, RankedEvent[]>
  hype: RankedEvent[]
  popular: RankedEvent[]
  midjourney: RankedEvent[]
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
  const candidates = withoutOverlongTitles(events, hydrated)
  const bySource = groupBySource(candidates.filter(isEligible))
  const titles = (event: YearEvent, key: string): VerifiedTitle | null =>
    event.titleProvenance === null
      ? (hydrated.get(key) ?? null)
      : { title: event.title, provenance: event.titleProvenance }

  const missing = new Map<string, YearEvent>()
  const titled = (scored: readonly Scored[]): RankedEvent[] =>
    scored.flatMap(({ event, key, percentile }, index) => {
      const title = titles(event, key)
      if (title === null) {
        missing.set(key, event)
        return []
      }
      return [{ event, key, provider: hypeProviderOf(event.source), rank: index + 1, percentile, title }]
    })

  const news = NEWS_SOURCES.map((source) => scoreAmong(bySource.get(source) ?? [], comparePointsAndComments))
  const columns = Object.fromEntries(
    NEWS_SOURCES.map((source, index) => [source, titled(topOf(news[index] ?? [], compareInColumn))]),
  ) as Record<NewsSource, RankedEvent[]>
  const popular = walkPopular(news.flat(), titles, missing)
  if (missing.size > 0) return { do: 'hydrate', events: [...missing.values()] }

  const hype = rankHype(bySource)
  const images = scoreAmong(bySource.get('midjourney') ?? [], comparePointsAndComments)
  const year = {
    columns,
    hype: titled(hype.top),
    popular,
    midjourney: titled(topOf(images, compareInColumn)),
    excludedCohorts: hype.excluded,
    unverified: events.length - [...bySource.values()].flat().length,
    eligible: new Map([...bySource].map(([source, members]) => [source, members.length])),
  }
  return { do: 'ranked', year }
}

/** Every listed event, once. */
export function listedEvents({ columns, hype, popular, midjourney }: RankedYear): RankedEvent[] {
  const listed = [...Object.values(columns), hype, popular, midjourney].flat()
  return [...new Map(listed.map((ranked) => [ranked.key, ranked])).values()]
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
function isEligible({ source, titleProvenance }: YearEvent): boolean {
  return titleProvenance !== null || (source !== 'midjourney' && hypeProviderOf(source) === null)
}

/** Rule 4: percentiles inside each large enough provider cohort, then one order over all of them. */
function rankHype(bySource: ReadonlyMap<string, YearEvent[]>): {
  top: Scored[]
  excluded: { provider: string; eligibleEvents: number }[]
} {
  const scored: Scored[] = []
  const excluded: { provider: string; eligibleEvents: number }[] = []
  const unknown = [...bySource.keys()]
    .flatMap((source) => hypeProviderOf(source) ?? [])
    .filter((p) => !isRankedProvider(p))
  for (const provider of [...HYPE_PROVIDERS, ...unknown].sort(compareCodeUnits)) {
    const cohort = bySource.get(`hype:${provider}`) ?? []
    if (cohort.length === 0) continue
    if (!isRankedProvider(provider) || cohort.length < COHORT_MINIMUM) {
      excluded.push({ provider, eligibleEvents: cohort.length })
      continue
    }
    for (const one of scoreAmong(cohort, comparePoints)) scored.push(one)
  }
  return { top: topOf(scored, compareInHype), excluded }
}

/**
 * Rule 5: walks all news events in percentile order and skips an exact URL or title already taken. An event with an
 * unknown title is added to `missing` and keeps its position, so that one pass finds a whole batch of titles to fetch.
 */
function walkPopular(
  news: readonly Scored[],
  titles: (event: YearEvent, key: string) => VerifiedTitle | null,
  missing: Map<string, YearEvent>,
): RankedEvent[] {
  const order = [...news].sort(compareInPopular)
  const taken = takeDistinct(order, {
    urlOf: ({ event }) => event.url,
    titleOf: ({ event, key }) => titles(event, key)?.title ?? null,
  })
  const popular: RankedEvent[] = []
  for (const { event, key, percentile } of taken) {
    const title = titles(event, key)
    if (title === null) missing.set(key, event)
    else popular.push({ event, key, provider: null, rank: popular.length + 1, percentile, title })
  }
  return popular
}

/** Observations of one source in a window. */
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
