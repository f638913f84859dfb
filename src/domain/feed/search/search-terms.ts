import { QUERY_MAX_LENGTH, QUERY_MAX_WORDS } from './search.ts'
import { fold, spelledWithDigraphs } from './fold.ts'
import { cutWords, isPaired, tokenize } from './tokenize.ts'
import type { CutText, PlacedWord } from './tokenize.ts'

/** Terms of search texts, for searches, trends and rules alike (docs/api.md). */

/** One term of a query: words that must follow each other; the last one may be a prefix. */
export interface QueryTerm {
  words: string[]
  /**
   * The same words in other forms, which also match: `nodejs` for `node.js`, `whats` for `what's`, `mueller` for `müller`,
   * and the words `rfc 9110` for `rfc9110`.
   */
  otherForms?: string[][]
  /** The word as one with its neighbours, which also matches: `chatgpt` for each word of `chat gpt`. */
  joined?: string[]
  prefix: boolean
  /** True for a phrase in quotation marks. */
  quoted: boolean
}

/** Shortest prefix in a query; one letter would match half of all titles. */
const PREFIX_MIN_LENGTH = 2

/** Most prefixes in a query, because each matches many words. */
const PREFIXES_MAX = 3

const QUOTATION_MARKS = /[“”„‟«»]/g
const PIECES = /"([^"]*)"?|[^\s"]+/gu

/**
 * Parses a search text (docs/api.md): words, `"phrases"` and `prefix*`. Every text is valid; one without letters or
 * digits gives no terms.
 *
 * @returns distinct terms with at most {@link QUERY_MAX_WORDS} words in all; the rest of the text is ignored. At most
 *   {@link PREFIXES_MAX} terms are prefixes; further ones are whole words
 */
export function parseSearchText(text: string): QueryTerm[] {
  const typed = text.slice(0, QUERY_MAX_LENGTH).replace(QUOTATION_MARKS, '"')
  const spellings = new Map(
    spelledWithDigraphs(typed).map(({ written, spelled }) => [
      tokenize(written).join(' '),
      tokenize(spelled),
    ]),
  )
  return parseFolded(fold(typed)).map((term, at, all) => {
    const spelled = spellings.get(term.words.join(' ')) ?? []
    const isSpelled = term.words.length === 1 && spelled.length > 0
    const joined = [...joinedWith(all[at - 1], term), ...joinedWith(term, all[at + 1])]
    return {
      ...withForms(term, isSpelled ? [spelled] : []),
      ...(joined.length > 0 && { joined }),
    }
  })
}

function withForms(term: QueryTerm, forms: string[][]): QueryTerm {
  return forms.length === 0 ? term : { ...term, otherForms: [...(term.otherForms ?? []), ...forms] }
}

/**
 * Two words that follow each other, written as one; of two numbers at least one must have letters. The article `a` would
 * make other words: `away` of `a way`.
 */
function joinedWith(first: QueryTerm | undefined, second: QueryTerm | undefined): string[] {
  if (!first || !second || first.prefix || !isSingle(first) || !isSingle(second)) return []
  const joined = `${first.words[0]}${second.words[0]}`
  return first.words[0] === 'a' || /^\p{N}+$/u.test(joined) ? [] : [joined]
}

function isSingle({ words, quoted }: QueryTerm): boolean {
  return !quoted && words.length === 1 && !words.some(isPaired)
}

/** The terms of a text that {@link fold} has returned. */
function parseFolded(typed: string): QueryTerm[] {
  const terms = new Map<string, QueryTerm>()
  let wordsLeft = QUERY_MAX_WORDS
  for (const [piece, phrase] of typed.matchAll(PIECES)) {
    const typedWords = cutWords(phrase ?? piece)
    const parts =
      phrase === undefined
        ? toTerms(typedWords.words, piece.endsWith('*'))
        : [{ words: typedWords.words, prefix: false, quoted: true }]
    for (const term of parts) {
      const words = term.words.slice(0, wordsLeft)
      const isWhole = words.length === term.words.length
      const prefix = term.prefix && isWhole && mayAddPrefix([...terms.values()])
      const name = JSON.stringify([words, prefix])
      if (words.length === 0 || terms.has(name)) continue
      terms.set(name, withForms({ ...term, words, prefix }, otherFormsOf(words, typedWords.variants)))
      wordsLeft -= words.length
    }
  }
  return [...terms.values()]
}

