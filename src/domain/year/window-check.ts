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
import type { Day, Instant } from '../time.ts'
import { PublicationTooLarge, yearSealer } from './envelope.ts'
import type { SealedYear } from './envelope.ts'
import type { YearWindow } from './ledger.ts'
import { coverageOf, isEmptyYear, rankYear } from './rank.ts'
import type { RankedEvent, RankedYear, SourceObservation, VerifiedTitle, YearEvent } from './rank.ts'

/** A window, read before the attempt to publish it. */
export interface FoundWindow {
  window: YearWindow
  events: readonly YearEvent[]
  observed: readonly SourceObservation[]
  /** Stored verified titles of the events without provenance, by save key. */
  titles: ReadonlyMap<string, VerifiedTitle>
}

/** Reason why stored rows must not be published. */
interface RowsProblem {
  /** Rows named in the message. */
  rows: readonly YearEvent[]
  /** One line that ends with the remedy. */
  message: (daysOfRows: readonly (Day | null)[]) => string
}

/** Number of rows named when the publication is too large. */
const LARGEST_NAMED = 3

const SHORTEN_HINT = 'import shorter rows for the same days with dash import signals'
const CORRECT_HINT = 'import correct rows for the same days with dash import signals'

/** A window as it would be published. */
export interface ExaminedWindow {
  /** True if every news list would be empty. */
  isEmpty: boolean
  excludedCohorts: RankedYear['excludedCohorts']
  /** Rows to be published exceed the limits of an event, or the result cannot be sealed; null without a problem. */
  problem: RowsProblem | null
  /** Seals the window for a publication time; null with a problem, and while a title is not verified. */
  seal: ((publishedAt: Instant) => SealedYear) | null
}

/**
 * Examines a window before an attempt is counted, because every attempt would fail the same way. An unverified title
 * counts with the row's own text, or with its stored title once a source was read.
 *
 * @param now when the window was read
 */
export function examineWindow(found: FoundWindow, now: Instant): ExaminedWindow {
  const { year, isVerified } = rankWithStoredTitles(found)
  const sealing = tooLongRows(listedEvents([year])) ?? prepareSeal(found, year, now)
  const examined = { isEmpty: isEmptyYear(year), excludedCohorts: year.excludedCohorts }
  return typeof sealing === 'function'
    ? { ...examined, problem: null, seal: isVerified ? sealing : null }
    : { ...examined, problem: sealing, seal: null }
}

/** Events whose title is fetched from their source unless it is stored. */
export function withoutProvenance(events: readonly YearEvent[]): YearEvent[] {
  return events.filter(({ titleProvenance }) => titleProvenance === null)
}

function rankWithStoredTitles({ events, titles: stored }: FoundWindow): {
  year: RankedYear
  /** False if an expected title stands for one that its source has not verified. */
  isVerified: boolean
} {
  const titles = new Map(stored)
  for (;;) {
    const outcome = rankYear(events, titles)
    if (outcome.do === 'ranked') return { year: outcome.year, isVerified: titles.size === stored.size }
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

function tooLongRows(listed: readonly RankedEvent[]): RowsProblem | null {
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

function prepareSeal(
  { window, observed }: FoundWindow,
  year: RankedYear,
  now: Instant,
): ReturnType<typeof yearSealer> | RowsProblem {
  try {
    return yearSealer(window, year, coverageOf(window, observed, year), now)
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

function tooLarge(size: string, year: RankedYear): RowsProblem {
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
