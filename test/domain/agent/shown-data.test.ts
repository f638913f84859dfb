import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyText } from '../../support/any-text.ts'
import { fitLists, fitText, toShownItem } from '../../../src/domain/agent/shown-data.ts'
import { byteLengthOf } from '../../../src/domain/text.ts'

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
  test('every member of an item is on one line without hidden characters', () => {
    expect(toShownItem({ ...item, title: ' a\n\u202etitle\u{e0041} ' })).toEqual({
      key: 'hn-1',
      title: 'a title',
      link: item.url,
      source: 'hn',
      day: '2026-03-01',
      points: 1,
      comments: null,
    })
    expect(toShownItem({ ...item, title: 'ж'.repeat(301) }).title).toBe(`${'ж'.repeat(300)}…`)
    expect(toShownItem({ ...item, publishedAt: null }).day).toBeNull()
    expect(toShownItem({ ...item, publishedAt: null, day: '2026-03-02' }).day).toBe('2026-03-02')
  })

  test.each([
    null,
    `https://example.org/${'x'.repeat(800)}`,
    'https://example.org/\u202egnp',
    'https://example.org/a b',
    'https://example.org/<x>',
  ])('an item is cited by its discussion when its own link is unusable: %s', (url) => {
    expect(toShownItem({ ...item, url }).link).toBe(item.discussionUrl)
    expect(toShownItem({ ...item, url, discussionUrl: null }).link).toBeNull()
  })
})

test('the longest list loses entries first, and what fits not even empty lists is refused', () => {
  const [long, short] = [8, 2].map((length) => Array.from({ length }, (_, index) => `entry number ${index}`))
  const text = fitLists({}, { long: long ?? [], short: short ?? [] }, 150)
  expect(JSON.parse(text)).toEqual({ leftOut: { long: 5 }, long: long?.slice(0, 3), short })
  const one = 'x'.repeat(50)
  expect(JSON.parse(fitLists({}, { a: [one, one], b: [] }, 100))).toEqual({
    leftOut: { a: 1 },
    a: [one],
    b: [],
  })
  expect(fitLists({}, { a: [one] }, 26)).toBe('{"leftOut":{"a":1},"a":[]}')
  expect(() => fitLists({}, { a: [one] }, 25)).toThrow(RangeError)
  // Each of the two lists is reckoned with a comma more than it has.
  const all = JSON.stringify({ long, short })
  expect(fitLists({}, { long: long ?? [], short: short ?? [] }, all.length + 2)).toBe(all)
})

test('a text is cut between characters to the size that fits, with any escapes', () => {
  fc.assert(
    fc.property(anyText({ maxLength: 200 }), fc.integer({ min: 20, max: 300 }), (text, maxBytes) => {
      const written = fitText(text, (beginning) => JSON.stringify({ text: beginning }), maxBytes)
      const cut = (JSON.parse(written) as { text: string }).text
      expect(byteLengthOf(written)).toBeLessThanOrEqual(maxBytes)
      expect(text.startsWith(cut) && cut.isWellFormed()).toBe(true)
    }),
  )
  expect(fitText('cut', (beginning) => `${beginning}${'x'.repeat(9)}`, 9)).toBe('x'.repeat(9))
  for (const text of ['', 'cut']) expect(() => fitText(text, () => 'x'.repeat(10), 9)).toThrow(RangeError)
  expect(() => fitLists({ head: 'x'.repeat(10) }, { a: ['1'] }, 9)).toThrow(RangeError)
})
