import { describe, expect, test } from 'vitest'
import {
  discussionUrl,
  hypeProviderOf,
  isKnownSource,
  isNewsSource,
  itemsOfKey,
  saveKey,
  vouchingSource,
} from '../../../src/domain/feed/source.ts'

/** The table of decisions.md, part 1. */
const TABLE: [string, string, boolean, string | null, string | null][] = [
  ['hn', 'hn', true, null, 'https://news.ycombinator.com/item?id=42'],
  ['lobsters', 'lobsters', true, null, 'https://lobste.rs/s/42'],
  ['lesswrong', 'lesswrong', true, null, 'https://www.lesswrong.com/posts/42'],
  ['hype:github', 'hype-github', false, 'github', null],
  ['hype:huggingface', 'hype-huggingface', false, 'huggingface', null],
  ['hype:replicate', 'hype-replicate', false, 'replicate', null],
  ['hype:reddit', 'hype-reddit', false, 'reddit', null],
  ['midjourney', 'midjourney', false, null, null],
  ['github', 'github', false, null, null],
]

test.each(TABLE)(
  'the source %s has the save keys %s-, is news: %s, hype of %s, discussed at %s',
  (...row) => {
    const [source, prefix, news, provider, discussion] = row
    expect(isKnownSource(source)).toBe(true)
    for (const sourceId of ['a/b:c-1', '-', 'a\nb']) {
      expect(saveKey(source, sourceId)).toBe(`${prefix}-${sourceId}`)
      expect(itemsOfKey(`${prefix}-${sourceId}`)[0]).toEqual({ source, sourceId })
    }
    expect([isNewsSource(source), hypeProviderOf(source)]).toEqual([news, provider])
    expect(discussionUrl(source, '42')).toBe(discussion)
  },
)

test('any provider is hype, but not of two names', () => {
  const sources = ['hype:0', 'hype:', 'hype:a:b', 'xhype:github']
  expect(sources.map(isKnownSource)).toEqual([true, false, false, false])
  expect(sources.map(hypeProviderOf)).toEqual(['0', null, null, null])
  expect(sources.filter(isNewsSource)).toEqual([])
})

describe('a save key', () => {
  const none = ' hn hn- -1 HN-1 digg-1 hype-github hype-github- hype-1 hype:github-1'.split(' ')

  test.each([...none])('%j is not a save key', (key) => {
    expect(itemsOfKey(key)).toEqual([])
  })

  test('a save key has at most 132 characters, with any number of code units', () => {
    const sourceId = '😀'.repeat(129)
    expect(itemsOfKey(`hn-${sourceId}`)).toEqual([{ source: 'hn', sourceId }])
    expect(itemsOfKey(`hn-${sourceId}x`)).toEqual([])
  })
})

test.each([
  ['hn:firebase-item', 'hn'],
  ['hype:github:api', 'hype:github'],
  ['hype:github', null],
  ['hn: ', null],
  ['hn', null],
  ['usenet:group', null],
])('the provenance %j is of the source %j', (provenance, source) => {
  expect(vouchingSource(provenance)).toBe(source)
})
