import { describe, expect, test } from 'vitest'
import {
  discussionUrl,
  hypeProviderOf,
  isKnownSource,
  isNewsSource,
  isRankedProvider,
  saveKey,
} from '../../../src/domain/feed/source.ts'

/** The table of decisions.md, part 1. */
const TABLE = [
  { source: 'hn', prefix: 'hn', news: true, provider: null },
  { source: 'lobsters', prefix: 'lobsters', news: true, provider: null },
  { source: 'lesswrong', prefix: 'lesswrong', news: true, provider: null },
  { source: 'hype:github', prefix: 'hype-github', news: false, provider: 'github' },
  { source: 'hype:huggingface', prefix: 'hype-huggingface', news: false, provider: 'huggingface' },
  { source: 'hype:replicate', prefix: 'hype-replicate', news: false, provider: 'replicate' },
  { source: 'hype:reddit', prefix: 'hype-reddit', news: false, provider: 'reddit' },
  { source: 'midjourney', prefix: 'midjourney', news: false, provider: null },
  { source: 'github', prefix: 'github', news: false, provider: null },
]

describe.each(TABLE)('$source', ({ source, prefix, news, provider }) => {
  test('is known', () => {
    expect(isKnownSource(source)).toBe(true)
  })

  test('has its save key', () => {
    expect(saveKey(source, 'a/b:c-1')).toBe(`${prefix}-a/b:c-1`)
  })

  test('is told apart as news, hype or neither', () => {
    expect(isNewsSource(source)).toBe(news)
    expect(hypeProviderOf(source)).toBe(provider)
    if (provider !== null) expect(isRankedProvider(provider)).toBe(true)
  })
})

test.each(['hype:civitai', 'hype:a', 'hype:0', 'hype:two-words'])(
  'knows %s as hype but ranks no such cohort',
  (source) => {
    expect(isKnownSource(source)).toBe(true)
    const provider = hypeProviderOf(source)
    expect(provider).toBe(source.slice('hype:'.length))
    expect(isRankedProvider(provider ?? '')).toBe(false)
  },
)

test.each([
  '',
  'HN',
  'hn ',
  'hackernews',
  'reddit',
  'replicate',
  'hype',
  'hype:',
  'hype: github',
  'hype:GitHub',
  'hype:a:b',
  'hype:a_b',
  'hype:é',
  'xhype:github',
  'hype:github\n',
  'constructor',
  '__proto__',
])('does not know %j', (source) => {
  expect(isKnownSource(source)).toBe(false)
  expect(isNewsSource(source)).toBe(false)
  expect(hypeProviderOf(source)).toBeNull()
})

test('points a news event at its discussion and nothing else at one', () => {
  expect(discussionUrl('hn', '42')).toBe('https://news.ycombinator.com/item?id=42')
  expect(discussionUrl('lobsters', 'abc123')).toBe('https://lobste.rs/s/abc123')
  expect(discussionUrl('lesswrong', 'aPeJE8bSo6rAFoLqg')).toBe(
    'https://www.lesswrong.com/posts/aPeJE8bSo6rAFoLqg',
  )
  for (const source of ['hype:github', 'hype:reddit', 'midjourney', 'github']) {
    expect(discussionUrl(source, '42')).toBeNull()
  }
})
