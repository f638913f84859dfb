import type { FeedSearch } from '../../src/domain/ports.ts'
import { rebuildIndex, refreshIndex } from '../../src/jobs/collect.ts'
import type { SearchQuestion } from '../../src/domain/feed/search.ts'

const quiet = { onProgress: () => undefined, signal: new AbortController().signal }

/** Brings an index up to date; returns how many events it took in. */
export async function refresh(search: Omit<FeedSearch, 'by'>): Promise<number> {
  return (await refreshIndex({ search, ...quiet })).indexed
}

/** Builds an index anew; returns how many events it took in. */
export async function rebuild(search: Omit<FeedSearch, 'by'>): Promise<number> {
  return (await rebuildIndex({ search, ...quiet })).indexed
}

/** A question about everything, but for what is overridden. */
export function asking(query: string, overrides: Partial<SearchQuestion> = {}): SearchQuestion {
  return { query, sources: [], from: null, to: null, limit: 20, cursor: null, ...overrides }
}
