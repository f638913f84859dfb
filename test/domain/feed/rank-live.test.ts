import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FeedEvent, LiveSort } from '../../../src/domain/feed/columns.ts'
import { LIVE_SORTS, PERIOD_MS } from '../../../src/domain/feed/columns.ts'
import { rankLive, HALF_LIFE_MS, trendOf } from '../../../src/domain/feed/rank-live.ts'
import type { LiveEntry, RankedLive } from '../../../src/domain/feed/rank-live.ts'
import { DAY_MS } from '../../../src/domain/time.ts'
import { feedEvent, feedEvents, HOUR_MS, NOW } from '../../support/signals.ts'

const SOURCES = ['hn', 'lobsters', 'lesswrong', 'hype:github', 'hype:reddit', 'hype:other', 'midjourney']

const points = fc.oneof(
  fc.integer({ min: -5, max: 20 }),
  fc.constantFrom(Number.MIN_SAFE_INTEGER, -1, 0, Number.MAX_SAFE_INTEGER),
)

const events: fc.Arbitrary<FeedEvent[]> = fc
  .uniqueArray(
    fc.record({
      source: fc.constantFrom(...SOURCES),
      sourceId: fc.integer({ min: 1, max: 30 }).map(String),
      points,
      comments: fc.constantFrom(null, 0, 3, 9),
      url: fc.constantFrom(null, 'https://example.com/a', 'https://example.com/b'),
      title: fc.constantFrom('one', 'two', 'three'),
      publishedAt: fc.oneof(
        fc.integer({ min: NOW - 31 * DAY_MS, max: NOW + DAY_MS }),
        fc.constantFrom(NOW, NOW + 1, NOW - DAY_MS, NOW - DAY_MS - 1, NOW - 7 * DAY_MS, NOW - 30 * DAY_MS),
      ),
    }),
    { selector: ({ source, sourceId }) => `${source} ${sourceId}`, maxLength: 40 },
  )
  .map((values) => values.map((value) => feedEvent(value)))

const listsOf = ({ columns, hype, midjourney, popular }: RankedLive): LiveEntry[][] => [
  columns.hn,
  columns.lobsters,
  columns.lesswrong,
  hype,
  midjourney,
  popular,
]

const sorts = fc.constantFrom(...LIVE_SORTS)

const keysOf = (list: readonly LiveEntry[]): string[] => list.map(({ key }) => key)

describe('every live ranking', () => {
  test('is the same whatever the order of the events', () => {
    const shuffled = events.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
    )
    fc.assert(
      fc.property(shuffled, sorts, ([all, others], sort) => {
        expect(rankLive(sort, others, NOW)).toEqual(rankLive(sort, all, NOW))
      }),
    )
  })

  test('holds exactly the events of its period, each once a list, ranked from 1', () => {
    fc.assert(
      fc.property(events, sorts, (all, sort) => {
        const { columns, hype, midjourney } = rankLive(sort, all, NOW)
        const inPeriod = ({ publishedAt }: FeedEvent): boolean =>
          publishedAt >= NOW - PERIOD_MS[sort] && publishedAt <= NOW
        const expected = all.filter((event) => inPeriod(event) && event.source !== 'hype:other')
        const listed = [...Object.values(columns), hype, midjourney].flat()
        expect(new Set(listed.map(({ event }) => event))).toEqual(new Set(expected))
        expect(listed).toHaveLength(expected.length)
        for (const list of listsOf(rankLive(sort, all, NOW)))
          expect(list.map(({ rank }) => rank)).toEqual(list.map((_, index) => index + 1))
      }),
    )
  })

  test('never has an agg_score that grows down a list, is negative or no number', () => {
    fc.assert(
      fc.property(events, sorts, (all, sort) => {
        for (const list of listsOf(rankLive(sort, all, NOW))) {
          const scores = list.map(({ aggScore }) => aggScore)
          expect(scores.every((score) => Number.isFinite(score) && score >= 0)).toBe(true)
          expect(scores).toEqual(scores.toSorted((a, b) => b - a))
        }
      }),
    )
  })

  test('has in popular each exact URL and title once, and only news', () => {
    fc.assert(
      fc.property(events, sorts, (all, sort) => {
        const { popular, columns } = rankLive(sort, all, NOW)
        const urls = popular.flatMap(({ event }) => event.url ?? [])
        const titles = popular.map(({ event }) => event.title)
        expect([new Set(urls).size, new Set(titles).size]).toEqual([urls.length, titles.length])
        const news = new Set(keysOf(Object.values(columns).flat()))
        expect(keysOf(popular).filter((key) => !news.has(key))).toEqual([])
      }),
    )
  })

  test('cuts every list at a hundred', () => {
    const all = SOURCES.flatMap((source) => feedEvents(source, 150))
    for (const sort of LIVE_SORTS)
      expect(listsOf(rankLive(sort, all, NOW)).map((list) => list.length)).toEqual(Array(6).fill(100))
  })

  test('is empty for nothing', () => {
    for (const sort of LIVE_SORTS) expect(listsOf(rankLive(sort, [], NOW)).flat()).toEqual([])
  })
})

