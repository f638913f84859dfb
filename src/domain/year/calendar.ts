import { addDays, formatInstant, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import { latestAt } from './chain.ts'
import type { ProvedLedger, TimelineItem } from './chain.ts'
import { lastCompleteDay } from './ledger.ts'
import type { GapReason } from './ledger.ts'
import type { YearItem } from './schema.ts'

/** The history by as-of days: where it can be stopped at, and what a time falls on (docs/page.md). */

/** Days without a publication. */
export interface GapStop {
  kind: 'gap'
  firstDay: Day
  lastDay: Day
  /** What the ledger recorded; null where it says nothing of these days, as in an imported archive. */
  recorded: { reason: GapReason; attempts: number; seq: number } | null
}

/** A place to stop at on the way through the history. */
export type TimelineStop = { kind: 'publication'; item: TimelineItem } | GapStop

/** What a time falls on. */
export interface Moment {
  at: Instant
  /** The last day that was complete at this time. */
  dueDay: Day
  /** What the history answers with; null before the first publication. */
  selected: TimelineItem | null
  /** What became of the due day: it was published by then, only later, never, or the ledger says nothing yet. */
  due:
    { is: 'published' } | { is: 'later'; item: TimelineItem } | { is: 'gap'; gap: GapStop } | { is: 'open' }
  /** Place among the stops; -1 before the first. */
  place: number
}

/**
 * Every publication that can be selected and every gap, by as-of day. Days between two publications that no entry names
 * are a gap as well, one stop together.
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
  const selectable = new Set(timeline.filter((item, index) => !isHidden(item, timeline[index + 1])))
  const days = [...new Set([...published.keys(), ...gaps.keys()])].sort()
  return days.flatMap((day, index): TimelineStop[] => {
    const previous = days[index - 1]
    const firstDay = previous === undefined ? day : addDays(previous, 1)
    const hole: TimelineStop[] =
      firstDay < day ? [{ kind: 'gap', firstDay, lastDay: addDays(day, -1), recorded: null }] : []
    const gap = gaps.get(day)
    if (gap) return [...hole, gap]
    const items = (published.get(day) ?? []).filter((item) => selectable.has(item))
    return [...hole, ...items.map((item) => ({ kind: 'publication' as const, item }))]
  })
}

/** What a time falls on. A publication's own time always stops at that publication. */
export function momentAt(
  timeline: readonly TimelineItem[],
  stops: readonly TimelineStop[],
  at: Instant,
): Moment {
  const dueDay = lastCompleteDay(at)
  const selected = latestAt(timeline, at)
  const due = dueAt(stops, selected, dueDay)
  const isExact = selected?.manifest.publishedAt === at
  const place = stops.findLastIndex((stop) =>
    due.is === 'gap' && !isExact ? stop === due.gap : stop.kind === 'publication' && stop.item === selected,
  )
  return { at, dueDay, selected, due, place }
}

function dueAt(stops: readonly TimelineStop[], selected: TimelineItem | null, dueDay: Day): Moment['due'] {
  if (selected && selected.manifest.asOfDay >= dueDay) return { is: 'published' }
  const stop = stops.find((one) => firstDayOf(one) <= dueDay && dueDay <= lastDayOf(one))
  if (!stop) return { is: 'open' }
  return stop.kind === 'gap' ? { is: 'gap', gap: stop } : { is: 'later', item: stop.item }
}

/**
 * The `at` that leads to a stop: a publication's own time, or the end of the day on which a gap's publication was due,
 * as text of the form that the history takes.
 */
export function atOfStop(stop: TimelineStop, now: Instant): string {
  return stop.kind === 'publication'
    ? formatInstant(stop.item.manifest.publishedAt)
    : atOfDueDay(stop.lastDay, now)
}

/** The `at` that leads to a day: to its last publication where it has one, else to the end of the day after it. */
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

/** Of several publications of one time only the last is ever selected. */
function isHidden(item: TimelineItem, next: TimelineItem | undefined): boolean {
  return next !== undefined && next.manifest.publishedAt === item.manifest.publishedAt
}

/** One list of a Year held against the same list of another (docs/page.md). */

/** What an item needs to be compared. */
interface Ranked {
  key: string
  rank: number
}

/** An item that stands in both lists. */
interface Kept<T> {
  before: T
  after: T
  /** How many ranks it rose; below zero, fell. */
  rose: number
}

export interface Comparison<T> {
  /** Items of the later list alone, by rank. */
  entered: T[]
  /** Items of the earlier list alone, by the rank they had. */
  left: T[]
  /** Items of both whose rank differs, by the later rank. */
  moved: Kept<T>[]
  /** Items of both at the same rank. */
  stayed: Kept<T>[]
}

/** What became of a list; items are known by their save keys. */
export function compareLists<T extends Ranked>(earlier: readonly T[], later: readonly T[]): Comparison<T> {
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

/** Where an item stands in one Year. */
export interface YearStanding {
  /** Rank in the column of its own source; null when it stands in `popular` alone. */
  rank: number | null
  /** Rank in `popular`; null outside of it. */
  popular: number | null
  points: number
}

const OWN_COLUMNS = ['hackerNews', 'lobsters', 'lessWrong', 'hypeReplicate', 'midjourney'] as const

/** The standing of every item of a Year, by save key. */
export function standingsOf(
  feed: Readonly<
    Record<(typeof OWN_COLUMNS)[number] | 'popular', readonly Pick<YearItem, 'key' | 'rank' | 'points'>[]>
  >,
): Map<string, YearStanding> {
  const standings = new Map<string, YearStanding>()
  for (const name of OWN_COLUMNS) {
    for (const { key, rank, points } of feed[name]) standings.set(key, { rank, popular: null, points })
  }
  for (const { key, rank, points } of feed.popular) {
    standings.set(key, { rank: null, points, ...standings.get(key), popular: rank })
  }
  return standings
}
