import { z } from 'zod'
import { DAY_MS } from '../time.ts'
import type { Instant } from '../time.ts'
import { Refusal } from '../refusal.ts'
import { parseQuery } from '../wire-format.ts'
import {
  PERCENTILE_ORDERS,
  compareInPopular,
  comparePoints,
  comparePointsAndComments,
  groupBySource,
  mapLists,
  rankLists,
  scoreAmong,
} from './columns.ts'
import type { CompareEvents, FeedEvent, ListOrders, RankedLists, Scored } from './columns.ts'
import { HYPE_SOURCES } from './source.ts'

/** The live periods (docs/ranking.md). The Year is not one of them: it is archived and has its own API. */
export const LIVE_SORTS = ['trending', 'day', 'week', 'month'] as const
export type LiveSort = (typeof LIVE_SORTS)[number]

/** Length of each period, counted back from the run's instant. `trending` decays by its formula within a month. */
const PERIOD_MS: Readonly<Record<LiveSort, number>> = {
  trending: 30 * DAY_MS,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
}

/** The longest period: older events are never read. */
export const LONGEST_PERIOD_MS = Math.max(...Object.values(PERIOD_MS))

export const DEFAULT_SORT: LiveSort = 'trending'

/** The query of the live feed and its subscriptions. */
export const liveQuery = z.object({
  sort: z
    .enum(LIVE_SORTS)
    .meta({
      description: 'The live period. Default: `trending`.',
      example: 'day',
      default: DEFAULT_SORT,
    })
    .optional()
    .transform((sort) => sort ?? DEFAULT_SORT),
})

/**
 * Parses the `sort` of a request (docs/api.md).
 *
 * @throws Refusal `year_is_archived` for the Year, `invalid_sort` for anything else unknown or given twice
 */
export function parseLiveSort(params: URLSearchParams): LiveSort {
  if (params.getAll('sort').join() === 'year') {
    const members = { history: HISTORY_OF_YEAR, parameter: 'sort', value: 'year' }
    throw new Refusal<LiveRefusal>('year_is_archived', undefined, { members })
  }
  return parseQuery(liveQuery, params, { sort: 'invalid_sort' satisfies LiveRefusal }).sort
}

/** Where the Year is served, which is not a live period. */
export const HISTORY_OF_YEAR = '/api/feed/history?sort=year'

/** Refusal codes of the live feed and its subscriptions (docs/api.md): the whole, closed list. */
export const LIVE_REFUSALS = [
  'invalid_sort',
  'year_is_archived',
  'invalid_rule',
  'busy',
  'no_snapshot',
  'method_not_allowed',
  'feed_storage_unavailable',
  'feed_snapshot_corrupt',
  'feed_lookup_failed',
] as const
export type LiveRefusal = (typeof LIVE_REFUSALS)[number]

/** An event with its rank in one list of a live period. */
export interface LiveEntry extends Scored {
  rank: number
  /** `agg_score`: comparable over all lists of one sort, and never growing down a list. */
  aggScore: number
}

/** The lists of one live period. */
export type RankedLive = RankedLists<LiveEntry>

/** The rule of a sort: comparison, weight and orders. */
interface Rule {
  /** Used everywhere except in hype cohorts, which compare points alone. */
  compare: CompareEvents
  weigh: (scored: Scored) => number
  /** Rounds a weight for publication. */
  round: (weight: number) => number
  orders: ListOrders<Weighted>
}

interface Weighted extends Scored {
  weight: number
}

/**
 * Ranks a live period (docs/ranking.md). The result depends on the events and the instant alone, not on their order.
 *
 * @param events at most one for each (source, sourceId); those outside the period are ignored
 * @param now the run's instant, at which the period ends, inclusive
 */
export function rankLive(sort: LiveSort, events: readonly FeedEvent[], now: Instant): RankedLive {
  const since = now - PERIOD_MS[sort]
  const bySource = groupBySource(
    events.filter(({ publishedAt }) => publishedAt >= since && publishedAt <= now),
  )
  const rule = sort === 'trending' ? trendingRule(now) : PERIOD_RULE
  const weighted = (source: string): Weighted[] => {
    const compare = HYPE_SOURCES.includes(source) ? comparePoints : rule.compare
    const scored = scoreAmong(bySource.get(source) ?? [], compare)
    return scored.map((each) => ({ ...each, weight: rule.weigh(each) }))
  }
  const lists = rankLists(weighted, HYPE_SOURCES, rule.orders, ({ event }) => event.title)
  return mapLists(lists, ({ weight, ...scored }, rank) => ({
    ...scored,
    rank,
    aggScore: rule.round(weight),
  }))
}

/** Day, week and month: the Year's orders over a shorter window. */
const PERIOD_RULE: Rule = {
  compare: comparePointsAndComments,
  weigh: ({ percentile }) => percentile,
  round: (weight) => Math.round(weight * 10_000) / 100,
  orders: PERCENTILE_ORDERS,
}

/** Significant digits of a published trend, which spans too many orders of magnitude for fixed decimals. */
const TREND_DIGITS = 6

/** Trending: points alone among the source's events of a month, decaying with age, in one order for every list. */
function trendingRule(now: Instant): Rule {
  const order = (a: Weighted, b: Weighted): number =>
    b.weight - a.weight || b.event.publishedAt - a.event.publishedAt || compareInPopular(a, b)
  return {
    compare: comparePoints,
    weigh: ({ percentile, event }) => trendOf(percentile, now - event.publishedAt),
    round: (weight) => Number(weight.toPrecision(TREND_DIGITS)),
    orders: { column: order, hype: order, popular: order },
  }
}

/** Time in which an event's trend halves (docs/ranking.md). */
const HALF_LIFE_MS = 6 * 60 * 60 * 1000

/**
 * The trend of an event (docs/ranking.md): `1 / (1 - p) * 2^(-age / 6 h)`. The first factor is the rarity of its
 * position in its source, without a unit, so that sources compare; the second halves it every six hours.
 *
 * @param percentile of the event's points in its source, in (0, 1)
 * @param ageMs milliseconds since its publication
 * @returns above 0
 */
export function trendOf(percentile: number, ageMs: number): number {
  return (1 / (1 - percentile)) * 2 ** (-ageMs / HALF_LIFE_MS)
}

/** The four rankings of a run, in the order of {@link LIVE_SORTS}. */
export type RankedPeriods = readonly (readonly [LiveSort, RankedLive])[]

/** Ranks every live period at one instant; see {@link rankLive}. */
export function rankLivePeriods(events: readonly FeedEvent[], now: Instant): RankedPeriods {
  return LIVE_SORTS.map((sort) => [sort, rankLive(sort, events, now)] as const)
}
