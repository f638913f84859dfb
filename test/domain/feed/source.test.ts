import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  discussionUrl,
  hypeProviderOf,
  isKnownSource,
  isNewsSource,
  isRankedProvider,
  itemsOfKey,
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

describe('a save key', () => {
  const source = fc.constantFrom(...TABLE.map((row) => row.source), 'hype:civitai', 'hype:0')

  test('gives back the item it was made of', () => {
    const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 110 })
    fc.assert(
      fc.property(source, id, (of, sourceId) => {
        expect(itemsOfKey(saveKey(of, sourceId))[0]).toEqual({ source: of, sourceId })
      }),
      {
        examples: [
          ['hype:github', 'owner/na-me'],
          ['hn', '-'],
          ['github', 'hype-x-y'],
          ['lobsters', 'a\nb'],
        ],
      },
    )
  })

  test('that can be parsed is the one its item makes', () => {
    const prefix = fc.constantFrom('hn', 'hype', 'hype-', 'hype-github', 'hype-a-b', 'github', 'x', '')
    fc.assert(
      fc.property(prefix, fc.constantFrom('-', '', ':'), fc.string(), (start, between, rest) => {
        const key = `${start}${between}${rest}`
        for (const item of itemsOfKey(key)) expect(saveKey(item.source, item.sourceId)).toBe(key)
      }),
      {
        examples: [
          ['hype', '-', 'x'],
          ['hype-', '-', 'x'],
          ['hn', '-', ''],
        ],
      },
    )
  })

  test.each([
    '',
    'hn',
    'hn-',
    '-1',
    'HN-1',
    'digg-1',
    'hype-github',
    'hype-github-',
    'hype-1',
    'hype:github-1',
    ' hn-1',
  ])('is not %j', (key) => {
    expect(itemsOfKey(key)).toEqual([])
  })

  test('has at most 132 characters, however many code units', () => {
    const longest = `hn-${'😀'.repeat(129)}`
    expect(itemsOfKey(longest)).toEqual([{ source: 'hn', sourceId: '😀'.repeat(129) }])
    expect(itemsOfKey(`${longest}x`)).toEqual([])
    expect(itemsOfKey(`hn-${'1'.repeat(130)}`)).toEqual([])
  })

  test('names an item by every hyphen its provider may end at, the first first', () => {
    expect(itemsOfKey('hype-two-words-x')).toEqual([
      { source: 'hype:two', sourceId: 'words-x' },
      { source: 'hype:two-words', sourceId: 'x' },
    ])
  })
})
