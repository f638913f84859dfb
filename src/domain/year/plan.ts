import { addDays, daysBetween, formatInstant, startOfDay, DAY_MS } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { ProvedLedger, TimelineItem } from './chain.ts'
import type { Attempt, GapReason, LedgerEntry, Manifest } from './ledger.ts'

/** Attempts per as-of day, over all runs and machines (docs/publishing.md). */
const ATTEMPTS_PER_DAY = 3

/**
 * Milliseconds after `publishedAt` within which a commit must succeed; a later one is sealed again
 * (docs/publishing.md).
 */
export const COMMIT_WITHIN_MS = 10_000

export type PublicationPlan =
  | { do: 'publish'; attempt: number }
  | { do: 'record-gap'; attempts: number }
  | { do: 'nothing'; because: 'already-published'; manifest: Manifest }
  | { do: 'nothing'; because: 'gap'; reason: GapReason; attempts: number }

/**
 * Plans the next step for an as-of day.
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
 * The complete days before `asOfDay` that must become gaps: all since the last day with an entry or an imported
 * publication, or, without one, since the first counted attempt (docs/decisions/0006-gaps-for-missed-days.md).
 */
export function missedDays(
  { entries, timeline }: Pick<ProvedLedger, 'entries' | 'timeline'>,
  firstAttemptDay: Day | null,
  asOfDay: Day,
): Day[] {
  const days = [...entries.map(dayOfEntry), ...timeline.map(({ manifest }) => manifest.asOfDay)]
  const lastDay = days
    .filter((day) => day !== null)
    .toSorted()
    .at(-1)
  const first = lastDay === undefined ? firstAttemptDay : addDays(lastDay, 1)
  return first === null ? [] : daysBetween(first, addDays(asOfDay, -1))
}

/**
 * The time of an entry or publication that is not before `now`; null when the clock is plausible. Publishing at an
 * older time would change past selections (docs/publishing.md).
 */
export function laterTimeInLedger(
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

/** Most missed days that a run records without a confirmation of their number (docs/publishing.md). */
const UNCONFIRMED_GAPS_MAX = 7

/** Most days from the newest news signal to an as-of day that is published without a confirmation. */
const STALE_AFTER_DAYS = 7

/** What a run is about to make permanent. */
export interface GapFacts {
  asOfDay: Day
  /** Days that would become gaps. */
  missed: readonly Day[]
  /** Day of the newest news signal up to the as-of day; null without one. */
  newestNews: Day | null
  now: Instant
  /** Time of the last entry of the ledger; null without one. */
  lastEntryAt: Instant | null
}

/**
 * The reason why a run must not record its missed days: they are many or the data are old, as with a wrong clock, and
 * their number is not confirmed. Null when it may.
 *
 * @param confirmed the number that the operator confirms; null for none
 */
export function unconfirmedGaps(facts: GapFacts, confirmed: number | null): string | null {
  const { missed } = facts
  if (confirmed === missed.length) return null
  const doubt = gapDoubt(facts)
  if (doubt === null && confirmed === null) return null
  const wrongNumber =
    confirmed === null ? '' : `--record-gaps ${confirmed} is not the number of missed days; `
  if (doubt === null)
    return `${wrongNumber}this run would record ${describeMissed(missed)}; give ${missed.length}, or leave the flag out`
  const number = missed.length === 0 ? 'since no day was missed' : 'the number of missed days'
  return `${wrongNumber}${doubt}, or confirm with --record-gaps ${missed.length}, ${number}`
}

/** The reason to doubt that the missed days are missed, with the remedy; null without one. */
function gapDoubt({ asOfDay, missed, newestNews, now, lastEntryAt }: GapFacts): string | null {
  const last =
    lastEntryAt === null
      ? 'the ledger has no entry'
      : `the last entry of the ledger is of ${formatInstant(lastEntryAt)}`
  const times = `the clock says ${formatInstant(now)}, and ${last}; correct the clock if it is wrong`
  if (missed.length > UNCONFIRMED_GAPS_MAX)
    return `${describeMissed(missed)} would become permanent gaps: ${times}`
  const age = newestNews === null ? 0 : (startOfDay(asOfDay) - startOfDay(newestNews)) / DAY_MS
  if (age <= STALE_AFTER_DAYS) return null
  const stale = `the newest news signal is of ${newestNews}, ${age} days before ${asOfDay}, the day to publish`
  return `${stale}: ${times}, import or collect newer signals`
}

function describeMissed(missed: readonly Day[]): string {
  const [first, last] = [missed[0], missed.at(-1)]
  const span = first === last ? first : `${first} to ${last}`
  if (first === undefined) return 'no missed days'
  return `${missed.length === 1 ? '1 missed day' : `${missed.length} missed days`} (${span})`
}
