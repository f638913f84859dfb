import { rankYear } from '../../../src/domain/year/rank.ts'
import type { RankedYear, VerifiedTitle, YearEvent } from '../../../src/domain/year/rank.ts'
import { feedEvent, feedEvents } from '../../support/signals.ts'

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
  change: (index: number) => Partial<YearEvent> = () => ({}),
): YearEvent[] {
  return feedEvents(source, count, (index) =>
    yearEvent({ source, sourceId: `${index + 1}`, points: 1000 - index, ...change(index) }),
  )
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
