import { describe, expect, test } from 'vitest'
import { ARTICLE_TRIES, laneOf, placesOfText, planNextTry } from '../../../src/domain/feed/article.ts'
import type { ArticleReading } from '../../../src/domain/feed/article.ts'
import { DAY_MS } from '../../../src/domain/time.ts'

const ITEM = { source: 'hn', sourceId: '1', url: 'https://example.org/', tries: 0 }
const AT = 1_000_000
const HOUR = 3_600_000

type Reading = Exclude<ArticleReading, { kind: 'text' }>
const failed = (notBefore: number | null = null): Reading => ({ kind: 'failed', reason: 'r', notBefore })
const skipped = (why: 'robots' | 'busy', notBefore: number | null = null): Reading => ({
  kind: 'skipped',
  why,
  detail: 'd',
  notBefore,
})

describe('the next try', () => {
  test.each([
    [0, 6 * HOUR],
    [1, DAY_MS],
    [2, 4 * DAY_MS],
  ])('after %i failed ones and another is later each time', (tries, wait) => {
    expect(planNextTry({ ...ITEM, tries }, failed(), AT)).toEqual({
      source: 'hn',
      sourceId: '1',
      tries: tries + 1,
      reason: 'r',
      triedAt: AT,
      nextTryAt: AT + wait,
    })
  })

  test('never comes after the last', () => {
    const last = planNextTry({ ...ITEM, tries: ARTICLE_TRIES - 1 }, failed(AT + DAY_MS), AT)
    expect(last).toMatchObject({ tries: ARTICLE_TRIES, nextTryAt: null })
  })

  test('of what a site declines is a week away', () => {
    expect(planNextTry(ITEM, skipped('robots'), AT)).toMatchObject({
      tries: 1,
      reason: 'robots: d',
      nextTryAt: AT + 7 * DAY_MS,
    })
  })

  test('waits as long as the host asks, and no longer than a month', () => {
    expect(planNextTry(ITEM, failed(AT + DAY_MS), AT).nextTryAt).toBe(AT + DAY_MS)
    expect(planNextTry(ITEM, failed(AT + 1), AT).nextTryAt).toBe(AT + 6 * HOUR)
    expect(planNextTry(ITEM, failed(AT + 400 * DAY_MS), AT).nextTryAt).toBe(AT + 30 * DAY_MS)
  })

  test('of an item that was not asked for comes when its host allows it, and no try is counted', () => {
    expect(planNextTry({ ...ITEM, tries: 2 }, skipped('busy', AT + 5), AT)).toMatchObject({
      tries: 2,
      nextTryAt: AT + 5,
    })
  })
})

test.each([
  ['hn', null, ['source']],
  ['hn', 'https://example.org/', ['page']],
  ['lobsters', null, ['source']],
  ['lobsters', 'https://example.org/', ['page']],
  ['lesswrong', null, ['source']],
  ['lesswrong', 'https://example.org/', ['source', 'page']],
  ['hype:github', 'https://example.org/', ['page']],
  ['hype:github', null, []],
])('the text of an item of %s with the link %s is looked for at %j', (source, url, places) => {
  expect(placesOfText({ source, url })).toEqual(places)
})

test('items of one host or of one API share a lane', () => {
  const lane = (source: string, url: string | null): string => laneOf({ source, url })
  expect(lane('hn', 'https://example.org/a')).toBe(lane('lobsters', 'http://EXAMPLE.org:80/b'))
  expect(lane('hn', 'https://example.org/a')).not.toBe(lane('hn', 'https://www.example.org/a'))
  expect(lane('lesswrong', 'https://example.org/a')).toBe(lane('lesswrong', null))
  expect(lane('hn', null)).not.toBe(lane('lobsters', null))
  expect(lane('hn', 'not a url')).toBe('url not a url')
})
