import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseSearchText, withLastBegun, wordsOf } from '../../../src/domain/feed/search-words.ts'
import { QUERY_MAX_WORDS } from '../../../src/domain/feed/search.ts'
describe('the words of a text', () => {
  test.each([
    ['Größe, Café & naïve', ['große', 'cafe', 'naive']],
    ["Don't panic — it's Zig’s day", ['dont', 'panic', 'its', 'zigs', 'day']],
    ['C++ and C# beat node.js', ['c++', 'and', 'c#', 'beat', 'node', 'js']],
    ['大模型训练 v2', ['大模', '模型', '型训', '训练', 'v2']],
    ['字', ['字']],
    ['ﬁle Ｆｕｌｌ ½', ['file', 'full', '1', '2']],
    ['हिन्दी भाषा', ['हिन्दी', 'भाषा']],
    ['!?… \0 ❤️ "" -- \ud800', []],
  ])('of %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  test('are cut when they are very long, the same on both sides', () => {
    const [word = ''] = wordsOf('x'.repeat(10_000))
    expect(word).toHaveLength(64)
    expect(wordsOf(word)).toEqual([word])
  })

  test('hold nothing that means something to a query, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const isPlain = (word: string): boolean => /^[\p{L}\p{N}][\p{L}\p{N}\p{M}]*[+#]*$/u.test(word)
        expect(wordsOf(text).filter((word) => !isPlain(word) || !word.isWellFormed())).toEqual([])
      }),
      { numRuns: 5_000 },
    )
  })

  test('leave out a mark or a sign that stands alone after a script without spaces', () => {
    expect(wordsOf('\u{20000}\u1dc0')).toEqual(['\u{20000}'])
    expect(wordsOf('漢字+ c漢')).toEqual(['漢字', 'c', '漢'])
  })

  test('are the words of their own text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        const words = wordsOf(text).filter(
          (word) => !/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(word),
        )
        expect(wordsOf(words.join(' '))).toEqual(words)
      }),
    )
  })
})

describe('what a person typed', () => {
  const unit = (words: string[], prefix = false, quoted = false) => ({ words, prefix, quoted })

  test.each([
    ['rust  async', [unit(['rust']), unit(['async'])]],
    ['"show hn" rust', [unit(['show', 'hn'], false, true), unit(['rust'])]],
    ['“show hn”', [unit(['show', 'hn'], false, true)]],
    ['post*', [unit(['post'], true)]],
    ['s*', [unit(['s'])]],
    ['node.js*', [unit(['node']), unit(['js'], true)]],
    ['"not closed', [unit(['not', 'closed'], false, true)]],
    ['rust rust RUST', [unit(['rust'])]],
    ['大模型', [unit(['大模', '模型'])]],
    ['模', [unit(['模'], true)]],
    [
      'NEAR(a b) AND title:x -y ^z {q}',
      ['near', 'a', 'b', 'and', 'title', 'x', 'y', 'z', 'q'].map((w) => unit([w])),
    ],
    ['"" * ( ) \' -- ; \0', []],
    ['', []],
    [
      'aa* bb* cc* dd* ee*',
      [unit(['aa'], true), unit(['bb'], true), unit(['cc'], true), unit(['dd']), unit(['ee'])],
    ],
  ])('%j', (text, units) => {
    expect(parseSearchText(text)).toEqual(units)
  })

  test('has a bounded number of words, those of its phrases included', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 3_000 }), (text) => {
        const units = parseSearchText(text)
        expect(units.flatMap(({ words }) => words).length).toBeLessThanOrEqual(QUERY_MAX_WORDS)
        expect(units.every(({ words }) => words.length > 0)).toBe(true)
      }),
    )
  })

  const numbered = (count: number, from = 0): string[] =>
    Array.from({ length: count }, (_, at) => `w${from + at}`)

  test('is cut after 32 words, inside a phrase too', () => {
    expect(QUERY_MAX_WORDS).toBe(32)
    expect(parseSearchText(numbered(40).join(' '))).toEqual(numbered(32).map((word) => unit([word])))
    expect(parseSearchText(`"${numbered(200).join(' ')}" rust`)).toEqual([unit(numbered(32), false, true)])
    expect(parseSearchText(`${numbered(30).join(' ')} "${numbered(10, 30).join(' ')}"`).at(-1)).toEqual(
      unit(['w30', 'w31'], false, true),
    )
    expect(parseSearchText('字'.repeat(100))).toEqual([unit(Array<string>(32).fill('字字'))])
  })

  test('looks for no beginning where the word that was begun is cut off', () => {
    const [only] = parseSearchText(`${'字'.repeat(100)}*`)
    expect(only).toMatchObject({ prefix: false })
  })

  test('counts a repeated word or phrase once', () => {
    const repeated = `${'rust '.repeat(50)}${'"show hn" '.repeat(40)}${numbered(29).join(' ')}`
    expect(parseSearchText(repeated)).toEqual([
      unit(['rust']),
      unit(['show', 'hn'], false, true),
      ...numbered(29).map((word) => unit([word])),
    ])
  })

  test('may end in a word that is only begun, but for a phrase, a beginning and one letter', () => {
    expect(withLastBegun(parseSearchText('a postgr'))).toEqual([unit(['a']), unit(['postgr'], true)])
    for (const text of ['"a phrase"', 'begun*', 'x', '', 'aa* bb* cc* dd'])
      expect(withLastBegun(parseSearchText(text))).toBeNull()
  })
})