describe('day, week and month', () => {
  test.each([
    ['day', DAY_MS],
    ['week', 7 * DAY_MS],
    ['month', 30 * DAY_MS],
  ] as const)('%s begins exactly its length before the run and ends with it', (sort: LiveSort, length) => {
    const edges = [NOW - length - 1, NOW - length, NOW, NOW + 1]
    const all = edges.map((publishedAt, index) => feedEvent({ sourceId: String(index), publishedAt }))
    expect(keysOf(rankLive(sort, all, NOW).columns.hn).sort()).toEqual(['hn-1', 'hn-2'])
  })

  test('orders a column by points, then comments, then id', () => {
    const all = [
      feedEvent({ sourceId: 'b', points: 5, comments: null }),
      feedEvent({ sourceId: 'a', points: 5, comments: 0 }),
      feedEvent({ sourceId: 'c', points: 5, comments: 1 }),
      feedEvent({ sourceId: 'd', points: 6, comments: null }),
      feedEvent({ sourceId: 'e', points: -1, comments: 99 }),
    ]
    expect(keysOf(rankLive('day', all, NOW).columns.hn)).toEqual(['hn-d', 'hn-c', 'hn-a', 'hn-b', 'hn-e'])
  })

  test('compares an event with those of its own period alone', () => {
    const all = [
      feedEvent({ points: 5 }),
      ...feedEvents('lobsters', 4),
      feedEvent({ sourceId: 'old', points: 9, publishedAt: NOW - 2 * DAY_MS }),
    ]
    expect(rankLive('day', all, NOW).columns.hn).toMatchObject([{ percentile: 0.5, aggScore: 50 }])
    expect(rankLive('week', all, NOW).columns.hn).toMatchObject([{ aggScore: 75 }, { aggScore: 25 }])
  })

  test('lets providers of any unit meet in the hype column by their percentiles', () => {
    const all = [
      ...feedEvents('hype:github', 2, (index) => ({ points: 90_000 - index })),
      ...feedEvents('hype:reddit', 4),
    ]
    const { hype } = rankLive('day', all, NOW)
    expect(hype.map(({ key, aggScore }) => [key, aggScore])).toEqual([
      ['hype-reddit-1', 87.5],
      ['hype-github-1', 75],
      ['hype-reddit-2', 62.5],
      ['hype-reddit-3', 37.5],
      ['hype-github-2', 25],
      ['hype-reddit-4', 12.5],
    ])
  })
})

