import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { firstBytes, firstCodePoints, strictLine, visibleLine, visibleText } from '../../src/domain/text.ts'
/** Every code point alike, halves of pairs among them. */
const anyText = fc.array(fc.nat(0x10ffff), { maxLength: 20 }).map((points) => String.fromCodePoint(...points))

const HIDDEN =
  /[\p{Cc}\p{Co}\u{e0000}-\u{e0fff}\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\u00ad\ufeff]/u

describe('stored text', () => {
  test.each([
    ['emoji sequences', '👩‍💻 👨‍👩‍👧 ❤️ 👍🏽 1️⃣ 🏳️‍🌈'],
    ['joiners of Persian', 'می‌خواهم'],
    ['nothing of controls', 'a\u0000b\u001b[31mc\u007fd\u009be', 'ab[31mcde'],
    ['nothing of bytes in variation selectors', 'a\u{e0100}\u{e01ef}\ufe00\ufe0fb', 'ab'],
    ['nothing of annotations', 'a\ufff9b\ufffac\ufffbd', 'abcd'],
    ['nothing of private use', 'a\ue000b\u{f0000}c', 'abc'],
    ['no halves of pairs', 'a\ud83db', 'a\ufffdb'],
    ['one end of a line alone', 'a\r\nb\rc\u2028d\u0085e\tf', 'a\nb\nc\nd\ne f'],
  ])('stored text keeps %s', (_, text, expected = text) => {
    expect(visibleText(text)).toBe(expected)
  })

  test('cleaned text stays unchanged, and contains nothing hidden', () => {
    // prettier-ignore
    const pieces = [
      'a', '1', '👩', '🏽', '❤', 'م', 'क', '\u094d', '\u0301', '\u20e3', '\u200c', '\u200d', '\ufe0e',
      '\ufe0f', '\ue000', '\u200b', '\u{e0041}', '\n', '\r', '\t', '\ud83d', ' ',
    ]
    const texts = fc.oneof(
      anyText,
      fc.array(fc.constantFrom(...pieces), { maxLength: 20 }).map((each) => each.join('')),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const clean = visibleText(text)
        expect(visibleText(clean)).toBe(clean)
        expect(clean.isWellFormed()).toBe(true)
        expect(clean.replaceAll('\n', '')).not.toMatch(HIDDEN)
        expect(visibleLine(text)).not.toContain('\n')
      }),
      { numRuns: 1_000 },
    )
  })
})

test('settings lose every joiner', () => {
  expect(strictLine('👩‍💻 می‌خواهم ❤️')).toBe('👩💻 میخواهم ❤')
})

test('texts are cut between characters', () => {
  expect(firstCodePoints('👍👍👍', 2)).toBe('👍👍')
  expect(firstCodePoints('abc', 3)).toBe('abc')
  expect([3, 4, 7, 8].map((bytes) => firstBytes('👍👍', bytes))).toEqual(['', '👍', '👍', '👍👍'])
  expect([2, 3, 9].map((bytes) => firstBytes('aяb', bytes))).toEqual(['a', 'aя', 'aяb'])
})
