import { addDays, formatInstant, startOfDay } from '../../time.ts'
import type { Day, Instant } from '../../time.ts'
import { latestAt } from '../chain.ts'
import type { ProvedLedger, TimelineItem } from '../chain.ts'
import { lastCompleteDay } from '../ledger.ts'
import type { GapReason } from '../ledger.ts'
import type { YearItem } from '../schema.ts'

/** The history by as-of days: its timeline stops, and the stop that a time selects (docs/page.md). */

/** Days without a publication. */
export interface GapStop {
  kind: 'gap'
  firstDay: Day
  lastDay: Day
  /** The gap entry of the ledger; null when no entry covers these days, as in an imported archive. */
  recorded: { reason: GapReason; attempts: number; seq: number } | null
}

/** A stop of the timeline: a publication or a gap. */
export type TimelineStop = { kind: 'publication'; item: TimelineItem } | GapStop

/** The state of the history at a time. */
export interface Moment {
  at: Instant
  /** Last complete day at this time. */
  dueDay: Day
  /** The publication that the history selects; null before the first one. */
  selected: TimelineItem | null
  /** The due day: published by then, published later, a gap, or still open. */
  due:
    { is: 'published' } | { is: 'later'; item: TimelineItem } | { is: 'gap'; gap: GapStop } | { is: 'open' }
  /** Index of the stop; -1 before the first. */
  stopIndex: number
}

/**
 * Every selectable publication and every gap, by as-of day. Days between two publications without an entry form one
 * gap.
 */
export function timelineStops({ entries, timeline }: ProvedLedger): TimelineStop[] {
  const published = new Map<Day, TimelineItem[]>()
  for (const item of timeline) {
    const { asOfDay } = item.manifest
    published.set(asOfDay, [...(published.get(asOfDay) ?? []), item])
  }
  const gaps = new Map<Day, GapStop>()
  for (const entry of entries) {
    if (entry.kind !== 'gap' || published.has(entry.asOfDay)) continue
    const { asOfDay, reason, attempts, seq } = entry
    const recorded = { reason, attempts, seq }
    gaps.set(asOfDay, { kind: 'gap', firstDay: asOfDay, lastDay: asOfDay, recorded })
  }
  const selectable = new Set(selectableItems(timeline))
  const days = [...new Set([...published.keys(), ...gaps.keys()])].sort()
  return days.flatMap((day, index): TimelineStop[] => {
    const previous = days[index - 1]
    const firstDay = previous === undefined ? day : addDays(previous, 1)
    const unrecordedGap: TimelineStop[] =
      firstDay < day ? [{ kind: 'gap', firstDay, lastDay: addDays(day, -1), recorded: null }] : []
    const gap = gaps.get(day)
    if (gap) return [...unrecordedGap, gap]
    const items = (published.get(day) ?? []).filter((item) => selectable.has(item))
    return [...unrecordedGap, ...items.map((item) => ({ kind: 'publication' as const, item }))]
  })
}

/** Returns the publications of a timeline that their own time selects, in order: those without a later one of the same time. */
export function selectableItems(timeline: readonly TimelineItem[]): TimelineItem[] {
  return timeline.filter(
    ({ manifest }, index) => timeline[index + 1]?.manifest.publishedAt !== manifest.publishedAt,
  )
}

/** The state of the history at a time. A publication's own time always selects that publication. */
export function momentAt(
  timeline: readonly TimelineItem[],
  stops: readonly TimelineStop[],
  at: Instant,
): Moment {
  const dueDay = lastCompleteDay(at)
  const selected = latestAt(timeline, at)
  const due = dueAt(stops, selected, dueDay)
  const isExact = selected?.manifest.publishedAt === at
  const stopIndex = stops.findLastIndex((stop) =>
    due.is === 'gap' && !isExact ? stop === due.gap : stop.kind === 'publication' && stop.item === selected,
  )
  return { at, dueDay, selected, due, stopIndex }
}

