import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  firstBytes,
  firstCodePoints,
  fitLists,
  fitText,
  shownItem,
  strictLine,
  visibleLine,
  visibleText,
} from '../../../src/domain/agent/shown-data.ts'
import { byteLengthOf } from '../../../src/domain/order.ts'

const item = {
  key: 'hn-1',
  source: 'hn',
  title: 'a title',
  url: 'https://example.org/1',
  discussionUrl: 'https://news.ycombinator.com/item?id=1',
  points: 1,
  comments: null,
  publishedAt: '2026-03-01T12:00:00.000Z',
}

describe('an item', () => {
  test('is shown on one line each, without what hides', () => {
    expect(shownItem({ ...item, title: ' a\n\u202etitle\u{e0041} ' })).toEqual({
      key: 'hn-1',
      title: 'a title',
      link: item.url,
      source: 'hn',
      day: '2026-03-01',
      points: 1,
      comments: null,
    })
    expect(shownItem({ ...item, title: 'ж'.repeat(301) }).title).toBe(`${'ж'.repeat(300)}…`)
    expect(shownItem({ ...item, publishedAt: null }).day).toBeNull()
    expect(shownItem({ ...item, publishedAt: null, day: '2026-03-02' }).day).toBe('2026-03-02')
  })

  test.each([
    null,
    `https://example.org/${'x'.repeat(800)}`,
    'https://example.org/\u202egnp',
    'https://example.org/a b',
    'https://example.org/<x>',
  ])('is cited by its discussion when its own link cannot be: %s', (url) => {
    expect(shownItem({ ...item, url }).link).toBe(item.discussionUrl)
    expect(shownItem({ ...item, url, discussionUrl: null }).link).toBeNull()
  })
})

const lists = fc.dictionary(
  fc.constantFrom('a', 'b', 'c'),
  fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 30 }),
)

test('lists lose whole entries from their ends, counted, and only what they must', () => {
  fc.assert(
    fc.property(lists, fc.integer({ min: 80, max: 600 }), (given, maxBytes) => {
      const text = fitLists({ head: true }, given, maxBytes)
      const { head, leftOut, ...kept } = JSON.parse(text) as Record<string, unknown>
      expect(byteLengthOf(text)).toBeLessThanOrEqual(maxBytes)
      expect(head).toBe(true)
      expect(Object.keys(kept)).toEqual(Object.keys(given))
      for (const [name, entries] of Object.entries(given)) {
        const left = kept[name] as string[]
        expect(left).toEqual(entries.slice(0, left.length))
        expect((leftOut as Record<string, number> | undefined)?.[name] ?? 0).toBe(
          entries.length - left.length,
        )
      }
      if (byteLengthOf(JSON.stringify({ head: true, ...given })) + 3 <= maxBytes)
        expect(leftOut).toBeUndefined()
    }),
  )
})

test('the longest list loses first', () => {
  const [long, short] = [8, 2].map((length) => Array.from({ length }, (_, index) => `entry number ${index}`))
  const text = fitLists({}, { long: long ?? [], short: short ?? [] }, 150)
  expect(JSON.parse(text)).toEqual({ leftOut: { long: 5 }, long: long?.slice(0, 3), short })
  // Each of the two lists is reckoned with a comma more than it has.
  const all = JSON.stringify({ long, short })
  expect(fitLists({}, { long: long ?? [], short: short ?? [] }, all.length + 2)).toBe(all)
})

test('thousands of entries are cut at once, not one after the other', () => {
  const days = Array.from({ length: 50_000 }, (_, mentions) => ({ day: '2026-03-01', mentions }))
  const text = fitLists({}, { days }, 8_192)
  expect(byteLengthOf(text)).toBeGreaterThan(8_000)
  expect(text).toContain('"mentions":0}')
})

test('a text is cut between characters to what fits, however it is written', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 200 }),
      fc.integer({ min: 20, max: 300 }),
      (text, maxBytes) => {
        const written = fitText(text, (beginning) => JSON.stringify({ text: beginning }), maxBytes)
        const cut = (JSON.parse(written) as { text: string }).text
        expect(byteLengthOf(written)).toBeLessThanOrEqual(maxBytes)
        expect(text.startsWith(cut) && cut.isWellFormed()).toBe(true)
      },
    ),
  )
  expect(() => fitText('', () => 'x'.repeat(10), 9)).toThrow(RangeError)
  expect(() => fitLists({ head: 'x'.repeat(10) }, { a: ['1'] }, 9)).toThrow(RangeError)
})

/** Every code point alike, halves of pairs among them. */
const anyText = fc.array(fc.nat(0x10ffff), { maxLength: 20 }).map((points) => String.fromCodePoint(...points))

const HIDDEN =
  /[\p{Cc}\p{Co}\u{e0000}-\u{e0fff}\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\u00ad\ufeff]/u

describe('stored text', () => {
  test.each([
    ['emoji sequences', '👩‍💻 👨‍👩‍👧 ❤️ 👍🏽 1️⃣ 🏳️‍🌈'],
    ['joiners of Persian', 'می‌خواهم'],
    ['joiners of Devanagari', 'क्‍ष'],
    ['other scripts and lines', 'Привет,\nмир — 世界'],
    ['nothing of controls', 'a\u0000b\u001b[31mc\u007fd\u009be', 'ab[31mcde'],
    ['nothing of bidirectional marks', 'a\u202eb\u2066c\u2069d\u200fe\u061cf', 'abcdef'],
    ['nothing of zero-width characters', 'a\u200bb\ufeffc\u2060d\u2064e', 'abcde'],
    ['nothing of tag characters', 'a\u{e0069}\u{e0067}\u{e006e}\u{e006f}b', 'ab'],
    ['nothing of bytes in variation selectors', 'a\u{e0100}\u{e01ef}\ufe00\ufe0fb', 'ab'],
    ['nothing of deprecated format characters', 'a\u206ab\u206fc', 'abc'],
    ['nothing of annotations', 'a\ufff9b\ufffac\ufffbd', 'abcd'],
    ['nothing of soft hyphens and fillers', 'a\u00adb\u034fc\u115fd\u3164e', 'abcde'],
    ['nothing of private use', 'a\ue000b\u{f0000}c', 'abc'],
    ['no joiners between Latin letters', 'a\u200cb\u200d\u200dc', 'abc'],
    ['no joiners that hide others', 'م\u200c\u200d\u200cم', 'مم'],
    ['no halves of pairs', 'a\ud83db', 'a\ufffdb'],
    ['one end of a line alone', 'a\r\nb\rc\u2028d\u0085e\tf', 'a\nb\nc\nd\ne f'],
  ])('keeps %s', (_, text, expected = text) => {
    expect(visibleText(text)).toBe(expected)
  })

  test('is left alone once it is clean, and holds nothing hidden', () => {
    // prettier-ignore
    const pieces = [
      'a', '1', '👩', '🏽', '❤', 'م', 'क', '\u094d', '\u0301', '\u20e3', '\u200c', '\u200d', '\ufe0e',
      '\ufe0f',
      '\ue000', '\u200b', '\u{e0041}', '\n', '\r', '\t', '\ud83d', ' ',
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
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (text, bytes) => {
      const cut = firstBytes(text, bytes)
      expect(byteLengthOf(cut)).toBeLessThanOrEqual(bytes)
      expect(text.startsWith(cut) && cut.isWellFormed()).toBe(true)
      const next = String.fromCodePoint(text.codePointAt(cut.length) ?? 0)
      if (cut !== text) expect(byteLengthOf(cut + next)).toBeGreaterThan(bytes)
    }),
  )
})