describe('trending', () => {
  const pair = fc.record({
    points,
    ageMs: fc.integer({ min: 0, max: 30 * DAY_MS }),
    laterMs: fc.integer({ min: 1, max: 30 * DAY_MS }),
    comments: fc.tuple(fc.constantFrom(null, 0, 50), fc.constantFrom(null, 0, 50)),
  })

  const rankOf = (ranked: RankedLive, key: string): number =>
    Object.values(ranked.columns)
      .flat()
      .find((entry) => entry.key === key)?.rank ?? Infinity

  test('never ranks the older of two events with equal points above the younger', () => {
    fc.assert(
      fc.property(events, pair, (others, { points: equal, ageMs, laterMs, comments }) => {
        const young = feedEvent({
          sourceId: 'young',
          points: equal,
          comments: comments[0],
          publishedAt: NOW - ageMs,
        })
        const old = feedEvent({
          sourceId: 'old',
          points: equal,
          comments: comments[1],
          publishedAt: NOW - ageMs - laterMs,
        })
        const ranked = rankLive('trending', [...others, old, young], NOW)
        expect(rankOf(ranked, 'hn-young')).toBeLessThan(rankOf(ranked, 'hn-old'))
      }),
    )
  })

  test('never ranks an event lower for having more points', () => {
    fc.assert(
      fc.property(events, fc.nat(), points, (all, which, more) => {
        const news = all.filter(({ source, publishedAt }) => source === 'hn' && publishedAt <= NOW)
        const event = news[which % Math.max(1, news.length)]
        fc.pre(event !== undefined && more > event.points)
        const raised = all.map((each) => (each === event ? { ...each, points: more } : each))
        const key = `hn-${event?.sourceId}`
        const before = rankOf(rankLive('trending', all, NOW), key)
        expect(rankOf(rankLive('trending', raised, NOW), key)).toBeLessThanOrEqual(before)
      }),
    )
  })

  test('decays to nothing: halves every six hours, whatever the points', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1e-9, max: 1 - 1e-9, noNaN: true }),
        fc.nat({ max: 100 * DAY_MS }),
        (p, ageMs) => {
          expect(trendOf(p, ageMs + HALF_LIFE_MS) / trendOf(p, ageMs)).toBeCloseTo(0.5, 9)
        },
      ),
    )
    const huge = feedEvents('hn', 1_000, () => ({
      points: Number.MAX_SAFE_INTEGER,
      publishedAt: NOW - 29 * DAY_MS,
    }))
    const [top] = rankLive('trending', huge, NOW).columns.hn
    expect(top?.aggScore).toBeLessThan(1e-30)
  })

  test('gives what docs/ranking.md shows in numbers', () => {
    const scores = (percentile: number, hours: number[]): number[] =>
      hours.map((hour) => Math.round(trendOf(percentile, hour * HOUR_MS) * 100) / 100)
    expect(scores(0.5, [0, 6, 12, 24, 48])).toEqual([2, 1, 0.5, 0.13, 0.01])
    expect(scores(0.9, [0, 6, 12, 24, 48])).toEqual([10, 5, 2.5, 0.63, 0.04])
    expect(scores(0.99, [0, 6, 12, 24, 48])).toEqual([100, 50, 25, 6.25, 0.39])
    expect(scores(0.999, [0, 6, 12, 24, 48])).toEqual([1000, 500, 250, 62.5, 3.91])
  })

  test('leaves out what is dated after the run, whatever its points', () => {
    const all = [feedEvent(), feedEvent({ sourceId: 'future', points: 999, publishedAt: NOW + 1 })]
    expect(keysOf(rankLive('trending', all, NOW).columns.hn)).toEqual(['hn-1'])
  })

  test('compares points among the month, not among what is still young', () => {
    const month = feedEvents('hn', 99, (index) => ({ points: index, publishedAt: NOW - 20 * DAY_MS }))
    const all = [...month, feedEvent({ sourceId: 'new', points: 1_000, publishedAt: NOW })]
    const [first] = rankLive('trending', all, NOW).columns.hn
    expect(first).toMatchObject({ key: 'hn-new', percentile: 0.995, aggScore: 200 })
  })
})
