import { HYPE_PROVIDERS, hypeProviderOf, isRankedProvider, NEWS_SOURCES, saveKey } from '../feed/source.ts'
import type { NewsSource } from '../feed/source.ts'
import type { Instant } from '../time.ts'
import { midpointPercentiles } from './percentile.ts'

/**
 * The version-3 ranking (docs/ranking.md): a pure function of the window's
 * events and the titles their sources verified.
 */

/** Length of each column and of `popular`. */
const COLUMN_LENGTH = 100

/** The fewest eligible events that make a hype cohort comparable. */
const COHORT_MINIMUM = 5

/** An event with the values of its latest signal up to the as-of day; published inside the window, points known. */
export interface YearEvent {
  source: string
  sourceId: string
  title: string
  url: string | null
  points: number
  comments: number | null
  publishedAt: Instant
  /** Null for a legacy signal, whose title nobody vouched for. */
  titleProvenance: string | null
}

/** A title together with the channel of the owning source that vouched for it. */
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
  /** Hype and image events left out because nobody vouched for their title. */
  unverified: number
  /** Eligible events of each source that has any. */
  eligible: Map<string, number>
}

/** Either the ranking, or the events whose titles must be asked of their sources before it can exist. */
export type RankOutcome = { do: 'ranked'; year: RankedYear } | { do: 'hydrate'; events: YearEvent[] }

interface Scored {
  event: YearEvent
  key: string
  percentile: number
}

/**
 * Ranks a Year, or names the events whose titles are still unverified and would stand in it.
 *
 * @param events at most one for each (source, sourceId), all eligible but for missing provenance
 * @param hydrated titles by save key, as their owning sources gave them
 */
export function rankYear(
  events: readonly YearEvent[],
  hydrated: ReadonlyMap<string, VerifiedTitle>,
): RankOutcome {
  const bySource = groupBySource(events)
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

  const news = NEWS_SOURCES.map((source) => scoreByPointsAndComments(bySource.get(source) ?? []))
  const columns = Object.fromEntries(
    NEWS_SOURCES.map((source, index) => [source, titled(topOfColumn(news[index] ?? []))]),
  ) as Record<NewsSource, RankedEvent[]>
  const popular = walkPopular(news.flat(), titles, missing)
  if (missing.size > 0) return { do: 'hydrate', events: [...missing.values()] }

  const hype = rankHype(bySource)
  const midjourney = titled(
    topOfColumn(scoreByPointsAndComments(verifiedOnly(bySource.get('midjourney') ?? []))),
  )
  const unverified = events.filter(
    (event) => needsProvenance(event.source) && event.titleProvenance === null,
  ).length
  const eligible = new Map<string, number>()
  for (const [source, members] of bySource) {
    const count = needsProvenance(source) ? verifiedOnly(members).length : members.length
    if (count > 0) eligible.set(source, count)
  }
  return {
    do: 'ranked',
    year: {
      columns,
      hype: titled(hype.top),
      popular,
      midjourney,
      excludedCohorts: hype.excluded,
      unverified,
      eligible,
    },
  }
}

/** Rule 7: hype and image events without provenance are not eligible; news events are hydrated instead. */
function needsProvenance(source: string): boolean {
  return source === 'midjourney' || hypeProviderOf(source) !== null
}

function verifiedOnly(events: readonly YearEvent[]): YearEvent[] {
  return events.filter((event) => event.titleProvenance !== null)
}

function groupBySource(events: readonly YearEvent[]): Map<string, YearEvent[]> {
  const groups = new Map<string, YearEvent[]>()
  for (const event of events) {
    const group = groups.get(event.source)
    if (group) group.push(event)
    else groups.set(event.source, [event])
  }
  return groups
}

/** Rule 5: within a source, (points, comments) is compared as a pair; null comments count as 0. */
function comparePointsAndComments(a: YearEvent, b: YearEvent): number {
  return a.points - b.points || (a.comments ?? 0) - (b.comments ?? 0)
}

function scoreByPointsAndComments(events: readonly YearEvent[]): Scored[] {
  const percentiles = midpointPercentiles(events, comparePointsAndComments)
  return events.map((event) => ({
    event,
    key: saveKey(event.source, event.sourceId),
    percentile: percentiles.get(event) ?? 0,
  }))
}

/** Rule 3: points descending, comments descending, sourceId ascending in code-unit order. */
function topOfColumn(scored: readonly Scored[]): Scored[] {
  return [...scored]
    .sort(
      (a, b) =>
        comparePointsAndComments(b.event, a.event) || compareCodeUnits(a.event.sourceId, b.event.sourceId),
    )
    .slice(0, COLUMN_LENGTH)
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
    const cohort = verifiedOnly(bySource.get(`hype:${provider}`) ?? [])
    if (cohort.length === 0) continue
    if (!isRankedProvider(provider) || cohort.length < COHORT_MINIMUM) {
      excluded.push({ provider, eligibleEvents: cohort.length })
      continue
    }
    const percentiles = midpointPercentiles(cohort, (a, b) => a.points - b.points)
    for (const event of cohort) {
      const key = saveKey(event.source, event.sourceId)
      scored.push({ event, key, percentile: percentiles.get(event) ?? 0 })
    }
  }
  scored.sort(
    (a, b) =>
      b.percentile - a.percentile ||
      compareCodeUnits(a.event.source, b.event.source) ||
      compareCodeUnits(a.event.sourceId, b.event.sourceId),
  )
  return { top: scored.slice(0, COLUMN_LENGTH), excluded }
}

/**
 * Rule 5: walk all news events in percentile order and skip an exact URL or title already taken. An event whose
 * title is unknown is noted in `missing` and stands in for itself, so that one pass finds a whole batch to ask for.
 */
function walkPopular(
  news: readonly Scored[],
  titles: (event: YearEvent, key: string) => VerifiedTitle | null,
  missing: Map<string, YearEvent>,
): RankedEvent[] {
  const order = [...news].sort(
    (a, b) =>
      b.percentile - a.percentile ||
      (b.event.comments ?? 0) - (a.event.comments ?? 0) ||
      compareCodeUnits(a.key, b.key),
  )
  const urls = new Set<string>()
  const taken = new Set<string>()
  const popular: RankedEvent[] = []
  let awaited = 0
  for (const { event, key, percentile } of order) {
    if (popular.length + awaited >= COLUMN_LENGTH) break
    if (event.url !== null && urls.has(event.url)) continue
    const title = titles(event, key)
    if (title === null) {
      missing.set(key, event)
      awaited += 1
    } else {
      if (taken.has(title.title)) continue
      taken.add(title.title)
      popular.push({ event, key, provider: null, rank: popular.length + 1, percentile, title })
    }
    if (event.url !== null) urls.add(event.url)
  }
  return popular
}

/** Code-unit order, the same on every machine and in every locale. */
export function compareCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
