/** Folds texts to plain letters: the first step of finding their words. */

/** Folds a text to lower case and to the letters that a reader would type for it. */
export function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase().replaceAll('`', "'")
  return prepare(text).split(NUMBER_EDGE).map(foldCharacters).join(' ')
}

/** Letters that are also written as two, as in `Mueller` and `Aarhus`. */
const DIGRAPHS = new Map(['äae', 'öoe', 'øoe', 'üue', 'åaa'].map((pair) => [pair.slice(0, 1), pair.slice(1)]))
const HAS_DIGRAPH = /[äöøüå]|[aou][\u0308\u030a]/iu

/** The parts of a text between spaces and quotation marks that have such letters, with these written as two. */
export function spelledWithDigraphs(text: string): { written: string; spelled: string }[] {
  if (!HAS_DIGRAPH.test(text)) return []
  const parts = text.split(/[\s"]+/).filter((part) => HAS_DIGRAPH.test(part))
  return parts.map((written) => {
    const composed = written.normalize('NFC').toLowerCase()
    return { written, spelled: composed.replace(/[äöøüå]/g, (letter) => DIGRAPHS.get(letter) ?? letter) }
  })
}

/** A folded text, and for each of its UTF-16 units the place in the unfolded text. */
export function foldInPlace(text: string): { folded: string; origins: number[] } {
  let folded = ''
  const origins: number[] = []
  const append = (letters: string, origin: number): void => {
    folded += letters
    for (const _ of letters.split('')) origins.push(origin)
  }
  let partStart = 0
  for (const part of prepare(text).split(NUMBER_EDGE)) {
    if (partStart > 0) append(' ', partStart)
    for (const { 0: characters, index } of part.matchAll(COMPOSABLE))
      append(foldCharacters(characters), partStart + index)
    partStart += part.length
  }
  return { folded, origins }
}

const ASCII = /^[\0-\x7f]*$/

/** Spaces that group digits in threes, as in `10 000`; an ordinary space separates numbers. */
const GROUPING_SPACE = /(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))/g

/** The sign of multiplication right after a number, as in `10×`. */
const TIMES = /(?<=\d)\u00d7/g

/** Numbers in circles, in brackets or with a full stop, and the sign of a number. */
const ENCLOSED = String.raw`[\u2116\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3251-\u325f\u32b1-\u32bf]`

/** Edges of numbers of their own: fractions, superscripts and subscripts right after a digit (`1½`, `10⁹`), and `①`. */
const NUMBER_EDGE = new RegExp(
  String.raw`(?<=\d)(?=[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u215f\u2189])|(?<=${ENCLOSED})|(?=${ENCLOSED})`,
)

/** A character with those that may compose with it: marks, halfwidth voicing marks, vowels of Thai, Lao and Hangul. */
const COMPOSABLE = /\P{M}[\p{M}\uff9e\uff9f\u0e32\u0eb2\u1160-\u11ff]*|\p{M}+/gsu

/** Scripts without spaces between words, whose words a dictionary finds. */
export const SEGMENTED = String.raw`[[\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]&&[\p{L}\p{N}\p{M}]]`

/** Zero-width spaces separate words in those scripts; elsewhere they are dropped. */
const ZERO_WIDTH_SPACE = new RegExp(`(?<=${SEGMENTED})\u200b(?=${SEGMENTED})`, 'gv')
export const WORD_BREAK = '\x1f'

/** Parts of a Persian word, which are also written apart or as one: `کتاب‌ها`. */
const ZERO_WIDTH_NON_JOINER = /(?<=\p{sc=Arabic})\u200c(?=\p{sc=Arabic})/gu

/** Nasals before another consonant of Devanagari, which are also written as a dot: `हिन्दी`, `हिंदी`. */
const NASAL = /[ङञणनऩम]\u093c?\u094d[\u093c\u200c\u200d]*(?=[क-म])/g

/** The mark of a Hebrew acronym, as typed: `צה"ל`. */
const GERSHAYIM = /(?<=\p{sc=Hebrew})["\u201d\u05f4](?=\p{sc=Hebrew})/gu

/** Replaces characters that depend on their neighbours, without changing the length of the text. */
function prepare(text: string): string {
  return text
    .toWellFormed()
    .replace(GROUPING_SPACE, ',')
    .replace(TIMES, 'x')
    .replace(ZERO_WIDTH_SPACE, WORD_BREAK)
    .replace(ZERO_WIDTH_NON_JOINER, '-')
    .replace(GERSHAYIM, "'")
    .replace(NASAL, (written) => '\u0902'.padEnd(written.length, '\u200d'))
}

/**
 * Characters that do not make another word: invisible ones, signs of trade marks, diacritics, signs of repetition and
 * abbreviation of Thai, Lao and Khmer, and the dot below letters of Devanagari. The voicing marks of Kana, and marks of
 * scripts that write vowels with marks, stay.
 */
const DROPPED = new RegExp(
  String.raw`[[\p{Default_Ignorable_Code_Point}\p{sc=Inherited}\u0640\u093cฯๆຯໆៗ]--[\u3099\u309a]]|[\p{Mn}&&[\p{sc=Hebrew}\p{sc=Arabic}]]`,
  'gv',
)
const APOSTROPHES = /[\u2018\u2019\u201b\u2032\u02b9\u02bb-\u02bf\u02c8\u0060\u055a\u05f3\ua78b\ua78c]/g
const TRADE_MARKS = /[\u2120\u2122]/g

/**
 * Letters that Unicode does not decompose into a plain letter and a mark, and forms that look alike: Latin and Greek;
 * Arabic letters of Persian and Urdu, and the old and the new form of some letters of Malayalam and Bengali; nasal
 * vowels of Devanagari; vowels that the dictionary knows undecomposed only.
 */
const PLAIN_LETTERS = new Map(
  [
    'ßss æae œoe þth øo łl đd ðd ħh ıi ŧt ŋn ĸk ƀb ɓb ƈc ɖd ɗd əe ɛe ƒf ǥg ɠg ɣg',
    'ɨi ɩi ȷj ƙk ƚl ɲn ɔo ɵo ƥp ƭt ʉu ʋv ƴy ƶz ςσ ♯#',
    'کك یي ىي ةه ۃه ەه ہه ٱا ٬, ൺണ് ൻന് ർര് ൽല് ൾള് ൿക് ৎত্',
  ].flatMap((letters) =>
    letters.split(' ').map((pair): [string, string] => [pair.slice(0, 1), pair.slice(1)]),
  ),
)
  .set('\u0901', '\u0902')
  .set('\u0e4d\u0e32', '\u0e33')
  .set('\u0ecd\u0eb2', '\u0eb3')
const NOT_PLAIN = new RegExp([...PLAIN_LETTERS.keys()].join('|'), 'g')

/** Decimal digits of other scripts, which Unicode orders from 0 to 9: `٢`, `२`, `๒`. */
const FOREIGN_DIGIT = /(?!\d)\p{Nd}/gu

function toDigit(digit: string): string {
  const code = digit.codePointAt(0) ?? 0
  let value = 0
  while (/\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++
  return String(value)
}

/** Folds characters, each with its marks, independently of their neighbours. */
function foldCharacters(text: string): string {
  return text
    .replace(TRADE_MARKS, '')
    .replaceAll('\u00b4', "'")
    .normalize('NFKD')
    .replace(APOSTROPHES, "'")
    .replace(DROPPED, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(FOREIGN_DIGIT, toDigit)
    .replace(NOT_PLAIN, (letter) => PLAIN_LETTERS.get(letter) ?? letter)
}
