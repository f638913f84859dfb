import { QUERY_MAX_LENGTH, QUERY_MAX_WORDS } from './search.ts'
import type { Similarity } from './search.ts'

/**
 * The words of a text, as the index holds them and as a query asks for them (docs/api.md): one rule for both sides, so
 * that neither the engine nor its version decides what a word is.
 */

/** Longest word, in UTF-16 units; what is longer is cut, on both sides. */
const WORD_MAX_LENGTH = 64

/** Only diacritics that fold: marks of scripts that write vowels with them stay. */
const DIACRITICS = /[\u0300-\u036f]/g

/** Apostrophes inside a word are no border: `don't` is found by `dont`. */
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
    // Between such runs a mark or a sign may stand alone, which is no word.
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

/** One part of a query: words that must follow each other, the last of them perhaps only begun. */
export interface QueryTerm {
  words: string[]
  prefix: boolean
  /** True for a phrase in quotation marks. */
  quoted: boolean
}

/** Shortest beginning of a word that is looked for; one letter begins half of all titles. */
const PREFIX_MIN_LENGTH = 2

/** Most beginnings looked for: each one stands for every word that begins so. */
const PREFIXES_MAX = 3

const PIECES = /"([^"]*)"?|[^\s"]+/gu

/**
 * Reads what a person typed (docs/api.md): words, `"phrases"` and `begin*`. Every text has a meaning; one without
 * letters or digits asks for nothing.
 *
 * @returns units of at most {@link QUERY_MAX_WORDS} words in all, no unit twice; the rest of the text is ignored, the rest
 *   of a phrase too. At most {@link PREFIXES_MAX} units are beginnings: a further one is a whole word
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

/** A piece between spaces may be several words (`node.js`); pairs of unspaced characters belong together. */
function unquotedTerms(piece: string): QueryTerm[] {
  const parts = piece.split(/[^\p{L}\p{N}\p{M}+#'’]+/u).filter((part) => part !== '')
  return parts.flatMap((part, index): QueryTerm[] => {
    const words = tokenize(part)
    const isPrefix = piece.endsWith('*') && index === parts.length - 1 && isPrefixLength(words.at(-1))
    if (words.some((word) => UNSPACED.test(word))) {
      // A character alone is in the index only as half of a pair.
      const isAlone = words.length === 1 && Array.from(words[0] ?? '').length === 1
      return [queryTerm(words, { prefix: isPrefix || isAlone })]
    }
    return words.map((word, at) => queryTerm([word], { prefix: isPrefix && at === words.length - 1 }))
  })
}

function queryTerm(words: string[], { prefix = false, quoted = false }): QueryTerm {
  return { words, prefix, quoted }
}

/** The same units with the last one a beginning, as for a query still being typed; null when that changes nothing. */
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

/** How often words occur, which makes a shared word tell much or little. */
export interface WordCounts {
  /** Items in the index. */
  items: number
  /** Items whose title holds a word; absent for a word of no title. */
  of: ReadonlyMap<string, number>
}

/** Weight of words together: the sum of their inverse document frequencies, as BM25 defines them. */
export function weightOf(words: readonly string[], { items, of }: WordCounts, power = 1): number {
  return words.reduce((sum, word) => {
    const count = of.get(word) ?? 0
    return sum + Math.log(1 + (Math.max(items, count) - count + 0.5) / (count + 0.5)) ** power
  }, 0)
}

/** Rare words tell more of a title than their weight says: measured by bench/retrieval. */
const RARITY = 1.5

/** Titles at least this alike are near-duplicates. */
const DUPLICATE_MIN = 0.6

/** Titles less alike than this have no subject in common. */
const SUBJECT_MIN = 0.08

/** A word that weighs less than this share of a word of one item alone says nothing of a subject. */
const DISTINCTIVE_MIN_SHARE = 0.3

/** Least weight, as such a share, of the telling words that two titles of one subject have in common. */
const SUBJECT_MIN_SHARE = 0.5

export interface TitleSimilarity {
  /** 0 to 1. */
  score: number
  /** Rarest first. */
  shared: string[]
}

/**
 * How alike two titles are: the weight of the words they share over the weight of all their words (docs/api.md).
 * Words of the second title that the first lacks were not counted; each weighs as the first title's words do on average.
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

/** Why two items are similar, strongest first; empty when they are not. */
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
