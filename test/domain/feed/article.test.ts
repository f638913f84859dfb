import { describe, expect, test } from 'vitest'
import { parseArticle } from '../../../src/domain/feed/article.ts'

const ROW = {
  key: 'hype-github-owner/name',
  text: '<p>Some  text</p>',
  fetchedAt: '2026-03-01T10:00:00+01:00',
  provenance: 'page:readability https://example.org/',
}

describe('a row of article texts', () => {
  test('is an article, its text made plain', () => {
    expect(parseArticle({ ...ROW, extra: 1 })).toEqual({
      kind: 'article',
      article: {
        items: [{ source: 'hype:github', sourceId: 'owner/name' }],
        text: 'Some text',
        fetchedAt: Date.parse('2026-03-01T09:00:00Z'),
        provenance: ROW.provenance,
      },
    })
  })

  test.each([
    ['no object', [], 'not a JSON object'],
    ['null', null, 'not a JSON object'],
    ['no key', { ...ROW, key: undefined }, 'key: '],
    ['a key of no source', { ...ROW, key: 'digg-1' }, 'key: must be a save key'],
    ['a key that is too long', { ...ROW, key: `hn-${'1'.repeat(130)}` }, 'key: must be a save key'],
    ['an empty text', { ...ROW, text: ' <b></b> ' }, 'text: is empty'],
    ['a text with a NUL', { ...ROW, text: 'a\0b' }, 'text: contains a NUL character'],
    ['a text with half a character', { ...ROW, text: 'a\uD800' }, 'text: is not well-formed'],
    ['a time without a zone', { ...ROW, fetchedAt: '2026-03-01T10:00:00' }, 'fetchedAt: must be'],
    ['a time as a number', { ...ROW, fetchedAt: 1 }, 'fetchedAt: '],
    ['an empty provenance', { ...ROW, provenance: ' ' }, 'provenance: is empty'],
    ['a long provenance', { ...ROW, provenance: 'x'.repeat(4_097) }, 'provenance: is longer than 4096'],
  ])('with %s is bad', (_what, row, reason) => {
    expect(parseArticle(row)).toEqual({ kind: 'bad', reason: expect.stringContaining(reason) as string })
  })
})
