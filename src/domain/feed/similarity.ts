import type { Similarity } from './search.ts'

/** How often words occur: what makes a shared word tell much or little. */
export interface WordCounts {
  /** Items in the index. */
  items: number
  /** Items whose title holds a word; absent for words nobody asked for. */
  of: ReadonlyMap<string, number>
}

/** Titles at least this alike are near-duplicates. */
const DUPLICATE_MIN = 0.6

/** Titles less alike than this have no subject in common. */
const SUBJECT_MIN = 0.08

/** A word that weighs less than this share of a word of one item alone says nothing of a subject. */
const TELLING_MIN_SHARE = 0.3

/** Least weight, as such a share, of the telling words that two titles of one subject have in common. */
const SUBJECT_MIN_SHARE = 0.5

/** Weight of a word: the inverse document frequency of BM25. */
export function weightOf(word: string, { items, of }: WordCounts): number {
  const count = of.get(word) ?? 0
  return Math.log(1 + (Math.max(items, count) - count + 0.5) / (count + 0.5))
}

/** Rare words tell more of a title than their weight says: measured by bench/retrieval. */
const RARITY = 1.5

export interface Likeness {
  /** 0 to 1. */
  score: number
  /** Rarest first. */
  shared: string[]
}

/**
 * How alike two titles are: the weight of the words they share over the weight of all their words (docs/search.md).
 * Words of the second title that the first lacks were not counted; each weighs as the first title's words do on average.
 *
 * @param title words of the title that is asked about, counted in `counts`
 */
export function likeness(title: readonly string[], other: readonly string[], counts: WordCounts): Likeness {
  const own = new Set(title)
  const others = new Set(other)
  const weights = new Map([...own].map((word) => [word, weightOf(word, counts) ** RARITY]))
  const total = sum(weights.values())
  if (total === 0) return { score: 0, shared: [] }
  const shared = [...own].filter((word) => others.has(word))
  const common = sum(shared.map((word) => weights.get(word) ?? 0))
  const unknown = (others.size - shared.length) * (total / own.size)
  return {
    score: common / (total + unknown),
    shared: shared.sort((a, b) => (weights.get(b) ?? 0) - (weights.get(a) ?? 0)),
  }
}

/** Why two items are similar, strongest first; empty when they are not. */
export function reasonsOf(
  { score, shared }: Likeness,
  sameDiscussion: boolean,
  counts: WordCounts,
): Similarity[] {
  const greatest = weightOf('', { items: counts.items, of: new Map([['', 1]]) })
  const weights = shared.map((word) => weightOf(word, counts))
  const telling = sum(weights.filter((weight) => weight >= greatest * TELLING_MIN_SHARE))
  const reasons: Similarity[] = []
  if (sameDiscussion) reasons.push('same-discussion')
  if (score >= DUPLICATE_MIN) reasons.push('near-duplicate-title')
  else if (score >= SUBJECT_MIN && telling >= greatest * SUBJECT_MIN_SHARE) reasons.push('same-subject')
  return reasons
}

function sum(values: Iterable<number>): number {
  let total = 0
  for (const value of values) total += value
  return total
}
