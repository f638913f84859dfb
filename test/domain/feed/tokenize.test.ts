import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  titleSimilarity,
  parseSearchText,
  withLastAsPrefix,
  tokenize,
} from '../../../src/domain/feed/tokenize.ts'
import { QUERY_MAX_WORDS } from '../../../src/domain/feed/search.ts'
import { anyText } from '../../support/any-text.ts'

describe('the words of a text', () => {
  test.each([
    ['Größe, Café & naïve', 'große cafe naive'],
    ["Don't panic — it's Zig’s day", 'dont panic its zigs day'],
    ['C++ and C# beat node.js', 'c++ and c# beat node js'],
    ['大模型训练 v2', '大模 模型 型训 训练 v2'],
    ['字', '字'],
    ['ﬁle Ｆｕｌｌ ½', 'file full 1 2'],
    ['हिन्दी भाषा', 'हिन्दी भाषा'],
    ['!?… \0 ❤️ "" -- \ud800', ''],
    // A mark or a sign that stands alone after a script without spaces is left out.
    ['\u{20000}\u1dc0', '\u{20000}'],
    ['漢字+ c漢', '漢字 c 漢'],
    ['x'.repeat(10_000), 'x'.repeat(64)],
  ])('the words of %.40j', (text, words) => {
    expect(tokenize(text)).toEqual(words === '' ? [] : words.split(' '))
  })

  test('the words of a text contain no query syntax, and are the words of their own text', () => {
    const text = fc.oneof(anyText({ maxLength: 200 }), fc.string({ unit: 'grapheme' }))
    fc.assert(
      fc.property(text, (written) => {
        const words = tokenize(written)
        const isPlain = (word: string): boolean => /^[\p{L}\p{N}][\p{L}\p{N}\p{M}]*[+#]*$/u.test(word)
        expect(words.filter((word) => !isPlain(word) || !word.isWellFormed())).toEqual([])
        const isPair = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u
        const whole = words.filter((word) => !isPair.test(word))
        expect(tokenize(whole.join(' '))).toEqual(whole)
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('a search text', () => {
  const unit = (words: string[], prefix = false, quoted = false) => ({ words, prefix, quoted })
  const phrase = (...words: string[]) => unit(words, false, true)
  const begun = (word: string) => unit([word], true)
  const single = (...words: string[]) => words.map((word) => unit([word]))
  const numbered = (count: number, from = 0): string[] =>
    Array.from({ length: count }, (_, at) => `w${from + at}`)

  test.each([
    ['rust  async', single('rust', 'async')],
    ['"show hn" rust', [phrase('show', 'hn'), ...single('rust')]],
    ['“show hn”', [phrase('show', 'hn')]],
    ['post*', [begun('post')]],
    ['s*', single('s')],
    ['node.js*', [...single('node'), begun('js')]],
    ['"not closed', [phrase('not', 'closed')]],
    ['rust rust RUST', single('rust')],
    ['大模型', [unit(['大模', '模型'])]],
    ['模', [begun('模')]],
    ['NEAR(a b) AND title:x -y ^z {q}', single('near', 'a', 'b', 'and', 'title', 'x', 'y', 'z', 'q')],
    ['"" * ( ) \' -- ; \0', []],
    ['aa* bb* cc* dd* ee*', [begun('aa'), begun('bb'), begun('cc'), ...single('dd', 'ee')]],
    [numbered(40).join(' '), single(...numbered(32))],
    [`"${numbered(200).join(' ')}" rust`, [phrase(...numbered(32))]],
    [
      `${numbered(30).join(' ')} "${numbered(10, 30).join(' ')}"`,
      [...single(...numbered(30)), phrase('w30', 'w31')],
    ],
    ['字'.repeat(100), [unit(Array<string>(32).fill('字字'))]],
    // Where the word that was begun is cut off, no beginning is looked for.
    [`${'字'.repeat(100)}*`, [unit(Array<string>(32).fill('字字'))]],
    [
      `${'rust '.repeat(50)}${'"show hn" '.repeat(40)}${numbered(29).join(' ')}`,
      [...single('rust'), phrase('show', 'hn'), ...single(...numbered(29))],
    ],
  ])('the search text %.60j', (text, units) => {
    expect(parseSearchText(text)).toEqual(units)
  })

  test('a query has a bounded number of words, including those of its phrases', () => {
    expect(QUERY_MAX_WORDS).toBe(32)
    fc.assert(
      fc.property(anyText({ maxLength: 3_000 }), (text) => {
        const units = parseSearchText(text)
        expect(units.flatMap(({ words }) => words).length).toBeLessThanOrEqual(QUERY_MAX_WORDS)
        expect(units.every(({ words }) => words.length > 0)).toBe(true)
      }),
    )
  })

  test('a query may end in a prefix, except for a phrase, a prefix and one letter', () => {
    expect(withLastAsPrefix(parseSearchText('a postgr'))).toEqual([...single('a'), begun('postgr')])
    for (const text of ['"a phrase"', 'begun*', 'x', '', 'aa* bb* cc* dd'])
      expect(withLastAsPrefix(parseSearchText(text))).toBeNull()
  })
})

describe('the similarity of two titles', () => {
  const of = { the: 20_000, of: 15_000, notes: 600, on: 9_000, ffts: 3, rust: 1_700 }
  const counts = { items: 100_000, of: new Map(Object.entries(of)) }
  const compare = (a: string, b: string) => titleSimilarity(tokenize(a), tokenize(b), counts)

  test('the similarity is 1 for the same words in any order, and 0 without a shared word', () => {
    expect(compare('Notes on FFTs', 'FFTs: notes, on').score).toBe(1)
    expect(compare('Notes on FFTs', 'the rust').score).toBe(0)
    expect(compare('!', 'rust').score).toBe(0)
  })

  test('the similarity is always between 0 and 1', () => {
    const title = fc.array(fc.constantFrom('the', 'of', 'ffts', 'unknown', 'other', 'rust'), { maxLength: 8 })
    fc.assert(
      fc.property(title, title, (a, b) => {
        const { score } = titleSimilarity(a, b, counts)
        expect(score).toBeGreaterThanOrEqual(0)
        expect(score).toBeLessThanOrEqual(1 + 1e-9)
      }),
    )
  })
})