function dueAt(stops: readonly TimelineStop[], selected: TimelineItem | null, dueDay: Day): Moment['due'] {
  if (selected && selected.manifest.asOfDay >= dueDay) return { is: 'published' }
  const stop = stops.find((one) => firstDayOf(one) <= dueDay && dueDay <= lastDayOf(one))
  if (!stop) return { is: 'open' }
  return stop.kind === 'gap' ? { is: 'gap', gap: stop } : { is: 'later', item: stop.item }
}

/**
 * The `at` value of a stop: a publication's own time, or the end of the day on which a gap's publication was due,
 * formatted for the history.
 */
export function atOfStop(stop: TimelineStop, now: Instant): string {
  return stop.kind === 'publication'
    ? formatInstant(stop.item.manifest.publishedAt)
    : atOfDueDay(stop.lastDay, now)
}

/** The `at` value of a day: the time of its last publication, else the end of the following day. */
export function atOfDay(stops: readonly TimelineStop[], day: Day, now: Instant): string {
  const stop = stops.findLast((one) => one.kind === 'publication' && firstDayOf(one) === day)
  return stop ? atOfStop(stop, now) : atOfDueDay(day, now)
}

export function firstDayOf(stop: TimelineStop): Day {
  return stop.kind === 'gap' ? stop.firstDay : stop.item.manifest.asOfDay
}

export function lastDayOf(stop: TimelineStop): Day {
  return stop.kind === 'gap' ? stop.lastDay : stop.item.manifest.asOfDay
}

function atOfDueDay(day: Day, now: Instant): string {
  const end = startOfDay(addDays(day, 2)) - 1
  return formatInstant(Math.min(end, now))
}

/** Comparison of a list in two Years (docs/page.md). */

interface RankedEntry {
  key: string
  rank: number
}

/** An item of both lists. */
interface CommonEntry<T> {
  before: T
  after: T
  /** Ranks it rose; negative when it fell. */
  rose: number
}

export interface Comparison<T> {
  /** Items of the later list alone, by rank. */
  entered: T[]
  /** Items of the earlier list alone, by the rank they had. */
  left: T[]
  /** Items of both whose rank differs, by the later rank. */
  moved: CommonEntry<T>[]
  /** Items of both at the same rank. */
  stayed: CommonEntry<T>[]
}

/** Compares two lists by save key. */
export function compareLists<T extends RankedEntry>(
  earlier: readonly T[],
  later: readonly T[],
): Comparison<T> {
  const earlierByKey = new Map(earlier.map((item) => [item.key, item]))
  const laterKeys = new Set(later.map(({ key }) => key))
  const kept = later.flatMap((item) => {
    const old = earlierByKey.get(item.key)
    return old ? [{ before: old, after: item, rose: old.rank - item.rank }] : []
  })
  return {
    entered: later.filter(({ key }) => !earlierByKey.has(key)),
    left: earlier.filter(({ key }) => !laterKeys.has(key)),
    moved: kept.filter(({ rose }) => rose !== 0),
    stayed: kept.filter(({ rose }) => rose === 0),
  }
}

export interface YearPosition {
  /** Rank in the column of the item's source; null for an item that only `popular` lists. */
  rank: number | null
  /** Rank in `popular`; null outside of it. */
  popular: number | null
  points: number
}

const OWN_COLUMNS = ['hackerNews', 'lobsters', 'lessWrong', 'hypeReplicate', 'midjourney'] as const

/** The ranks of every item of a Year, by save key. */
export function positionsOf(
  feed: Readonly<
    Record<(typeof OWN_COLUMNS)[number] | 'popular', readonly Pick<YearItem, 'key' | 'rank' | 'points'>[]>
  >,
): Map<string, YearPosition> {
  const positions = new Map<string, YearPosition>()
  for (const name of OWN_COLUMNS) {
    for (const { key, rank, points } of feed[name]) positions.set(key, { rank, popular: null, points })
  }
  for (const { key, rank, points } of feed.popular) {
    positions.set(key, { rank: null, points, ...positions.get(key), popular: rank })
  }
  return positions
}
