import type { YearItem } from './schema.ts'

/** Where an item stands in one Year. */
export interface YearStanding {
  /** Rank in the column of its own source; null when it stands in `popular` alone. */
  rank: number | null
  /** Rank in `popular`; null outside of it. */
  popular: number | null
  points: number
}

const OWN_COLUMNS = ['hackerNews', 'lobsters', 'lessWrong', 'hypeReplicate', 'midjourney'] as const

/** The standing of every item of a Year, by save key. */
export function standingsOf(
  feed: Readonly<
    Record<(typeof OWN_COLUMNS)[number] | 'popular', readonly Pick<YearItem, 'key' | 'rank' | 'points'>[]>
  >,
): Map<string, YearStanding> {
  const standings = new Map<string, YearStanding>()
  for (const name of OWN_COLUMNS) {
    for (const { key, rank, points } of feed[name]) standings.set(key, { rank, popular: null, points })
  }
  for (const { key, rank, points } of feed.popular) {
    standings.set(key, { rank: null, points, ...standings.get(key), popular: rank })
  }
  return standings
}
