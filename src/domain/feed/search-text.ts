import { QUERY_MAX_LENGTH, QUERY_MAX_WORDS } from './search.ts'
import { isUnspaced, wordsOf } from './words.ts'

/** One thing looked for: words that must follow each other, the last of them perhaps only begun. */
export interface Unit {
  words: string[]
  prefix: boolean
  /** True for what stood in quotation marks. */
  quoted: boolean
}

/** Shortest beginning of a word that is looked for; one letter begins half of all titles. */
const PREFIX_MIN_LENGTH = 2

/** Most beginnings looked for: each one stands for every word that begins so. */
const PREFIXES_MAX = 3

const PIECES = /"([^"]*)"?|[^\s"]+/gu

/**
 * Reads what a person typed (docs/search.md): words, `"phrases"` and `begin*`. Every text has a meaning; one without
 * letters or digits asks for nothing.
 *
 * @returns units of at most {@link QUERY_MAX_WORDS} words in all, no unit twice; the rest of the text is ignored, the rest
 *   of a phrase too. At most {@link PREFIXES_MAX} units are beginnings: what would be a further one is a whole word
 */
export function parseSearchText(text: string): Unit[] {
  const units = new Map<string, Unit>()
  let room = QUERY_MAX_WORDS
  for (const [piece, phrase] of text
    .slice(0, QUERY_MAX_LENGTH)
    .replaceAll(/[“”„«»]/g, '"')
    .matchAll(PIECES)) {
    for (const unit of phrase === undefined ? looseUnits(piece) : quotedUnit(phrase)) {
      const words = unit.words.slice(0, room)
      const isWhole = words.length === unit.words.length
      const prefix = unit.prefix && isWhole && countBegun(units.values()) < PREFIXES_MAX
      const key = JSON.stringify([words, prefix])
      if (words.length === 0 || units.has(key)) continue
      units.set(key, { ...unit, words, prefix })
      room -= words.length
    }
  }
  return [...units.values()]
}

function quotedUnit(phrase: string): Unit[] {
  const words = wordsOf(phrase)
  return words.length === 0 ? [] : [{ words, prefix: false, quoted: true }]
}

/** A piece between spaces may be several words (`node.js`); pairs of unspaced characters belong together. */
function looseUnits(piece: string): Unit[] {
  const begun = piece.endsWith('*')
  return piece.split(/[^\p{L}\p{N}\p{M}+#'’]+/u).flatMap((part, index, parts): Unit[] => {
    const words = wordsOf(part)
    const isLast = index === parts.findLastIndex((each) => each !== '')
    const prefix = begun && isLast && isLongEnough(words.at(-1))
    if (words.length === 0) return []
    if (words.some(isUnspaced)) {
      // A character alone is in the index only as half of a pair.
      const alone = words.length === 1 && Array.from(words[0] ?? '').length === 1
      return [{ words, prefix: prefix || alone, quoted: false }]
    }
    return words.map((word, at) => ({
      words: [word],
      prefix: prefix && at === words.length - 1,
      quoted: false,
    }))
  })
}

/** The same units with the last one a beginning, as somebody still typing means it; null when that changes nothing. */
export function withLastBegun(units: readonly Unit[]): Unit[] | null {
  const last = units.at(-1)
  if (
    !last ||
    last.prefix ||
    last.quoted ||
    countBegun(units) >= PREFIXES_MAX ||
    !isLongEnough(last.words.at(-1))
  )
    return null
  return [...units.slice(0, -1), { ...last, prefix: true }]
}

function countBegun(units: Iterable<Unit>): number {
  return Array.from(units).filter(({ prefix }) => prefix).length
}

function isLongEnough(word: string | undefined): boolean {
  return word !== undefined && (word.length >= PREFIX_MIN_LENGTH || isUnspaced(word))
}
