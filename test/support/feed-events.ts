import type { FeedEvent } from '../../src/domain/feed/columns.ts'

/** The instant at which the live rankings of the tests are made. */
export const NOW = Date.UTC(2026, 2, 15, 12)

export const HOUR_MS = 3_600_000

/** A verified Hacker News event of an hour ago, but for what is overridden. */
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
  change: (index: number) => Partial<FeedEvent> = () => ({}),
): FeedEvent[] {
  return Array.from({ length: count }, (_, index) =>
    feedEvent({ source, sourceId: String(index + 1), points: count - index, ...change(index) }),
  )
}
