import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { widthOf, wrap } from '../../../../src/cli/commands/chat/wrap.ts'

const rows = (text: string, columns: number): string[] =>
  wrap([{ text, styles: [] }], columns).map((row) => row.text)

describe('wrapping', () => {
  test('a row is broken at spaces, which are dropped', () => {
    expect(rows('ab cd efg', 5)).toEqual(['ab cd', 'efg'])
    expect(rows('ab  cdefgh  ij', 6)).toEqual(['ab ', 'cdefgh', 'ij'])
  })

  test('a word longer than a row is broken, and so is text beside wide characters', () => {
    expect(rows('abcdefgh', 3)).toEqual(['abc', 'def', 'gh'])
    expect(rows('漢字漢字漢', 5)).toEqual(['漢字', '漢字', '漢'])
    expect(rows('ab漢字cd', 4)).toEqual(['ab漢', '字cd'])
  })

  test('a grapheme is never split', () => {
    expect(rows('👩‍💻👩‍💻👩‍💻', 4)).toEqual(['👩‍💻👩‍💻', '👩‍💻'])
    expect(rows('e\u0301e\u0301e\u0301', 2)).toEqual(['e\u0301e\u0301', 'e\u0301'])
  })

  test('a style is closed at the end of a row and opened in the next', () => {
    expect(wrap([{ text: 'ab cd', styles: ['bold'] }], 2).map((row) => row.text)).toEqual([
      '\x1b[1mab\x1b[22m',
      '\x1b[1mcd\x1b[22m',
    ])
  })

  test('each part of a row has its own style and link', () => {
    const spans = [
      { text: 'a ', styles: [] },
      { text: 'b', styles: ['bold'] },
      { text: ' c ', styles: [] },
      { text: 'd', styles: [], link: 'https://e.org/' },
      { text: ' e', styles: [] },
    ] as const
    expect(wrap(spans, 80).map((row) => row.text)).toEqual([
      'a \x1b[1mb\x1b[22m c \x1b]8;;https://e.org/\x1b\\d\x1b]8;;\x1b\\ e',
    ])
  })

  test('control characters are removed', () => {
    expect(rows('a\x1b[31mb\u009bc\x07\u202ed', 80)).toEqual(['a[31mbcd'])
  })

  test('every row fits its width, and all visible characters appear in order', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', ' ', '漢', '👍', 'é', '-', '\n'),
      maxLength: 200,
    })
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 30 }), (given, columns) => {
        const wrapped = wrap([{ text: given, styles: ['cyan'] }], columns)
        for (const row of wrapped) {
          const shown = stripVTControlCharacters(row.text)
          expect(row.width).toBe(widthOf(shown))
          expect(row.width).toBeLessThanOrEqual(columns)
        }
        const shown = wrapped.map((row) => stripVTControlCharacters(row.text)).join('')
        expect(shown.replaceAll(/\s/g, '')).toBe(given.replaceAll(/\s/g, ''))
      }),
      { numRuns: 1_000, examples: [[' a漢', 2]] },
    )
  })
})
