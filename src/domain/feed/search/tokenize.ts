import { SEGMENTED, WORD_BREAK, fold, foldInPlace, spelledWithDigraphs } from './fold.ts'

/**
 * Finds the words of titles, texts, queries and rules as readers see them (docs/api.md), so that results depend neither
 * on the database nor on its version: a text is folded to plain letters, and then cut into words.
 */

/** A word and its place in a text, in UTF-16 units. */
export interface PlacedWord {
  word: string
  start: number
  end: number
}

export interface CutText {
  inOrder: PlacedWord[]
  /** Words that also find the text, out of order: single characters of pairs, `lannee` for `l'année`, `email` for `e-mail`. */
  variants: PlacedWord[]
}

/** The words of a text in its order. */
export function tokenize(text: string): string[] {
  return cutWords(fold(text)).words
}

/** The words of a text to index or to test: those of {@link tokenize}, and then its variants, each once. */
export function indexedWords(text: string): string[] {
  const { words, variants } = cutWords(fold(text))
  const spelled = spelledWithDigraphs(text).map((part) => part.spelled)
  if (variants.length === 0 && spelled.length === 0) return words
  const others = new Set([...variants, ...Object.values(cutWords(fold(spelled.join(' ')))).flat()])
  for (const word of words) others.delete(word)
  return [...words, ...others]
}

/** The words of a text that {@link fold} has returned, in its order, and its variants. */
export function cutWords(folded: string): { words: string[]; variants: string[] } {
  const toWord = ({ word }: PlacedWord): string => word
  if (!NEEDS_RULES.test(folded))
    return { words: plainWords(folded), variants: otherWords(folded).map(toWord) }
  const { inOrder, variants } = cut(folded)
  return { words: inOrder.map(toWord), variants: variants.map(toWord) }
}

/** True for a pair of characters, and for a single character, of a script that is cut into pairs. */
export function isPaired(word: string): boolean {
  return STARTS_PAIRED.test(word)
}

/** The words of a text with their places in the unfolded text. */
export function placeWords(text: string): CutText {
  const { folded, origins } = foldInPlace(text)
  const place = ({ word, start, end }: PlacedWord): PlacedWord => {
    const lastOrigin = origins[end - 1] ?? 0
    const next = origins.slice(end).find((origin) => origin > lastOrigin)
    return { word, start: origins[start] ?? 0, end: next ?? text.length }
  }
  const { inOrder, variants } = cut(folded)
  const words = inOrder.map(place)
  const spelled = words.flatMap(({ start, end }) =>
    spelledWithDigraphs(text.slice(start, end)).map((part) => ({ word: fold(part.spelled), start, end })),
  )
  return { inOrder: words, variants: [...variants.map(place), ...spelled] }
}

/** Longest word in UTF-16 units; longer words are cut. */
const WORD_MAX_LENGTH = 64

/** Scripts whose words are cut into pairs of neighbouring characters. */
const PAIRED = String.raw`[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{sc=Hangul}]&&[\p{L}\p{N}\p{M}]]`

/** The dot between words of Katakana that are also written as one: `スター・ウォーズ`. */
const KATAKANA_DOT = String.raw`(?<=[\p{sc=Kana}ー])・(?=\p{sc=Kana})`

const STARTS_PAIRED = new RegExp(`^${PAIRED}`, 'v')

const SPACED = String.raw`[[\p{L}\p{N}\p{M}]--${PAIRED}--${SEGMENTED}]`

/**
 * A run of pairs, a run of segments, or a word. Apostrophes belong to a word between letters, and separators of
 * thousands between digits. A `+` or `#` at the end of a word belongs to it: `c++`, `c#`, but not in `client+server`,
 * `issue#42` and `100+`; `++`, and a `#` after one letter, do so before further letters too: `c++20`, `c#12`.
 */
