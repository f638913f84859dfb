import { DAY_MS, addDays, startOfDay } from '../../time.ts'
import type { Day } from '../../time.ts'
import { firstDayOf, lastDayOf } from './calendar.ts'
import type { TimelineStop } from './calendar.ts'

/** Ranks of one list over publications of the Year: stays, turnover and bump chart (docs/page.md). */

/** Ranks by save key. */
export type Ranks = ReadonlyMap<string, number>

/** A publication with its ranks; null for an older layout. */
export interface RankedYear {
  asOfDay: Day
  ranks: Ranks | null
}

/** The unbroken presence of an item up to a publication. Only a publication without the item ends it, a gap does not. */
export interface Stay {
  /** Best rank. */
  peak: number
  /** As-of day of its first publication. */
  entered: Day
  /** Days from {@link entered} to the last publication, both included. */
  days: number
  /**
   * The publication before {@link entered}: `absent` if it does not have the item, `none` if the history begins with that
   * day, `unknown` if it cannot be read, so that the item may have stayed longer.
   */
  before: 'absent' | 'none' | 'unknown'
}

/**
 * The stay of an item of the last publication; null if that does not have it.
 *
 * @param years publications by as-of day
 * @param isStart true if the first of them is the first of the history
 */
export function stayOf(key: string, years: readonly RankedYear[], isStart: boolean): Stay | null {
  if (!years.at(-1)?.ranks?.has(key)) return null
  const absentAt = years.findLastIndex(({ ranks }) => !ranks?.has(key))
  const present = years.slice(absentAt + 1)
  const entered = present[0]?.asOfDay ?? ''
  return {
    peak: Math.min(...present.map(({ ranks }) => ranks?.get(key) ?? Infinity)),
    entered,
    days: dayCount(entered, present.at(-1)?.asOfDay ?? entered),
    before: beforeOf(years, absentAt, isStart),
  }
}

function beforeOf(years: readonly RankedYear[], absentAt: number, isStart: boolean): Stay['before'] {
  if (absentAt === -1) return isStart ? 'none' : 'unknown'
  return years[absentAt]?.ranks === null ? 'unknown' : 'absent'
}

function dayCount(first: Day, last: Day): number {
  return Math.round((startOfDay(last) - startOfDay(first)) / DAY_MS) + 1
}

/** Number of items that the later list has and the earlier one lacks; null if either is unknown. */
export function turnoverBetween(earlier: Ranks | null | undefined, later: Ranks | null): number | null {
  if (!earlier || !later) return null
  return [...later.keys()].filter((key) => !earlier.has(key)).length
}

/** A column of a bump chart: a publication, or the days of a gap. */
export interface BumpColumn {
  firstDay: Day
  lastDay: Day
  /** null for a gap and an older layout. */
  ranks: Ranks | null
  isGap: boolean
}

/** A line of a bump chart: its rank in each column, null outside of the shown ranks. */
export interface BumpLine {
  key: string
  ranks: readonly (number | null)[]
}

/** The columns of a bump chart. @param ranksOf ranks of a publication by its digest */
export function bumpColumns(
  stops: readonly TimelineStop[],
  ranksOf: (sha256: string) => Ranks | null,
): BumpColumn[] {
  return stops.map((stop) => ({
    firstDay: firstDayOf(stop),
    lastDay: lastDayOf(stop),
    isGap: stop.kind === 'gap',
    ranks: stop.kind === 'gap' ? null : ranksOf(stop.item.manifest.sha256),
  }))
}

/** The lines of the first `top` items of the last publication, in its order. */
export function bumpLines(columns: readonly BumpColumn[], top: number): BumpLine[] {
  const last = columns.findLast(({ isGap }) => !isGap)?.ranks ?? new Map<string, number>()
  return [...last]
    .filter(([, rank]) => rank <= top)
    .sort(([, a], [, b]) => a - b)
    .map(([key]) => ({
      key,
      ranks: columns.map(({ ranks }) => {
        const rank = ranks?.get(key)
        return rank !== undefined && rank <= top ? rank : null
      }),
    }))
}

/** The stops up to `index` with at most `count` publications; a gap before the first of them is left out. */
export function lastStops(stops: readonly TimelineStop[], index: number, count: number): TimelineStop[] {
  const until = stops.slice(0, index + 1)
  const publications = until.flatMap((stop, at) => (stop.kind === 'publication' ? [at] : []))
  return until.slice(publications.at(-count) ?? publications[0] ?? until.length)
}

/** Days of a period of the timeline. */
const TIMELINE_DAYS = 90

/** A period of the timeline: its days, and the stops in it. */
export interface TimelinePeriod {
  firstDay: Day
  lastDay: Day
  stops: readonly TimelineStop[]
  /** Last stop before it, and first stop after it. */
  before: TimelineStop | undefined
  after: TimelineStop | undefined
}

/**
 * The period of the timeline with a stop. Periods of {@link TIMELINE_DAYS} days are counted back from the newest day, so
 * that neighbouring days have the same one; the first one may be shorter.
 *
 * @param stops at least one
 * @param index of the stop; -1 for the first period
 */
export function periodWith(stops: readonly TimelineStop[], index: number): TimelinePeriod {
  const [first, newest, at] = [stops[0], stops.at(-1), stops[Math.max(0, index)]]
  if (!first || !newest || !at) throw new RangeError('a timeline has at least one stop')
  const newestDay = lastDayOf(newest)
  const age = Math.floor((dayCount(lastDayOf(at), newestDay) - 1) / TIMELINE_DAYS)
  const lastDay = addDays(newestDay, -age * TIMELINE_DAYS)
  const earliest = addDays(lastDay, 1 - TIMELINE_DAYS)
  const firstDay = firstDayOf(first) > earliest ? firstDayOf(first) : earliest
  const isInside = (stop: TimelineStop): boolean => lastDayOf(stop) >= firstDay && firstDayOf(stop) <= lastDay
  return {
    firstDay,
    lastDay,
    stops: stops.filter(isInside),
    before: stops.findLast((stop) => lastDayOf(stop) < firstDay),
    after: stops.find((stop) => firstDayOf(stop) > lastDay),
  }
}
