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
export function wordsOf(text: string): string[] {
  const folded = text
    .toWellFormed()
    .normalize('NFKD')
    .replace(DIACRITICS, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(INNER_APOSTROPHES, '')
  return (folded.match(WORD) ?? []).flatMap((word) => (UNSPACED.test(word) ? pairsOf(word) : [cut(word)]))
}

function pairsOf(word: string): string[] {
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
export interface Unit {
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
export function parseSearchText(text: string): Unit[] {
  const units = new Map<string, Unit>()
  let room = QUERY_MAX_WORDS
  const typed = text.slice(0, QUERY_MAX_LENGTH).replaceAll(/[“”„«»]/g, '"')
  for (const [piece, phrase] of typed.matchAll(PIECES)) {
    const parts = phrase === undefined ? looseUnits(piece) : [unitOf(wordsOf(phrase), { quoted: true })]
    for (const part of parts) {
      const words = part.words.slice(0, room)
      const isWhole = words.length === part.words.length
      const prefix = part.prefix && isWhole && canBegin([...units.values()])
      const name = JSON.stringify([words, prefix])
      if (words.length === 0 || units.has(name)) continue
      units.set(name, { ...part, words, prefix })
      room -= words.length
    }
  }
  return [...units.values()]
}

/** A piece between spaces may be several words (`node.js`); pairs of unspaced characters belong together. */
function looseUnits(piece: string): Unit[] {
  const parts = piece.split(/[^\p{L}\p{N}\p{M}+#'’]+/u).filter((part) => part !== '')
  return parts.flatMap((part, index): Unit[] => {
    const words = wordsOf(part)
    const isBegun = piece.endsWith('*') && index === parts.length - 1 && isLongEnough(words.at(-1))
    if (words.some((word) => UNSPACED.test(word))) {
      // A character alone is in the index only as half of a pair.
      const isAlone = words.length === 1 && Array.from(words[0] ?? '').length === 1
      return [unitOf(words, { prefix: isBegun || isAlone })]
    }
    return words.map((word, at) => unitOf([word], { prefix: isBegun && at === words.length - 1 }))
  })
}

function unitOf(words: string[], { prefix = false, quoted = false }): Unit {
  return { words, prefix, quoted }
}

/** The same units with the last one a beginning, as for a query still being typed; null when that changes nothing. */
export function withLastBegun(units: readonly Unit[]): Unit[] | null {
  const last = units.at(-1)
  if (!last || last.prefix || last.quoted || !canBegin(units) || !isLongEnough(last.words.at(-1))) return null
  return [...units.slice(0, -1), { ...last, prefix: true }]
}

function canBegin(units: readonly Unit[]): boolean {
  return units.filter(({ prefix }) => prefix).length < PREFIXES_MAX
}

function isLongEnough(word = ''): boolean {
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
const TELLING_MIN_SHARE = 0.3

/** Least weight, as such a share, of the telling words that two titles of one subject have in common. */
const SUBJECT_MIN_SHARE = 0.5

export interface Likeness {
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
export function likeness(title: readonly string[], other: readonly string[], counts: WordCounts): Likeness {
  const [own, others] = [new Set(title), new Set(other)]
  const shared = [...own].filter((word) => others.has(word))
  const total = weightOf([...own], counts, RARITY)
  const foreign = (others.size - shared.length) * (total / own.size)
  return {
    score: shared.length === 0 ? 0 : weightOf(shared, counts, RARITY) / (total + foreign),
    shared: shared.sort((a, b) => weightOf([b], counts) - weightOf([a], counts)),
  }
}

/** Why two items are similar, strongest first; empty when they are not. */
export function reasonsOf(
  { score, shared }: Likeness,
  sameDiscussion: boolean,
  counts: WordCounts,
): Similarity[] {
  const greatest = weightOf([''], { items: counts.items, of: new Map([['', 1]]) })
  const telling = shared.filter((word) => weightOf([word], counts) >= greatest * TELLING_MIN_SHARE)
  const reasons: Similarity[] = sameDiscussion ? ['same-discussion'] : []
  if (score >= DUPLICATE_MIN) reasons.push('near-duplicate-title')
  else if (score >= SUBJECT_MIN && weightOf(telling, counts) >= greatest * SUBJECT_MIN_SHARE)
    reasons.push('same-subject')
  return reasons
}
