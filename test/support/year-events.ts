import { coverageOf, rankYear } from '../../src/domain/year/rank.ts'
import type { SourceObservation, RankedYear, VerifiedTitle, YearEvent } from '../../src/domain/year/rank.ts'
import { sealYear } from '../../src/domain/year/envelope.ts'
import type { SealedYear } from '../../src/domain/year/envelope.ts'
import { windowEnding } from '../../src/domain/year/ledger.ts'
import { feedEvent, feedEvents } from './feed-events.ts'

/** Builders of Year events and of what is made from them. Everything is a plain value. */

/** The as-of day of every publication built here. */
export const AS_OF_DAY = '2026-03-14'

/** Inside the window that ends with {@link AS_OF_DAY}. */
const PUBLISHED_AT = Date.UTC(2025, 10, 5, 8, 30, 0, 250)

/** A verified Hacker News event, but for what is overridden. */
export function yearEvent(overrides: Partial<YearEvent> = {}): YearEvent {
  return feedEvent({ publishedAt: PUBLISHED_AT, ...overrides })
}

/** `count` events of one source with ids 1…count and falling points; `change` adjusts each. */
export function yearEvents(
  source: string,
  count: number,
  change: (index: number) => Partial<YearEvent> = () => ({}),
): YearEvent[] {
  return feedEvents(source, count, (index) => ({
    publishedAt: PUBLISHED_AT,
    points: 1000 - index,
    ...change(index),
  }))
}

/** The ranking of events whose titles are all known; throws when a title is missing. */
export function rankedYear(
  events: readonly YearEvent[],
  hydrated: ReadonlyMap<string, VerifiedTitle> = new Map(),
): RankedYear {
  const outcome = rankYear(events, hydrated)
  if (outcome.do !== 'ranked') throw new Error(`${outcome.events.length} titles are missing`)
  return outcome.year
}

/** Something in every list: all news sources, a hype cohort of five, a small one, an unverified row, an image. */
export function sampleEvents(): YearEvent[] {
  return [
    ...yearEvents('hn', 3),
    yearEvent({ sourceId: '4', title: 'stored before sources were asked', titleProvenance: null }),
    ...yearEvents('lobsters', 2, (index) => ({ comments: index === 0 ? null : 7 })),
    ...yearEvents('lesswrong', 2, () => ({ url: null, title: 'Größe “quoted” \\ 漢字 😀' })),
    ...yearEvents('hype:github', 5, (index) => ({ sourceId: `owner/repo-${index}`, comments: null })),
    ...yearEvents('hype:reddit', 4),
    yearEvent({ source: 'hype:replicate', titleProvenance: null }),
    ...yearEvents('midjourney', 2, () => ({ url: null })),
  ]
}

/** Titles for the unverified news events of {@link sampleEvents}. */
function sampleTitles(): Map<string, VerifiedTitle> {
  return new Map([['hn-4', { title: 'as its source gives it', provenance: 'hn:firebase-item' }]])
}

const SAMPLE_OBSERVED: readonly SourceObservation[] = [
  { source: 'hn', days: ['2025-11-05', AS_OF_DAY], events: 6 },
  { source: 'hype:github', days: ['2025-11-06'], events: 5 },
]

/** A complete, valid version-3 publication; another order of the same events must not matter. */
export function sampleSealed(events: readonly YearEvent[] = sampleEvents()): SealedYear {
  const window = windowEnding(AS_OF_DAY)
  const ranked = rankedYear(events, sampleTitles())
  const generatedAt = Date.UTC(2026, 2, 15, 0, 5, 0, 7)
  return sealYear(
    window,
    ranked,
    coverageOf(window, SAMPLE_OBSERVED, ranked),
    generatedAt,
    generatedAt + 1993,
  )
}