const TOKEN = new RegExp(
  String.raw`(?!\p{M})(?:(?<paired>${PAIRED}+(?:${KATAKANA_DOT}${PAIRED}+)*)|(?<segmented>${SEGMENTED}(?:${WORD_BREAK}?${SEGMENTED})*)|${SPACED}+` +
    String.raw`(?:(?:(?<=\p{L}\p{M}*)'(?=\p{L})|(?<=\d)[,'_](?=\d{3}(?!\d)))${SPACED}+)*` +
    String.raw`(?:(?<=\p{L}\p{M}*)(?:\+{2,}|(?<=(?<!${SPACED})\p{L})#|[+#]+(?![\p{L}\p{N}+#])))?` +
    String.raw`(?:'s(?!${SPACED}))?)`,
  'gv',
)

/** Characters that need {@link TOKEN}. Most titles and texts have none. */
const NEEDS_RULES = /[^\0-\x7f]|['+#]|\d[,_]\d{3}|[a-z]\d+\.\d|\d\.\d+[a-z]{2}/

/** Cuts a text without these characters. The result is that of {@link cut}, several times as fast. */
function plainWords(folded: string): string[] {
  return (folded.match(/[a-z0-9]+/g) ?? []).map(shorten)
}

function cut(folded: string): CutText {
  const found: CutText = { inOrder: [], variants: [] }
  for (const { 0: token, index, groups = {} } of folded.matchAll(TOKEN)) {
    if (groups['paired']) cutPairs(token, index, found)
    else if (groups['segmented']) cutSegments(token, index, found)
    else if (VERSIONED.test(token) && HAS_MINOR.test(folded.slice(index + token.length)))
      cutVersioned(token, index, found)
    else if (AMOUNT.test(token) && HAS_WHOLE.test(folded.slice(Math.max(0, index - 2), index)))
      cutAmount(token, index, found)
    else cutSpaced(token, index, found)
  }
  found.variants.push(...otherWords(folded))
  return found
}

/** The first number of a version after a `v` or a name, which are also written apart: `v4` of `v4.0`, `qwen2` of `qwen2.5`. */
const VERSIONED = /^(v|\p{L}{2,})(\p{N}+)$/u
const HAS_MINOR = /^\.\d/

function cutVersioned(token: string, start: number, found: CutText): void {
  const [, name = '', number = ''] = VERSIONED.exec(token) ?? []
  if (name !== 'v') cutSpaced(name, start, found)
  found.inOrder.push(placed(number, start + name.length))
  found.variants.push(placed(token, start))
}

/** The last digits of a decimal with its unit, which are also written apart: `4ghz` of `2.4GHz`. */
const AMOUNT = /^(\p{N}+)(\p{L}{2,})$/u
const HAS_WHOLE = /\d\.$/

function cutAmount(token: string, start: number, found: CutText): void {
  const [, number = '', unit = ''] = AMOUNT.exec(token) ?? []
  found.inOrder.push(placed(number, start), placed(unit, start + number.length))
  found.variants.push(placed(token, start))
}

/**
 * A name of three letters or more right before its number, and a letter behind that: `llama3`, `gpt4o`. A number right
 * before its unit: `16gb`, but not `20th`.
 */
const NUMBERED = new RegExp(
  String.raw`(?<!${SPACED})(?:([${SPACED}&&\p{L}]{3,})(\p{N}+[${SPACED}&&\p{L}]?)|` +
    String.raw`(\p{N}+)(?!(?:st|nd|rd|th)(?!${SPACED}))([${SPACED}&&\p{L}]{2,}))(?!${SPACED})`,
  'gv',
)
const HAS_NUMBERED = /\p{L}\p{N}|\p{N}\p{L}/u

/** Words of a text in another form: the parts of `llama3` and `16gb`, and several words as one. */
function otherWords(folded: string): PlacedWord[] {
  const numbered = HAS_NUMBERED.test(folded) ? [...folded.matchAll(NUMBERED)] : []
  const parts = numbered.flatMap(({ 1: name, 2: number, 3: amount = '', 4: unit = '', index }) => {
    const [first, second] = [name ?? amount, number ?? unit]
    return [placed(first, index), placed(second, index + first.length)]
  })
  return [...parts, ...joinWords(folded)]
}

/** Signs inside names that readers also write as one word: `node.js`, `e-mail`, `at&t`, `tcp/ip`. */
const JOINT = String.raw`[.\-\/&_·\u05be\u2010\u2012\u2013\u2212]`
const HAS_JOINT = new RegExp(`(?<=${SPACED})${JOINT}(?=${SPACED})`, 'v')

/** Words between such signs. A sign between digits is part of a number, unless letters precede: `gpt-5.5`, not `1.5m`. */
const JOINED = new RegExp(
  String.raw`(?<!${SPACED}|\d[.,])(?:\p{N}+${JOINT}(?=\p{L})|\p{N}*[${SPACED}&&\p{L}]${SPACED}*${JOINT})` +
    String.raw`${SPACED}+(?:${JOINT}${SPACED}+)*`,
  'gv',
)

const PART = new RegExp(`${SPACED}+`, 'gv')

/** Words in a row that are also written as one: `gpt35` of `gpt-3.5-turbo`. */
const JOINED_MAX = 3

/** The words between the signs written as one: all of them, and each with the next ones, as `nodejs` of `node.js-based`. */
function joinWords(folded: string): PlacedWord[] {
  if (!HAS_JOINT.test(folded)) return []
  return [...folded.matchAll(JOINED)].flatMap(({ 0: name, index }) => {
    const parts = [...name.matchAll(PART)].map(({ 0: part, index: at }) => placed(part, index + at))
    const runs = parts.flatMap((_, end) =>
      [2, JOINED_MAX].flatMap((count) => (end + 1 < count ? [] : [parts.slice(end + 1 - count, end + 1)])),
    )
    const joined = [parts, ...runs].map((words) => ({
      word: shorten(words.map(({ word }) => word).join('')),
      start: words[0]?.start ?? 0,
      end: words.at(-1)?.end ?? 0,
    }))
    return joined.filter(({ word }) => /\P{N}/u.test(word))
  })
}

/** A character with its marks. The long vowel mark at the end of a long word of Katakana is optional: `サーバー`, `サーバ`. */
const CHARACTER = /(.\p{M}*)(?:(?<=[\p{sc=Kana}ー]{3})ー(?![\p{sc=Kana}ー]))?・?/gsu

function cutPairs(run: string, start: number, { inOrder, variants }: CutText): void {
  const characters = [...run.matchAll(CHARACTER)].map(({ 0: written, 1: word = '', index }) => ({
    word,
    start: start + index,
    end: start + index + written.length,
  }))
  characters.forEach((character, at) => {
    const next = characters[at + 1]
    if (next) inOrder.push({ word: character.word + next.word, start: character.start, end: next.end })
    ;(characters.length === 1 ? inOrder : variants).push(character)
  })
}

function cutSegments(run: string, start: number, { inOrder, variants }: CutText): void {
  const parts = run.split(WORD_BREAK)
  let partStart = start
  for (const part of parts) {
    const words = segmentsOf(part, partStart)
    inOrder.push(...words)
    for (const { word, start: at } of words)
      for (const { index, text } of partsOf(word)) variants.push(placed(text, at + index))
    partStart += part.length + 1
  }
  if (parts.length === 1) return
  // The dictionary may find other words where an author has separated them.
  const places = run.split('').flatMap((unit, at) => (unit === WORD_BREAK ? [] : [start + at]))
  for (const { word, start: first, end } of segmentsOf(parts.join(''), 0))
    variants.push({ word, start: places[first] ?? start, end: (places[end - 1] ?? start) + 1 })
}

const SEGMENTS = new Intl.Segmenter('th', { granularity: 'word' })

/** Characters that the dictionary reads at once: its time grows with the square of them. */
const SEGMENTED_LENGTH = 400

function segmentsOf(text: string, start: number): PlacedWord[] {
  const words: PlacedWord[] = []
  for (let at = 0; at < text.length;) {
    const segments = [...SEGMENTS.segment(text.slice(at, at + SEGMENTED_LENGTH))]
    // The last word may go on behind the characters that were read.
    const goesOn = at + SEGMENTED_LENGTH < text.length && segments.length > 1
    for (const { segment, index, isWordLike } of goesOn ? segments.slice(0, -1) : segments) {
      if (isWordLike) words.push(placed(segment, start + at + index))
    }
    at += goesOn ? (segments.at(-1)?.index ?? SEGMENTED_LENGTH) : SEGMENTED_LENGTH
  }
  return words
}

/** Longest word in UTF-16 units that may be a compound, and number of words whose parts are remembered. */
const COMPOUND_LENGTH = 24
const COMPOUNDS_MAX = 10_000

/** A part of a compound and its place in it. */
interface CompoundPart {
  index: number
  text: string
}

const partsOfWords = new Map<string, CompoundPart[]>()

/**
 * The parts of a compound that the dictionary holds as one word: `ភាសា` and `ខ្មែរ` of `ភាសាខ្មែរ`. Two halves are words if
 * the dictionary finds both in the reverse order, which is no compound, or each of them twice in a row.
 */
function partsOf(word: string): CompoundPart[] {
  const known = partsOfWords.get(word)
  if (known || word.length > COMPOUND_LENGTH) return known ?? []
  // By place and text: words without a meaning can be cut nearly anywhere, and many cuts have parts in common.
  const parts = new Map<string, CompoundPart>()
  for (const { index } of word.matchAll(/(?<=..[^\u17d2\u1039])(?=\p{L}..)/gsu)) {
    const [left, right] = [word.slice(0, index), word.slice(index)]
    const areWords = areCut(right, left) || (areCut(left, left) && areCut(right, right))
    if (!areWords) continue
    const ofRight = partsOf(right).map((part) => ({ ...part, index: index + part.index }))
    for (const part of [{ index: 0, text: left }, ...partsOf(left), { index, text: right }, ...ofRight])
      parts.set(`${part.index} ${part.text}`, part)
  }
  if (partsOfWords.size >= COMPOUNDS_MAX) partsOfWords.clear()
  const found = [...parts.values()]
  partsOfWords.set(word, found)
  return found
}

/** True if the dictionary cuts two texts that follow each other between them, and nowhere else. */
function areCut(first: string, second: string): boolean {
  const found = [...SEGMENTS.segment(first + second)]
  return found.length === 2 && found[0]?.segment === first
}

/**
 * Articles before an apostrophe in French, Italian and Catalan, the article of Arabic, also behind a conjunction or
 * preposition, and that of Hebrew.
 */
const ELISION =
  /^(?:[cdjlmnstv]|(?:jus|lors|puis|quoi|pres|quel)?qu|un|d?all|[dn]ell|[sc]oll|quell|sull|quest|bell|sant|d?agl|degl|gl|negl|sugl|anch|com|dov|tutt)'(?=[aeiouhy])|^(?:(?:و?[بفك]?ال|و?لل)+|ה+)(?=\p{L}{3})/u

/** Names that are also found by a part: `O'Reilly`, `Ankara'da`, but not the contraction `don't`. */
const NAME_WITH_APOSTROPHE = /\p{L}'(?!(?:[dmst]|ll|re|ve)$)/u

function cutSpaced(token: string, start: number, { inOrder, variants }: CutText): void {
  const [elided = ''] = ELISION.exec(token) ?? []
  const unpossessed = token.replace(/'s$/, '')
  const stem = unpossessed.slice(elided.length)
  const whole = placed(stem.replaceAll(/[',_]/g, ''), start + elided.length, stem.length)
  inOrder.push(whole)
  for (const form of new Set([unpossessed, token]))
    if (form !== stem) variants.push(placed(form.replaceAll("'", ''), start, form.length))
  if (!NAME_WITH_APOSTROPHE.test(stem)) return
  for (const { 0: part, index } of stem.matchAll(/[^']{3,}/g))
    variants.push(placed(part, start + elided.length + index))
}

function placed(word: string, start: number, length = word.length): PlacedWord {
  return { word: shorten(word), start, end: start + length }
}

function shorten(word: string): string {
  if (word.length <= WORD_MAX_LENGTH) return word
  return word.slice(0, WORD_MAX_LENGTH).toWellFormed().replace('\ufffd', '')
}
