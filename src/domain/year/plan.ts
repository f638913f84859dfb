import { z } from 'zod'
import { listedEvents } from '../feed/columns.ts'
import {
  TITLE_MAX_LENGTH,
  TITLE_PROVENANCE_MAX_LENGTH,
  URL_MAX_BYTES,
  describeIssues,
  isTitleProvenanceTooLong,
  isTitleTooLong,
  isUrlTooLong,
  saveKey,
} from '../feed/source.ts'
import { byteLengthOf } from '../text.ts'
import { addDays, daysBetween } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { ProvedLedger, TimelineItem } from './chain.ts'
import { PublicationTooLarge, sealYear } from './envelope.ts'
import { TARGET_DAYS } from './ledger.ts'
import type { Attempt, GapReason, LedgerEntry, Manifest, YearWindow } from './ledger.ts'
import { COHORT_MINIMUM, coverageOf, rankYear } from './rank.ts'
import type { RankedEvent, RankedYear, SourceObservation, VerifiedTitle, YearEvent } from './rank.ts'

/** Attempts per as-of day, over all runs and machines (docs/publishing.md). */
export const ATTEMPTS_PER_DAY = 3

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

/** A window, read before the attempt to publish it. */
export interface FoundWindow {
  window: YearWindow
  events: readonly YearEvent[]
  observed: readonly SourceObservation[]
  /** Stored verified titles of the events without provenance, by save key. */
  titles: ReadonlyMap<string, VerifiedTitle>
}

/** Reason why a window must not be published. */
export interface WindowProblem {
  /** Rows named in the message. */
  rows: readonly YearEvent[]
  /** One line that ends with the remedy. */
  message: (daysOfRows: readonly (Day | null)[]) => string
}

/** Number of rows named when the publication is too large. */
const LARGEST_NAMED = 3

const SHORTEN_HINT = 'import shorter rows for the same days with dash import signals'
const CORRECT_HINT = 'import correct rows for the same days with dash import signals'

/**
 * The problem of a window that must not be published, or null: rows to be published exceed the limits of an event,
 * every list would be empty, or the result cannot be sealed. It is checked before an attempt is counted, because every
 * attempt would fail the same way. An unverified title counts with the row's own text, or with its stored title once a
 * source was read.
 *
 * @param now any instant of the run
 */
export function windowProblem(
  found: FoundWindow,
  { allowEmpty, now }: { allowEmpty: boolean; now: Instant },
): WindowProblem | null {
  const year = rankWithStoredTitles(found)
  const listed = listedEvents([year])
  if (listed.length === 0 && !allowEmpty) return { rows: [], message: () => emptyYear(found.observed) }
  return tooLongRows(listed) ?? sealingProblem(found, year, now)
}

/** Events whose title is fetched from their source unless it is stored. */
export function withoutProvenance(events: readonly YearEvent[]): YearEvent[] {
  return events.filter(({ titleProvenance }) => titleProvenance === null)
}

function rankWithStoredTitles({ events, titles: stored }: FoundWindow): RankedYear {
  const titles = new Map(stored)
  for (;;) {
    const outcome = rankYear(events, titles)
    if (outcome.do === 'ranked') return outcome.year
    for (const event of outcome.events) {
      const key = saveKey(event.source, event.sourceId)
      titles.set(key, expectedTitle(event, key))
    }
  }
}

/** The expected title before verification; the save key replaces a title that is too long or empty. */
function expectedTitle({ source, title }: YearEvent, key: string): VerifiedTitle {
  const isUsable = title.trim() !== '' && !isTitleTooLong(title)
  return { title: isUsable ? title : key, provenance: `${source}:not-verified-yet` }
}

function emptyYear(observed: readonly SourceObservation[]): string {
  const days = new Set(observed.flatMap((source) => source.days)).size
  const found = `the Year would be empty: no event qualifies for a list (a hype cohort needs ${COHORT_MINIMUM} events), ${days} of ${TARGET_DAYS} days have signals`
  return `${found}; first run dash import signals or dash collect (signals of today count from tomorrow), or publish with --allow-empty`
}

function tooLongRows(listed: readonly RankedEvent[]): WindowProblem | null {
  const problems = listed.flatMap(({ event }) => {
    const problem = lengthProblem(event)
    return problem === null ? [] : [{ event, problem }]
  })
  const [first] = problems
  if (!first) return null
  const count = `${problems.length} stored ${problems.length === 1 ? 'event is' : 'events are'} too long for a publication`
  return {
    rows: [first.event],
    message: ([day]) =>
      `${count}, first problem: ${rowName(first.event, day)}: ${first.problem}; ${SHORTEN_HINT}`,
  }
}

/** A title without provenance is not checked, because the source's own title replaces it. */
function lengthProblem({ title, url, titleProvenance }: YearEvent): string | null {
  if (url !== null && isUrlTooLong(url)) return `its URL has more than ${URL_MAX_BYTES} bytes`
  if (titleProvenance === null) return null
  if (isTitleTooLong(title)) return `its title has more than ${TITLE_MAX_LENGTH} characters`
  if (isTitleProvenanceTooLong(titleProvenance))
    return `its title provenance has more than ${TITLE_PROVENANCE_MAX_LENGTH} characters`
  return null
}

function sealingProblem(
  { window, observed }: Pick<FoundWindow, 'window' | 'observed'>,
  year: RankedYear,
  now: Instant,
): WindowProblem | null {
  try {
    sealYear(window, year, coverageOf(window, observed, year), now, now)
    return null
  } catch (error) {
    if (error instanceof PublicationTooLarge) return tooLarge(error.message, year)
    if (!(error instanceof z.ZodError)) throw error
    const issues = describeIssues(error)
    return {
      rows: [],
      message: () => `the stored rows are not valid for a publication: ${issues}; ${CORRECT_HINT}`,
    }
  }
}

function tooLarge(size: string, year: RankedYear): WindowProblem {
  const largest = listedEvents([year])
    .map(({ event, title }) => ({
      event,
      bytes: byteLengthOf(JSON.stringify([title.title, event.url, title.provenance])),
    }))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, LARGEST_NAMED)
  const named = (days: readonly (Day | null)[]): string =>
    largest.map(({ event, bytes }, index) => `${rowName(event, days[index])} (${bytes} bytes)`).join(', ')
  return {
    rows: largest.map(({ event }) => event),
    message: (days) => `${size}; largest rows: ${named(days)}; ${SHORTEN_HINT}`,
  }
}

function rowName({ source, sourceId }: YearEvent, day: Day | null | undefined): string {
  return `${source} ${sourceId}${day ? ` of ${day}` : ''}`
}
