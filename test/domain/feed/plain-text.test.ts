import fc from 'fast-check'
import { parseHTML } from 'linkedom'
import { describe, expect, test } from 'vitest'
import { ARTICLE_MAX_LENGTH, plainText } from '../../../src/domain/feed/article.ts'

/** Pieces that hostile texts are made of. */
const PIECES = [
  '<', '>', '</', '<!', '<!--', '-->', '<b>', '</b>', '<script>', '</script>', '<p>', 'scr', 'ipt', 'b', '&lt;', '"',
  ' ', '\n', '\r', '\t', '\u2028', '\u200B', '\u202E', '\uFEFF', '\u{E0041}', '\u0000', '\u001B', '\uD800', '\u{1F600}', 'ä', '\u00A0',
] // prettier-ignore

const hostile = fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((pieces) => pieces.join(''))

describe('plain text', () => {
  test.each([
    ['paragraphs and lines', 'a\r\n\r\n\r\n  b \t c\rd\u2028e', 'a\n\nb c\nd\ne'],
    ['markup', '<p>One <b>two</b>.</p><p>Three<br/>four</p>', 'One two.\n\nThree\nfour'],
    ['scripts, styles and comments', 'a<script>x<b</script >b<style>p{}</style>c<!-- d -->e', 'a\nb\nc\ne'],
    ['a tag put together by leaving one out', '<scr<b>ipt>x', '< script>x'],
    ['what only looks like markup', 'if a<b && c>d: vector<int>', 'if a< b && c>d: vector< int>'],
    ['comparisons and hearts', '1 < 2, <3', '1 < 2, <3'],
    ['an unclosed tag', 'x <img src=x onerror=alert(1)', 'x < img src=x onerror=alert(1)'],
    ['escapes of a terminal', '\u001B[31mred\u0007', '[31mred'],
    ['text turned around', 'abc\u202Edef\u2066g\u2069', 'abcdefg'],
    ['hidden instructions', 'a\u{E0049}\u{E0047}b\u200Bc\u2060d\uFE0F\u{E0101}', 'abcd'],
    ['halves of surrogate pairs', 'a\uD800b', 'a\uFFFDb'],
    ['white space alone', ' \n\u00A0\u3000\u200B\n', ''],
  ])('of %s', (_what, text, plain) => {
    expect(plainText(text)).toBe(plain)
  })

  test('is cut at its limit and never inside a character', () => {
    const long = plainText('😀'.repeat(ARTICLE_MAX_LENGTH + 5))
    expect(Array.from(long)).toHaveLength(ARTICLE_MAX_LENGTH)
    expect(long.isWellFormed()).toBe(true)
    expect(plainText('x'.repeat(ARTICLE_MAX_LENGTH))).toHaveLength(ARTICLE_MAX_LENGTH)
    expect(plainText(`${'x'.repeat(ARTICLE_MAX_LENGTH - 1)} y`)).toBe('x'.repeat(ARTICLE_MAX_LENGTH - 1))
  })

  test('holds nothing an HTML parser takes for markup, and nothing unseen', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const plain = plainText(text)
        expect(plain).not.toMatch(/<[a-z/!?]/i)
        expect(parseHTML(`<html><body>${plain}</body></html>`).document.body.children).toHaveLength(0)
        expect(plain).not.toMatch(/[\p{Default_Ignorable_Code_Point}\p{Cs}]|(?!\n)\p{Cc}/u)
        expect(plain).not.toMatch(/^\s|\s$|\n{3}|[ \n] {1}| \n|\t/)
      }),
      { numRuns: 2_000 },
    )
  })

  test('of plain text is that text', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(plainText(plainText(text))).toBe(plainText(text))
      }),
      { numRuns: 2_000 },
    )
  })

  // Work that grew with the square of the length would take far longer than a test may.
  test.each(['<script>', '<!--', '<a ', '<', '<b>', '\n', ' ', '<style'])(
    'of two megabytes of %j is no more than its limit',
    (piece) => {
      const plain = plainText(piece.repeat(2_000_000 / piece.length))
      expect(plain.length).toBeLessThanOrEqual(ARTICLE_MAX_LENGTH)
      expect(plain).not.toMatch(/<[a-z/!?]/i)
    },
  )
})
