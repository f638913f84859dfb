import { QUERY_MAX_LENGTH, QUERY_MAX_WORDS } from './search.ts'
import type { Similarity } from './search.ts'

/**
 * Splits texts into words, for the index and for queries alike (docs/api.md), so that the result does not depend on the
 * engine or its version.
 */

/** Longest word in UTF-16 units; longer words are cut in the index and in queries. */
const WORD_MAX_LENGTH = 64

/** Diacritics that are removed; marks of scripts that write vowels with marks stay. */
const DIACRITICS = /[\u0300-\u036f]/g

/** Apostrophes inside a word are removed: `dont` finds `don't`. */
const INNER_APOSTROPHES = /(?<=\p{L})['’](?=\p{L})/gu

/** A `+` or `#` right after a word belongs to it: `c++`, `c#`. */
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*[+#]*/gu

/** Scripts that write words without spaces between them. */
const UNSPACED = /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+)/u

/**
 * The words of a text in order: compatibility forms, case and diacritics folded, split at everything that is neither
 * letter, digit nor mark. A run of a script without spaces becomes its pairs of neighbouring characters.
 *
 * @param text any string; halves of surrogate pairs and control characters separate words
 */
export function tokenize(text: string): string[] {
  const folded = text
    .toWellFormed()
    .normalize('NFKD')
    .replace(DIACRITICS, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(INNER_APOSTROPHES, '')
  return (folded.match(WORD) ?? []).flatMap((word) => (UNSPACED.test(word) ? bigrams(word) : [cut(word)]))
}

function bigrams(word: string): string[] {
  return word.split(UNSPACED).flatMap((run) => {
    // A mark or sign alone between such runs is not a word.
    if (!UNSPACED.test(run)) return (run.match(WORD) ?? []).map(cut)
    const characters = Array.from(run)
    if (characters.length === 1) return characters
    return characters.slice(1).map((character, index) => `${characters[index]}${character}`)
  })
}

function cut(word: string): string {
  return word.length > WORD_MAX_LENGTH
    ? word.slice(0, WORD_MAX_LENGTH).toWellFormed().replace('\ufffd', '')
    : word
}

/** One term of a query: words that must follow each other; the last one may be a prefix. */
export interface QueryTerm {
  words: string[]
  prefix: boolean
  /** True for a phrase in quotation marks. */
  quoted: boolean
}

/** Shortest prefix in a query; one letter would match half of all titles. */
const PREFIX_MIN_LENGTH = 2

/** Most prefixes in a query, because each matches many words. */
const PREFIXES_MAX = 3

const PIECES = /"([^"]*)"?|[^\s"]+/gu

/**
 * Parses a search text (docs/api.md): words, `"phrases"` and `prefix*`. Every text is valid; one without letters or
 * digits gives no terms.
 *
 * @returns distinct terms with at most {@link QUERY_MAX_WORDS} words in all; the rest of the text is ignored. At most
 *   {@link PREFIXES_MAX} terms are prefixes; further ones are whole words
 */
export function parseSearchText(text: string): QueryTerm[] {
  const terms = new Map<string, QueryTerm>()
  let wordsLeft = QUERY_MAX_WORDS
  const typed = text.slice(0, QUERY_MAX_LENGTH).replaceAll(/[“”„«»]/g, '"')
  for (const [piece, phrase] of typed.matchAll(PIECES)) {
    const parts =
      phrase === undefined ? unquotedTerms(piece) : [queryTerm(tokenize(phrase), { quoted: true })]
    for (const term of parts) {
      const words = term.words.slice(0, wordsLeft)
      const isWhole = words.length === term.words.length
      const prefix = term.prefix && isWhole && mayAddPrefix([...terms.values()])
      const name = JSON.stringify([words, prefix])
      if (words.length === 0 || terms.has(name)) continue
      terms.set(name, { ...term, words, prefix })
      wordsLeft -= words.length
    }
  }
  return [...terms.values()]
}

/** A piece between spaces may hold several words (`node.js`); bigrams of unspaced characters form one term. */
function unquotedTerms(piece: string): QueryTerm[] {
  const parts = piece.split(/[^\p{L}\p{N}\p{M}+#'’]+/u).filter((part) => part !== '')
  return parts.flatMap((part, index): QueryTerm[] => {
    const words = tokenize(part)
    const isPrefix = piece.endsWith('*') && index === parts.length - 1 && isPrefixLength(words.at(-1))
    if (words.some((word) => UNSPACED.test(word))) {
      // The index holds a single character only as part of a bigram.
      const isAlone = words.length === 1 && Array.from(words[0] ?? '').length === 1
      return [queryTerm(words, { prefix: isPrefix || isAlone })]
    }
    return words.map((word, at) => queryTerm([word], { prefix: isPrefix && at === words.length - 1 }))
  })
}

function queryTerm(words: string[], { prefix = false, quoted = false }): QueryTerm {
  return { words, prefix, quoted }
}

/** True if a text has every term, the words of each next to each other in their order; false without a term. */
export function hasTerms(text: readonly string[], terms: readonly QueryTerm[]): boolean {
  const isAt = ({ words, prefix }: QueryTerm, start: number): boolean =>
    words.every((word, index) => {
      const found = text[start + index]
      return prefix && index === words.length - 1 ? (found?.startsWith(word) ?? false) : found === word
    })
  const has = (term: QueryTerm): boolean => {
    const [word] = term.words
    if (term.words.length === 1 && word !== undefined && !term.prefix) return text.includes(word)
    return text.some((_, start) => isAt(term, start))
  }
  return terms.length > 0 && terms.every(has)
}

/** The same terms with the last one as a prefix, for a query still being typed; null when that changes nothing. */
export function withLastAsPrefix(terms: readonly QueryTerm[]): QueryTerm[] | null {
  const last = terms.at(-1)
  if (!last || last.prefix || last.quoted || !mayAddPrefix(terms) || !isPrefixLength(last.words.at(-1)))
    return null
  return [...terms.slice(0, -1), { ...last, prefix: true }]
}

function mayAddPrefix(terms: readonly QueryTerm[]): boolean {
  return terms.filter(({ prefix }) => prefix).length < PREFIXES_MAX
}

function isPrefixLength(word = ''): boolean {
  return word.length >= PREFIX_MIN_LENGTH || UNSPACED.test(word)
}

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

/** Words below this share of the weight of a unique word are too common to identify a subject. */
const DISTINCTIVE_MIN_SHARE = 0.3

/** Least weight, as such a share, of the distinctive words that two titles of one subject share. */
const SUBJECT_MIN_SHARE = 0.5

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
  const distinctive = shared.filter((word) => weightOf([word], counts) >= greatest * DISTINCTIVE_MIN_SHARE)
  const reasons: Similarity[] = sameDiscussion ? ['same-discussion'] : []
  if (score >= DUPLICATE_MIN) reasons.push('near-duplicate-title')
  else if (score >= SUBJECT_MIN && weightOf(distinctive, counts) >= greatest * SUBJECT_MIN_SHARE)
    reasons.push('same-subject')
  return reasons
}
