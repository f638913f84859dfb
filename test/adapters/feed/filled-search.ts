import type { SearchQuery } from '../../../src/domain/feed/search/search.ts'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import type { CallerSearch } from '../../../src/domain/ports.ts'
import { startOfDay } from '../../../src/domain/time.ts'
import { searchQuery, signal } from '../../support/signals.ts'
import type { FeedOpener, OpenFeed } from './open-feed.ts'

/** A feed filled with titles, and its search. */

let number = 0

/** A signal of a new event with this title, published on its day. */
export function titled(title: string, overrides: Partial<Signal> = {}): Signal {
  const sourceId = `${(number += 1)}`
  const day = overrides.day ?? '2026-03-01'
  const url = `https://example.org/${sourceId}`
  return signal({ sourceId, title, url, publishedAt: startOfDay(day), ...overrides })
}

export const titlesOf = async (search: CallerSearch, query: string, overrides = {}): Promise<string[]> =>
  (await search.search(searchQuery(query, overrides))).items.map(({ title }) => title)

/** A feed whose index has taken these signals in. */
export async function filled(engine: FeedOpener, signals: readonly Signal[]): Promise<OpenFeed> {
  const opened = await engine()
  await opened.feed.importSignals(signals)
  return opened
}

/** Returns every key of a query's items, page by page. */
export async function walk(
  search: CallerSearch,
  query: string,
  limit: number,
  overrides: Partial<SearchQuery> = {},
): Promise<string[]> {
  const keys: string[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await search.search(searchQuery(query, { ...overrides, limit, cursor: cursor ?? null }))
    keys.push(...page.items.map(({ key }) => key))
    ;({ cursor } = page)
  }
  return keys
}
