import type { Signal } from '../../src/domain/feed/signal.ts'
import type { FeedSearch, IndexWatch, InputLine, LineSource } from '../../src/domain/ports.ts'
import type { SearchQuery } from '../../src/domain/feed/search/search.ts'
import type { FeedEvent } from '../../src/domain/feed/columns.ts'
import { coverageOf, rankYear } from '../../src/domain/year/rank.ts'
import type { SourceObservation, RankedYear, VerifiedTitle, YearEvent } from '../../src/domain/year/rank.ts'
import { yearSealer } from '../../src/domain/year/envelope.ts'
import type { SealedYear } from '../../src/domain/year/envelope.ts'
import { windowEnding } from '../../src/domain/year/ledger.ts'
import type { Day } from '../../src/domain/time.ts'

/** A signal with all values, except overridden ones. */
export function signal(overrides: Partial<Signal> = {}): Signal {
  return {
    source: 'hn',
    sourceId: '1',
    day: '2026-03-01',
    title: 'a title',
    url: 'https://example.org/1',
    points: 10,
    comments: 3,
    publishedAt: Date.UTC(2026, 1, 28, 12),
    titleProvenance: 'hn:firebase-item',
    ...overrides,
  }
}

/** The key of the row a signal is stored in. */
export function tripleOf({ source, sourceId, day }: Signal): string {
  return JSON.stringify([source, sourceId, day])
}

export const quiet: IndexWatch = { onProgress: () => undefined, signal: new AbortController().signal }

/** Builds an index anew; returns the number of indexed events. */
export function rebuild(search: Omit<FeedSearch, 'by'>): Promise<number> {
  return search.rebuild(quiet)
}

/** A query for everything, except overridden parts. */
export function searchQuery(query: string, overrides: Partial<SearchQuery> = {}): SearchQuery {
  const all = { sources: [], minPoints: null, minComments: null, from: null, to: null }
  return { query, ...all, sort: 'relevance', limit: 20, cursor: null, ...overrides }
}

/** The instant at which the live rankings of the tests are made. */
export const NOW = Date.UTC(2026, 2, 15, 12)

export const HOUR_MS = 3_600_000

/** A verified Hacker News event of an hour ago, with overrides. */
export function feedEvent(overrides: Partial<FeedEvent> = {}): FeedEvent {
  const source = overrides.source ?? 'hn'
  const sourceId = overrides.sourceId ?? '1'
  return {
    source,
    sourceId,
    title: `${source} ${sourceId}`,
    url: `https://example.com/${source}/${sourceId}`,
    points: 10,
    comments: 2,
    publishedAt: NOW - HOUR_MS,
    titleProvenance: `${source}:test-api`,
    ...overrides,
  }
}

/** `count` events of one source with ids 1…count; `change` adjusts each by its index. */
export function feedEvents(
  source: string,
  count: number,
  change: (search: number) => Partial<FeedEvent> = () => ({}),
): FeedEvent[] {
  return Array.from({ length: count }, (_, index) =>
    feedEvent({ source, sourceId: String(index + 1), points: count - index, ...change(index) }),
  )
}

/** Builders of Year events and derived values. Everything is a plain value. */

/** The as-of day of every publication built here. */
export const AS_OF_DAY = '2026-03-14'

/** Inside the window that ends with {@link AS_OF_DAY}. */
const PUBLISHED_AT = Date.UTC(2025, 10, 5, 8, 30, 0, 250)

/** A verified Hacker News event, with overrides. */
export function yearEvent(overrides: Partial<YearEvent> = {}): YearEvent {
  return feedEvent({ publishedAt: PUBLISHED_AT, ...overrides })
}

/** `count` events of one source with ids 1…count and falling points; `change` adjusts each. */
export function yearEvents(
  source: string,
  count: number,
  change: (search: number) => Partial<YearEvent> = () => ({}),
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
function sampleEvents(): YearEvent[] {
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
  const seal = yearSealer(window, ranked, coverageOf(window, SAMPLE_OBSERVED, ranked), generatedAt)
  return seal(generatedAt + 1993)
}

/** NDJSON of verified Hacker News stories of one day: ids and points count up. */
export function storiesOf(day: Day, count: number, changes: Record<string, unknown> = {}): string {
  return Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      source: 'hn',
      sourceId: String(index + 1),
      day,
      title: `title ${index + 1}`,
      url: `https://example.org/a/path/of/some/length/${index + 1}`,
      points: index,
      comments: 0,
      publishedAt: `${day}T10:00:00Z`,
      titleProvenance: 'hn:test',
      ...changes,
    }),
  ).join('\n')
}

/** A file of these lines. */
export function lineSource(name: string, ...texts: string[]): LineSource {
  return {
    name,
    async *lines() {
      yield texts.map((text, index): InputLine => ({ number: index + 1, text }))
    },
  }
}
