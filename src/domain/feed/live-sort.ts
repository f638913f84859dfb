import { z } from 'zod'
import { parseQuery } from '../query.ts'
import { DAY_MS } from '../time.ts'

/** The live periods (docs/ranking.md). The Year is not one of them: it is archived and has its own API. */
export const LIVE_SORTS = ['trending', 'day', 'week', 'month'] as const
export type LiveSort = (typeof LIVE_SORTS)[number]

/** Length of each period, counted back from the run's instant. `trending` decays by its formula within a month. */
export const PERIOD_MS: Readonly<Record<LiveSort, number>> = {
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
  const isYear = params.getAll('sort').join() === 'year'
  const sort: LiveRefusal = isYear ? 'year_is_archived' : 'invalid_sort'
  return parseQuery(liveQuery, params, { sort }).sort
}

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
