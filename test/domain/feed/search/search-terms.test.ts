import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  hasTerms,
  parseSearchText,
  withLastAsPrefix,
} from '../../../../src/domain/feed/search/search-terms.ts'
import { QUERY_MAX_LENGTH } from '../../../../src/domain/feed/search/search.ts'
import { indexedWords } from '../../../../src/domain/feed/search/tokenize.ts'
import { anyText, wordyText } from '../../../support/any-text.ts'

describe('a search text', () => {
  const unit = (words: string[], prefix = false, quoted = false) => ({ words, prefix, quoted })
  const phrase = (...words: string[]) => unit(words, false, true)
  const begun = (word: string) => unit([word], true)
  /** Words that are also written as one with each neighbour. */
  const single = (...words: string[]) =>
    words.map((word, at) => {
      const pairs = [words.slice(at - 1, at + 1), words.slice(at, at + 2)].filter(
        ({ length }) => length === 2,
      )
      const joined = pairs.map((pair) => pair.join(''))
      return { ...unit([word]), ...(joined.length > 0 && { joined }) }
    })
  const numbered = (count: number, from = 0): string[] =>
    Array.from({ length: count }, (_, at) => `w${from + at}`)

  test.each([
    [
      'Kuber\u200bnetes’s “show\u00ad hn” C＋＋',
      [{ ...unit(['kubernetes']), otherForms: [['kubernetess']] }, phrase('show', 'hn'), ...single('c++')],
    ],
    ['"not closed', [phrase('not', 'closed')]],
    ['東京・京都Rust', [unit(['東京', '京都']), ...single('rust')]],
    ['"" * ( ) \' -- ; \0', []],
    ['aa* bb* cc* dd* ee*', [begun('aa'), begun('bb'), begun('cc'), ...single('dd', 'ee')]],
    [`"${numbered(200).join(' ')}" rust`, [phrase(...numbered(32))]],
    // Where the word that was begun is cut off, no beginning is looked for.
    [
      `${'rust '.repeat(50)}${'"show hn" '.repeat(40)}${numbered(29).join(' ')}`,
      [...single('rust'), phrase('show', 'hn'), ...single(...numbered(29))],
    ],
  ])('the search text %.60j', (text, units) => {
    expect(parseSearchText(text)).toEqual(units)
  })

  test('a query may end in a prefix, except for a phrase, a prefix and one letter', () => {
    const [first, last] = single('my', 'postgr')
    expect(withLastAsPrefix(parseSearchText('my postgr'))).toEqual([first, { ...last, prefix: true }])
    for (const text of ['"a phrase"', 'begun*', 'x', '', 'aa* bb* cc* dd'])
      expect(withLastAsPrefix(parseSearchText(text))).toBeNull()
  })

  test.each([
    ['nodejs', 'Node.js 22'],
    ['.net', 'Learn .NET'],
    ['google+', 'Google+ is back'],
    ['google', 'Google is back'],
    ['reilly', "O'Reilly books"],
    ['Rust+WebAssembly', 'Rust WebAssembly'],
    ['rust', 'Rust+WebAssembly for games'],
    ['server', 'client+server in 23 lines'],
    ['42', 'Issue#42 explained'],
    ['f#', 'F# for fun'],
    ['at&t', 'AT&T breach'],
    ['lodz', 'Łódź opens a lab'],
    ['kobenhavn', 'København cyclists'],
    ['encyclopaedia', 'Encyclopædia online'],
    ['istanbul igdir', 'Iğdır ve İstanbul'],
    ['猫', '賢い猫'],
    ['서버', '서버를 운영하다'],
    ['ພາສາ', 'ພາສາລາວແລະຄອມພິວເຕີ'],
    ['រៀន', 'រៀនភាសាខ្មែរ'],
    ['node.js', 'NodeJS 22'],
    ['asp.ne*', 'ASPNET 9'],
    ['サーバー', 'サーバ運用'],
    ['ドラゴンクエスト', 'ドラゴン・クエスト'],
    ['می\u200cروم', 'میروم به خانه'],
    ['צהל', 'צה״ל הודיע'],
    ['mueller', 'Müller'],
    ['müller mueller', 'Mueller'],
    ['müller årh*', 'Mueller in Aarhus'],
    ["müller's", 'Müllers Bäckerei'],
    ["what's new", 'Whats new in Kotlin'],
    ["let's encrypt*", 'Lets Encrypt issues certificates'],
    ['gpt3.5', 'GPT-3.5-turbo retired'],
    ['llama3.1', 'meta-llama/Llama-3.1-8B on a phone'],
    ['qwen 2.5', 'Qwen2.5-Coder is here'],
    ['python3.13', 'Python 3.13 is out'],
    ['zod 4.0', 'Zod v4.0 released'],
    ['v4', 'Zod v4.0 released'],
    ['v2.1.4', 'Deno 2.1.4 changelog'],
    ['16 gb', 'A phone with 16GB of RAM'],
    ['24GB', 'RTX 4090 with 24 GB'],
    ['2.4ghz', 'Interference on 2.4 GHz'],
    ['1.6 gb', 'A social network in 1.6GB'],
    ['chat gpt', 'ChatGPT is down'],
    ['what is open ai*', 'What is OpenAI?'],
    ['rfc9110', 'RFC 9110 is out'],
    ['"gpt4"', 'GPT 4 is slow'],
  ])('the query %j finds the title %j', (query, title) => {
    expect(hasTerms(indexedWords(title), parseSearchText(query))).toBe(true)
  })

  test.each([
    ['15m', 'raises $1.5M'],
    ['c', 'C++ and C#'],
    ['disney+', 'Disney prices rise'],
    ['4', 'Zod v4 released'],
    ['google+', 'Google is back'],
    ['gpt-5.5', 'GPT-5 is out'],
    ['データ', '半角ｻｰﾊﾞｰ運用'],
    ['11', 'The 11th hour'],
    ['24gb', '24 cores and 1 GB'],
    ['"chat gpt"', 'ChatGPT is down'],
    ['1 2', '12 angry men'],
    ['a way', 'Migrating away from Rust'],
  ])('the query %j does not find the title %j', (query, title) => {
    expect(hasTerms(indexedWords(title), parseSearchText(query))).toBe(false)
  })

  test('a text has the terms of its own text, whatever it is', () => {
    const text = fc.oneof(anyText({ maxLength: QUERY_MAX_LENGTH / 2 }), wordyText({ maxLength: 100 }))
    fc.assert(
      fc.property(text, (written) => {
        const terms = parseSearchText(written)
        expect(terms.length === 0 || hasTerms(indexedWords(written), terms)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})
