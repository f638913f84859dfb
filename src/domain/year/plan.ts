import { addDays, daysBetween } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { Attempt, GapReason, LedgerEntry, Manifest } from './ledger.ts'
import type { ProvedLedger, TimelineItem } from './chain.ts'

/** Attempts an as-of day has, over all runs and machines (docs/publishing.md). */
export const ATTEMPTS_PER_DAY = 3

/** A commit this much later than its `publishedAt` is abandoned and sealed anew (docs/publishing.md). */
export const COMMIT_WITHIN_MS = 10_000

/** How long a publisher's lease lasts without renewal (docs/publishing.md). */
export const LEASE_MS = 600_000

export type PublicationPlan =
  | { do: 'publish'; attempt: number }
  | { do: 'record-gap'; attempts: number }
  | { do: 'nothing'; because: 'already-published'; manifest: Manifest }
  | { do: 'nothing'; because: 'gap'; reason: GapReason; attempts: number }

/**
 * What to do for an as-of day.
 *
 * @param entries the proved versioned ledger
 * @param attempts the day's counted attempts
 */
export function planPublication(
  asOfDay: Day,
  entries: readonly LedgerEntry[],
  attempts: readonly Attempt[],
): PublicationPlan {
  for (const entry of entries) {
    if (entry.kind === 'publication' && entry.manifest.asOfDay === asOfDay) {
      return { do: 'nothing', because: 'already-published', manifest: entry.manifest }
    }
    if (entry.kind === 'gap' && entry.asOfDay === asOfDay) {
      return { do: 'nothing', because: 'gap', reason: entry.reason, attempts: entry.attempts }
    }
  }
  if (attempts.length >= ATTEMPTS_PER_DAY) return { do: 'record-gap', attempts: attempts.length }
  return { do: 'publish', attempt: attempts.length + 1 }
}

/**
 * The finished days before `asOfDay` that have no entry and must become gaps: all since the last day that has an entry
 * or an imported publication, or, where there is none, since the first attempt ever counted
 * (docs/decisions/0006-which-days-become-gaps.md).
 */
export function missedDays(
  { entries, timeline }: Pick<ProvedLedger, 'entries' | 'timeline'>,
  firstAttemptDay: Day | null,
  asOfDay: Day,
): Day[] {
  const days = [...entries.map(dayOfEntry), ...timeline.map(({ manifest }) => manifest.asOfDay)]
  const lastDay = days.reduce(
    (last, day) => (last === null || (day !== null && day > last) ? day : last),
    null,
  )
  const first = lastDay === null ? firstAttemptDay : addDays(lastDay, 1)
  return first === null ? [] : daysBetween(first, addDays(asOfDay, -1))
}

/**
 * The time already given to an entry or publication that `now` does not follow, or null when the clock may be
 * trusted. Publishing at an older time would rewrite answers already given (docs/publishing.md).
 */
export function timeAhead(
  now: Instant,
  entries: readonly LedgerEntry[],
  timeline: readonly TimelineItem[],
): Instant | null {
  const published = timeline.at(-1)?.manifest.publishedAt
  if (published !== undefined && now <= published) return published
  const recorded = entries.at(-1)?.recordedAt
  return recorded !== undefined && now < recorded ? recorded : null
}

function dayOfEntry(entry: LedgerEntry): Day | null {
  if (entry.kind === 'legacy-seal') return null
  return entry.kind === 'gap' ? entry.asOfDay : entry.manifest.asOfDay
}
