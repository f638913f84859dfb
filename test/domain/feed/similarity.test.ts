import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { likeness, reasonsOf, wordsOf } from '../../../src/domain/feed/search-words.ts'
import { itemsOfKey, saveKey } from '../../../src/domain/feed/source.ts'
const counts = {
  items: 100_000,
  of: new Map([
    ['the', 20_000],
    ['of', 15_000],
    ['notes', 600],
    ['on', 9_000],
    ['ffts', 3],
    ['rust', 1_700],
  ]),
}

const compare = (a: string, b: string) => likeness(wordsOf(a), wordsOf(b), counts)

describe('how alike two titles are', () => {
  test('is one for the same words in any order, and nothing without a shared one', () => {
    expect(compare('Notes on FFTs', 'FFTs: notes, on').score).toBe(1)
    expect(compare('Notes on FFTs', 'the rust').score).toBe(0)
    expect(compare('!', 'rust').score).toBe(0)
  })

  test('is more for a rare word than for common ones', () => {
    const { score, shared } = compare('Notes on the FFTs', 'More FFTs')
    expect(score).toBeGreaterThan(compare('Notes on the FFTs', 'On the road').score)
    expect(shared).toEqual(['ffts'])
  })

  test('is never outside of zero and one', () => {
    const title = fc.array(fc.constantFrom('the', 'of', 'ffts', 'unknown', 'other', 'rust'), { maxLength: 8 })
    fc.assert(
      fc.property(title, title, (a, b) => {
        const { score } = likeness(a, b, counts)
        expect(score).toBeGreaterThanOrEqual(0)
        expect(score).toBeLessThanOrEqual(1 + 1e-9)
      }),
    )
  })

  test('tells why items are similar', () => {
    const why = (a: string, b: string, samePage = false) => reasonsOf(compare(a, b), samePage, counts)
    expect(why('Notes on FFTs', 'Notes on FFTs', true)).toEqual(['same-discussion', 'near-duplicate-title'])
    expect(why('Notes on FFTs: for users', 'FFTs explained')).toEqual(['same-subject'])
    expect(why('Notes on the road', 'On the other notes')).toEqual([])
    expect(why('x', 'y', true)).toEqual(['same-discussion'])
  })
})

describe('the events a save key may name', () => {
  test.each([
    ['hn-1', [['hn', '1']]],
    ['hype-github-a/b-c', [['hype:github', 'a/b-c']]],
    [
      'hype-hf-papers-1',
      [
        ['hype:hf', 'papers-1'],
        ['hype:hf-papers', '1'],
      ],
    ],
    ['hn-', []],
    ['unknown-1', []],
    ['', []],
  ])('%s', (key, events) => {
    expect(
      itemsOfKey(key)
        .map(({ source, sourceId }) => [source, sourceId])
        .slice(0, 2),
    ).toEqual(events)
  })

  test('hold the event the key was made of', () => {
    const source = fc.constantFrom('hn', 'lobsters', 'lesswrong', 'github', 'hype:reddit', 'hype:a-b-c')
    fc.assert(
      fc.property(source, fc.string({ minLength: 1, unit: 'grapheme' }), (name, sourceId) => {
        expect(itemsOfKey(saveKey(name, sourceId))).toContainEqual({ source: name, sourceId })
      }),
    )
  })
})