/** @param variants those of the text that holds the words */
function otherFormsOf(words: readonly string[], variants: readonly string[]): string[][] {
  const [word = ''] = words
  const joined = words.length > 1 ? words.join('') : `${word}s`
  const second = variants.findIndex((part, at) => at > 0 && `${variants[at - 1]}${part}` === word)
  return [
    ...(variants.includes(joined) ? [[joined]] : []),
    ...(words.length === 1 && second > 0 ? [variants.slice(second - 1, second + 1)] : []),
  ]
}

/**
 * Returns the terms of a piece between spaces. Its words follow each other (`node.js`). Words of paired scripts form separate
 * terms, and so do single characters, which are indexed out of order.
 */
function toTerms(words: readonly string[], prefix: boolean): QueryTerm[] {
  const terms: QueryTerm[] = []
  for (const word of words) {
    const last = terms.at(-1)
    const before = last?.words.at(-1)
    if (before !== undefined && canFollow(before, word)) last?.words.push(word)
    else terms.push({ words: [word], prefix: false, quoted: false })
  }
  const last = terms.at(-1)
  if (last && prefix) last.prefix = canBePrefix(last)
  return terms
}

const SINGLE = /^.\p{M}*$/su

function canFollow(word: string, next: string): boolean {
  if (!isPaired(word) || !isPaired(next)) return isPaired(word) === isPaired(next)
  return !SINGLE.test(word) && !SINGLE.test(next)
}

/** True if a text has every term, the words of each next to each other in their order; false without a term. */
export function hasTerms(text: readonly string[], terms: readonly QueryTerm[]): boolean {
  const has = (term: QueryTerm): boolean => {
    const [word] = term.words
    const isPlain = !term.prefix && term.otherForms === undefined && term.joined === undefined
    if (term.words.length === 1 && word !== undefined && isPlain) return text.includes(word)
    return formsOf(term).some((form) => startsOf(text, form).length > 0)
  }
  return terms.length > 0 && terms.every(has)
}

/** The term, and its words in other forms. */
export function formsOf(term: QueryTerm): Pick<QueryTerm, 'words' | 'prefix'>[] {
  const { otherForms = [], joined = [], prefix } = term
  const others = [...otherForms, ...joined.map((word) => [word])]
  return [term, ...others.map((words) => ({ words, prefix }))]
}

/** The same terms without the words that are written as one with their neighbours; null when that changes nothing. */
export function withoutJoined(terms: readonly QueryTerm[]): QueryTerm[] | null {
  if (terms.every(({ joined }) => joined === undefined)) return null
  return terms.map((term) => ({ ...term, joined: [] }))
}

/** Positions of words that follow each other in a text, which may be long: most positions differ in their first word. */
function startsOf(text: readonly string[], { words, prefix }: Pick<QueryTerm, 'words' | 'prefix'>): number[] {
  const [first = ''] = words
  const follow = (start: number): boolean =>
    words.every((word, index) => {
      const found = text[start + index]
      return prefix && index === words.length - 1 ? (found?.startsWith(word) ?? false) : found === word
    })
  const starts: number[] = []
  text.forEach((word, start) => {
    if (word.startsWith(first) && follow(start)) starts.push(start)
  })
  return starts
}

/** The words of a text where a term occurs; the single words of the term if they are nowhere next to each other. */
export function findTerm({ inOrder, variants }: CutText, term: QueryTerm): PlacedWord[] {
  const found = [...inOrder, ...variants]
  const words = found.map(({ word }) => word)
  const places = formsOf(term).flatMap((form) =>
    startsOf(words, form).flatMap((start) => found.slice(start, start + form.words.length)),
  )
  return places.length > 0 ? places : found.filter(({ word }) => term.words.includes(word))
}

/** The same terms with the last one as a prefix, for a query still being typed; null when that changes nothing. */
export function withLastAsPrefix(terms: readonly QueryTerm[]): QueryTerm[] | null {
  const last = terms.at(-1)
  if (!last || last.prefix || last.quoted || !mayAddPrefix(terms) || !canBePrefix(last)) return null
  return [...terms.slice(0, -1), { ...last, prefix: true }]
}

function mayAddPrefix(terms: readonly QueryTerm[]): boolean {
  return terms.filter(({ prefix }) => prefix).length < PREFIXES_MAX
}

/** Pairs find beginnings of words anyway. */
function canBePrefix({ words }: QueryTerm): boolean {
  const word = words.at(-1) ?? ''
  return word.length >= PREFIX_MIN_LENGTH && !isPaired(word)
}
