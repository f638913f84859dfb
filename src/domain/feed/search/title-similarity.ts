import type { Similarity } from './search.ts'

/** Similarity of titles by the words that they share (docs/api.md). */

/** Frequencies of words, which weigh shared words. */
export interface WordCounts {
  /** Items in the index. */
  items: number
  /** Items whose title holds a word; absent for a word of no title. */
  of: ReadonlyMap<string, number>
}

/** The sum of the words' inverse document frequencies, as BM25 defines them. */
export function weightOf(words: readonly string[], { items, of }: WordCounts, power = 1): number {
  return words.reduce((sum, word) => {
    const count = of.get(word) ?? 0
    return sum + Math.log(1 + (Math.max(items, count) - count + 0.5) / (count + 0.5)) ** power
  }, 0)
}

/** Exponent that favours rare words, measured by bench/retrieval. */
const RARITY = 1.5

/** Titles at least this alike are near-duplicates. */
const DUPLICATE_MIN = 0.6

/** Titles below this similarity share no subject. */
const SUBJECT_MIN = 0.08

/** Least weight of a word that identifies a subject, of about one title in 90. */
const DISTINCTIVE_MIN = 4.5

/** The same as a share of the weight of a unique word, for an index of so few titles that its common words are rare too. */
const DISTINCTIVE_MIN_SHARE = 0.5

/** Least number of those words: one rare word says little about a subject. */
const SUBJECT_MIN_WORDS = 2

export interface TitleSimilarity {
  /** 0 to 1. */
  score: number
  /** Rarest first. */
  shared: string[]
}

/**
 * The similarity of two titles: the weight of shared words over the weight of all words (docs/api.md). Words of the
 * second title alone are not counted; each weighs as much as the first title's words on average.
 *
 * @param title words of the first title, counted in `counts`
 */
export function titleSimilarity(
  title: readonly string[],
  other: readonly string[],
  counts: WordCounts,
): TitleSimilarity {
  const [own, others] = [new Set(title), new Set(other)]
  const shared = [...own].filter((word) => others.has(word))
  const total = weightOf([...own], counts, RARITY)
  const uncounted = (others.size - shared.length) * (total / own.size)
  return {
    score: shared.length === 0 ? 0 : weightOf(shared, counts, RARITY) / (total + uncounted),
    shared: shared.sort((a, b) => weightOf([b], counts) - weightOf([a], counts)),
  }
}

/** The reasons why two items are similar, strongest first; empty when they are not. */
export function similarityReasons(
  { score, shared }: TitleSimilarity,
  sameDiscussion: boolean,
  counts: WordCounts,
): Similarity[] {
  const greatest = weightOf([''], { items: counts.items, of: new Map([['', 1]]) })
  const least = Math.min(DISTINCTIVE_MIN, greatest * DISTINCTIVE_MIN_SHARE)
  const distinctive = shared.filter((word) => weightOf([word], counts) >= least)
  const isOneSubject = score >= SUBJECT_MIN && distinctive.length >= SUBJECT_MIN_WORDS
  const reasons: Similarity[] = sameDiscussion ? ['same-discussion'] : []
  if (score >= DUPLICATE_MIN) reasons.push('near-duplicate-title')
  else if (isOneSubject) reasons.push('same-subject')
  return reasons
}
