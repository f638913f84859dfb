import { dayOf, formatInstant } from './time.ts'
import type { Instant } from './time.ts'

/** Comparison of this machine's clock with those of other machines. */

/** Most milliseconds by which two clocks may differ. Times further ahead are refused, and a wrong clock publishes nothing. */
export const CLOCK_TOLERANCE_MS = 300_000

/** Time for which a wrong clock that `collect` found stops publications. */
const CHECK_COUNTS_MS = 48 * 3_600_000

/** How far this clock is from those of the sources that a run of `collect` read. */
export interface ClockDifference {
  /** Milliseconds this clock is ahead of the median of the sources; negative if it is behind. */
  aheadMs: number
  /** Number of sources compared. */
  sources: number
}

/** The newest stored comparison. */
export interface ClockCheck extends ClockDifference {
  /** Time of the comparison by this clock. */
  checkedAt: Instant
}

/**
 * Returns how many milliseconds another clock is ahead. Requests and responses take time, so that a range of values
 * is possible; the one closest to 0 counts.
 *
 * @param date time in the response, cut to whole seconds
 */
export function skewOf(date: Instant, sentAt: Instant, receivedAt: Instant): number {
  if (date + 1_000 < sentAt) return date + 1_000 - sentAt
  return Math.max(0, date - receivedAt)
}

/** The median, which a few wrong values do not change; null without values. */
export function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]]
  return low === undefined || high === undefined ? null : (low + high) / 2
}

/**
 * Compares this clock with sources, each of which counts once.
 *
 * @param skews the skews of each source's responses; see {@link skewOf}
 * @returns null if no response has a time
 */
export function clockDifference(skews: readonly (readonly number[])[]): ClockDifference | null {
  const medians = skews.map(medianOf).filter((skew) => skew !== null)
  const skew = medianOf(medians)
  return skew === null ? null : { aheadMs: 0 - Math.round(skew), sources: medians.length }
}

export function isClockWrong<T extends ClockDifference>(clock: T | null): clock is T {
  return clock !== null && Math.abs(clock.aheadMs) > CLOCK_TOLERANCE_MS
}

/** Describes a difference, as in `31 minutes ahead of 3 sources`. */
export function describeDifference({ aheadMs, sources }: ClockDifference): string {
  const side = aheadMs > 0 ? 'ahead of' : 'behind'
  return `${describeDuration(Math.abs(aheadMs))} ${side} ${sources} ${sources === 1 ? 'source' : 'sources'}`
}

/** Says that a run started on another day than that of the sources; null if it did not. */
export function describeWrongDay(difference: ClockDifference | null, startedAt: Instant): string | null {
  if (!isClockWrong(difference)) return null
  const day = dayOf(startedAt)
  const isRight = dayOf(startedAt - difference.aheadMs) === day
  return isRight ? null : `the clock is ${describeDifference(difference)}, where ${day} is another day`
}

const UNITS = [
  ['days', 86_400_000],
  ['hours', 3_600_000],
  ['minutes', 60_000],
] as const

function describeDuration(ms: number): string {
  // The smaller unit while there are few of the larger one.
  const [unit, length] = UNITS.find(([, each]) => ms >= 2 * each) ?? ['seconds', 1_000]
  return `${Math.round(ms / length)} ${unit}`
}

/**
 * True while a comparison stops publications: it found this clock wrong, in the last 48 hours. The clock may have been
 * corrected since, so that the comparison counts by its own time and by that of the sources.
 */
export function stopsPublishing(check: ClockCheck | null, now: Instant): check is ClockCheck {
  if (!isClockWrong(check)) return false
  const times = [check.checkedAt, check.checkedAt - check.aheadMs]
  return times.some((time) => Math.abs(now - time) <= CHECK_COUNTS_MS)
}

/** What corrects a wrong clock. */
export const CLOCK_REMEDY = 'set the clock right and run dash collect; nothing is published before'

/** Describes a comparison that stops publications, and the remedy. */
export function describeClockProblem(check: ClockCheck): { detail: string; mend: string } {
  const at = formatInstant(check.checkedAt)
  return {
    detail: `the clock was ${describeDifference(check)} at the last dash collect, when it said ${at}`,
    mend: CLOCK_REMEDY,
  }
}
