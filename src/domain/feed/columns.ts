import { compareCodeUnits } from '../order.ts'
import type { FeedEvent } from './event.ts'
import { midpointPercentiles } from './percentile.ts'
import { saveKey } from './source.ts'

/** What every ranking of the product is made of: the percentile inside a source, and orders over it (docs/ranking.md). */

/** Length of each column and of `popular`. */
export const COLUMN_LENGTH = 100

/** An event with its place among those it was compared with. */
export interface Scored {
  event: FeedEvent
  key: string
  /** Midpoint percentile, in (0, 1). */
  percentile: number
}

/** Below zero when the first event ranks lower; zero makes them equal. */
export type CompareEvents = (a: FeedEvent, b: FeedEvent) => number

export const comparePoints: CompareEvents = (a, b) => a.points - b.points

/** Points and comments are compared as a pair; unknown comments count as 0. */
export const comparePointsAndComments: CompareEvents = (a, b) =>
  comparePoints(a, b) || (a.comments ?? 0) - (b.comments ?? 0)

export function groupBySource(events: readonly FeedEvent[]): Map<string, FeedEvent[]> {
  const groups = new Map<string, FeedEvent[]>()
  for (const event of events) {
    const group = groups.get(event.source)
    if (group) group.push(event)
    else groups.set(event.source, [event])
  }
  return groups
}

/** Every event with its percentile among all of them. */
export function scoreAmong(events: readonly FeedEvent[], compare: CompareEvents): Scored[] {
  const percentiles = midpointPercentiles(events, compare)
  return events.map((event) => ({
    event,
    key: saveKey(event.source, event.sourceId),
    percentile: percentiles.get(event) ?? 0,
  }))
}

/** The order of a column: points descending, comments descending, source id ascending in code-unit order. */
export function compareInColumn(a: Scored, b: Scored): number {
  return comparePointsAndComments(b.event, a.event) || compareCodeUnits(a.event.sourceId, b.event.sourceId)
}

/** The order over hype cohorts: percentile descending, then source and source id ascending. */
export function compareInHype(a: Scored, b: Scored): number {
  return (
    b.percentile - a.percentile ||
    compareCodeUnits(a.event.source, b.event.source) ||
    compareCodeUnits(a.event.sourceId, b.event.sourceId)
  )
}

/** The order of `popular`: percentile descending, comments descending, save key ascending. */
export function compareInPopular(a: Scored, b: Scored): number {
  return (
    b.percentile - a.percentile ||
    (b.event.comments ?? 0) - (a.event.comments ?? 0) ||
    compareCodeUnits(a.key, b.key)
  )
}

/** The first events of a column in the given order. */
export function topOf<T extends Scored>(scored: readonly T[], compare: (a: T, b: T) => number): T[] {
  return [...scored].sort(compare).slice(0, COLUMN_LENGTH)
}

/**
 * Walks an order and skips an event whose exact URL or exact title was already taken, until a column is full.
 *
 * @param titleOf the title that is compared; null while it is unknown, which makes it like no other
 */
export function takeDistinct<T extends Scored>(
  order: readonly T[],
  titleOf: (scored: T) => string | null,
): T[] {
  const urls = new Set<string>()
  const titles = new Set<string>()
  const taken: T[] = []
  for (const scored of order) {
    if (taken.length >= COLUMN_LENGTH) break
    const { url } = scored.event
    if (url !== null && urls.has(url)) continue
    const title = titleOf(scored)
    if (title !== null && titles.has(title)) continue
    if (url !== null) urls.add(url)
    if (title !== null) titles.add(title)
    taken.push(scored)
  }
  return taken
}
