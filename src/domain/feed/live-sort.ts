import { Refusal } from '../refusal.ts'
import { DAY_MS } from '../time.ts'
import type { LiveRefusal } from './live-refusals.ts'

/** The live periods (docs/ranking.md). The Year is none of them: it is archived, and has an interface of its own. */
export const LIVE_SORTS = ['trending', 'day', 'week', 'month'] as const
export type LiveSort = (typeof LIVE_SORTS)[number]

/** Length of each period, counted back from the run's instant. `trending` forgets by its formula, within a month. */
export const PERIOD_MS: Readonly<Record<LiveSort, number>> = {
  trending: 30 * DAY_MS,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
}

/** The longest period: no older event is ever read. */
export const LONGEST_PERIOD_MS = Math.max(...Object.values(PERIOD_MS))

/**
 * The sort a request asks for (docs/feed-api.md).
 *
 * @param params the query as parsed; without `sort` it is `trending`
 * @throws Refusal `year_is_archived` for the Year, `invalid_sort` for anything else unknown or given twice
 */
export function parseLiveSort(params: URLSearchParams): LiveSort {
  const given = params.getAll('sort')
  if (given.length === 0) return 'trending'
  const sort = LIVE_SORTS.find((known) => known === given[0])
  if (given.length > 1) throw new Refusal<LiveRefusal>('invalid_sort')
  if (given[0] === 'year') throw new Refusal<LiveRefusal>('year_is_archived')
  if (sort === undefined) throw new Refusal<LiveRefusal>('invalid_sort')
  return sort
}
