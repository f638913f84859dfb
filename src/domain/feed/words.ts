/**
 * The words of a text, as the index holds them and as a question asks for them (docs/search.md): one rule for both
 * sides, so that neither the engine nor its version decides what a word is.
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

/** True for a word of a script without spaces, which is indexed as pairs of characters. */
export function isUnspaced(word: string): boolean {
  return UNSPACED.test(word)
}

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
  return (folded.match(WORD) ?? []).flatMap((word) => (isUnspaced(word) ? pairsOf(word) : [cut(word)]))
}

function pairsOf(word: string): string[] {
  return word.split(UNSPACED).flatMap((run) => {
    // Between such runs a mark or a sign may stand alone, which is no word.
    if (!isUnspaced(run)) return (run.match(WORD) ?? []).map(cut)
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
