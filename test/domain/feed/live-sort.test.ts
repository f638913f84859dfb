import { describe, expect, test } from 'vitest'
import type { FeedEvent } from '../../../src/domain/feed/columns.ts'
import { LIVE_SORTS, rankLive, trendOf } from '../../../src/domain/feed/live-sort.ts'
import type { LiveEntry, RankedLive } from '../../../src/domain/feed/live-sort.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { feedEvent, feedEvents, HOUR_MS, NOW } from '../../support/signals.ts'

const SOURCES = ['hn', 'lobsters', 'lesswrong', 'hype:github', 'hype:reddit', 'hype:other', 'midjourney']

const listsOf = ({ columns, hype, midjourney, popular }: RankedLive): LiveEntry[][] => [
  columns.hn,
  columns.lobsters,
  columns.lesswrong,
  hype,
  midjourney,
  popular,
]

const keysOf = (list: readonly LiveEntry[]): string[] => list.map(({ key }) => key)

describe('every live ranking', () => {
  const DAYS = { trending: 30, day: 1, week: 7, month: 30 }
  const ages = [-1, 0, 1, 7, 30].flatMap((days) => [days * DAY_MS, days * DAY_MS + 1])
  const counts = [-5, 0, Number.MAX_SAFE_INTEGER]
  const all = SOURCES.flatMap((source) =>
    ages.map((age, index) => {
      const points = counts[index % counts.length] ?? 0
      return feedEvent({ source, sourceId: String(index), points, publishedAt: NOW - age })
    }),
  )

  test.each(LIVE_SORTS)(
    'the ranking by %s holds the events of its period once, from 1 by a falling agg_score',
    (sort) => {
      const ranked = rankLive(sort, all, NOW)
      expect(rankLive(sort, all.toReversed(), NOW)).toEqual(ranked)
      const { columns, hype, midjourney, popular } = ranked
      const isExpected = ({ source, publishedAt }: FeedEvent): boolean =>
        publishedAt >= NOW - DAYS[sort] * DAY_MS && publishedAt <= NOW && source !== 'hype:other'
      const expected = all.filter(isExpected)
      const news = Object.values(columns).flat()
      const listed = [...news, ...hype, ...midjourney].map(({ event }) => event)
      expect([listed.length, new Set(listed)]).toEqual([expected.length, new Set(expected)])
      expect(keysOf(popular).toSorted()).toEqual(keysOf(news).toSorted())
      for (const list of listsOf(ranked)) {
        expect(list.map(({ rank }) => rank)).toEqual(list.map((_, index) => index + 1))
        const scores = list.map(({ aggScore }) => aggScore)
        expect(scores.every((score) => Number.isFinite(score) && score >= 0)).toBe(true)
        expect(scores).toEqual(scores.toSorted((a, b) => b - a))
      }
    },
  )

  test('Popular has each link and each title once', () => {
    const same = [{ url: 'https://example.com/a' }, { title: 'one' }].flatMap((changes, group) =>
      ['hn', 'lobsters'].map((source) => feedEvent({ source, sourceId: `${group}`, ...changes })),
    )
    expect(keysOf(rankLive('day', same, NOW).popular)).toHaveLength(2)
  })

  test('every list has at most a hundred items', () => {
    const many = SOURCES.flatMap((source) => feedEvents(source, 150))
    for (const sort of LIVE_SORTS)
      expect(listsOf(rankLive(sort, many, NOW)).map((list) => list.length)).toEqual(Array(6).fill(100))
  })
})

describe('day, week and month', () => {
  test('a column is ordered by points, then comments, then id', () => {
    const counts = { b: [5, null], a: [5, 0], c: [5, 1], d: [6, null], e: [-1, 99] } as const
    const all = Object.entries(counts).map(([sourceId, [most, comments]]) =>
      feedEvent({ sourceId, points: most, comments }),
    )
    expect(keysOf(rankLive('day', all, NOW).columns.hn)).toEqual(['hn-d', 'hn-c', 'hn-a', 'hn-b', 'hn-e'])
  })

  test('a percentile is that of the points in the period, of hype without its comments, with two decimals', () => {
    const hype = (sourceId: string, points: number, comments: number, days = 0): FeedEvent =>
      feedEvent({ source: 'hype:github', sourceId, points, comments, publishedAt: NOW - days * DAY_MS })
    const all = [hype('b', 1, 0), hype('a', 1, 9), hype('c', 2, 0), hype('old', 0, 0, 2)]
    expect(rankLive('day', all, NOW).hype.map(({ key, aggScore }) => [key, aggScore])).toEqual([
      ['hype-github-c', 83.33],
      ['hype-github-a', 33.33],
      ['hype-github-b', 33.33],
    ])
  })
})

describe('trending', () => {
  test('of equal points the younger event ranks first, of equal ages the one with more points, and else the first id', () => {
    const order = (
      ...events: [sourceId: string, points: number, hours: number, comments?: number][]
    ): string[] => {
      const all = events.map(([sourceId, points, hours, comments = 0]) =>
        feedEvent({ sourceId, points, comments, publishedAt: NOW - hours * HOUR_MS }),
      )
      return keysOf(rankLive('trending', all, NOW).columns.hn)
    }
    expect(order(['old', 9, 3], ['more', 10, 3], ['less', 8, 3])).toEqual(['hn-more', 'hn-old', 'hn-less'])
    // Also where every event has the same points, whatever its comments.
    expect(order(['3', 5, 3, 9], ['1', 5, 1], ['2', 5, 2])).toEqual(['hn-1', 'hn-2', 'hn-3'])
    expect(order(['b', 5, 1], ['a', 5, 1])).toEqual(['hn-a', 'hn-b'])
  })

  test('a trend halves every six hours, for any points', () => {
    const round = (hour: number): number => Math.round(trendOf(0.99, hour * HOUR_MS) * 100) / 100
    expect([0, 6, 12, 24, 48].map(round)).toEqual([100, 50, 25, 6.25, 0.39])
    // 2 ^ (5 / 6) with six digits.
    expect(rankLive('trending', [feedEvent()], NOW).columns.hn).toMatchObject([{ aggScore: 1.7818 }])
    const old = NOW - 29 * DAY_MS
    const huge = feedEvents('hn', 1_000, () => ({ points: Number.MAX_SAFE_INTEGER, publishedAt: old }))
    expect(rankLive('trending', huge, NOW).columns.hn[0]?.aggScore).toBeLessThan(1e-30)
  })
})
