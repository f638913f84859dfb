import type { Signal } from '../../src/domain/feed/signal.ts'
import type { IndexWatch } from '../../src/domain/ports.ts'
import type { SearchQuery } from '../../src/domain/feed/search/search.ts'
import type { FeedEvent } from '../../src/domain/feed/columns.ts'
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

export const quiet: IndexWatch = { onProgress: () => undefined, signal: new AbortController().signal }

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
