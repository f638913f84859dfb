import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareCodeUnits } from '../../../src/domain/order.ts'
import { rankYear } from '../../../src/domain/year/rank.ts'
import type { RankedEvent, VerifiedTitle, YearEvent } from '../../../src/domain/year/rank.ts'
import { rankedYear, yearEvent, yearEvents } from '../../support/signals.ts'
import { naiveKey, naiveRanking } from './naive-ranking.ts'
import type { NaiveOutcome } from './naive-ranking.ts'

/** Events, and what every news source would answer when asked. */
interface Scene {
  events: YearEvent[]
  truth: Map<string, VerifiedTitle>
}

const NEWS = ['hn', 'lobsters', 'lesswrong']
const OTHERS = ['midjourney', 'github', 'hype:civitai', 'hype:zed']
const COHORTS = ['hype:github', 'hype:huggingface', 'hype:replicate', 'hype:reddit']

/** Ids whose code-unit, numeric, locale and code-point orders all differ. */
const awkwardIds = fc.constantFrom(
  '10',
  '9',
  '09',
  '1',
  'a',
  'Z',
  'z',
  'ä',
  'a-1',
  'a1',
  '\uff5e',
  '😀',
  'é',
  'e\u0301',
)

const plainIds = fc.integer({ min: 1, max: 2000 }).map(String)

interface Shape {
  sources: string[]
  ids: fc.Arbitrary<string>
  /** Values of points, links and titles to draw from: the fewer, the more ties and duplicates. */
  points: number
  names: number
  minLength?: number
  maxLength: number
  verified?: boolean
}

function scenes({
  sources,
  ids,
  points,
  names,
  minLength = 0,
  maxLength,
  verified,
}: Shape): fc.Arbitrary<Scene> {
  const titles = fc.integer({ min: 1, max: names }).map((n) => `title ${n}`)
  const row = fc.record({
    source: fc.constantFrom(...sources),
    sourceId: ids,
    title: titles,
    trueTitle: titles,
    url: fc.option(fc.integer({ min: 1, max: names }).map((n) => `https://example.com/${n}`)),
    points: fc.integer({ min: -2, max: points - 2 }),
    comments: fc.option(fc.integer({ min: 0, max: 2 })),
    vouched: verified === undefined ? fc.boolean() : fc.constant(verified),
  })
  const key = (value: { source: string; sourceId: string }): string => `${value.source} ${value.sourceId}`
  return fc.uniqueArray(row, { selector: key, minLength, maxLength, size: 'max' }).map((rows) => {
    const truth = new Map<string, VerifiedTitle>()
    const events = rows.map(({ trueTitle, vouched, ...values }) => {
      const event = yearEvent({ ...values, titleProvenance: vouched ? `${values.source}:own` : null })
      truth.set(naiveKey(event), { title: trueTitle, provenance: `${values.source}:asked` })
      return event
    })
    return { events, truth }
  })
}

const mixed = scenes({
  sources: [...NEWS, ...COHORTS, ...OTHERS],
  ids: awkwardIds,
  points: 5,
  names: 25,
  maxLength: 110,
})
const smallCohorts = scenes({
  sources: ['hype:github', 'hype:replicate', 'hype:zed', 'midjourney'],
  ids: awkwardIds,
  points: 4,
  names: 8,
  maxLength: 30,
})
/** Half of it one source, and links and titles so few that `popular` reads far behind the columns. */
const crowdedNews = scenes({
  sources: ['hn', 'hn', 'hn', 'lobsters', 'lesswrong'],
  ids: plainIds,
  points: 40,
  names: 220,
  minLength: 250,
  maxLength: 400,
})
const crowdedHype = scenes({
  sources: COHORTS,
  ids: plainIds,
  points: 40,
  names: 400,
  minLength: 130,
  maxLength: 220,
  verified: true,
})

/** Ranks, asking the truth for whatever is named, until the ranking is there. */
function hydrateAndRank({ events, truth }: Scene): NaiveOutcome {
  const titles = new Map<string, VerifiedTitle>()
  for (let round = 0; round <= events.length; round += 1) {
    const outcome = rankYear(events, titles)
    if (outcome.do === 'ranked') return { year: outcome.year, asked: new Set(titles.keys()) }
    if (outcome.events.length === 0) throw new Error('waits for no title at all')
    for (const key of outcome.events.map(naiveKey)) {
      const title = truth.get(key)
      if (!title) throw new Error(`nobody can vouch for ${key}`)
      if (titles.has(key)) throw new Error(`${key} is asked for twice`)
      titles.set(key, title)
    }
  }
  throw new Error('still asking after a round for every event')
}

const keys = (list: readonly RankedEvent[]): string[] => list.map(({ key }) => key)
const titlesIn = (list: readonly RankedEvent[]): string[] => list.map(({ title }) => title.title)

/** The events a ranking without any hydrated title asks for, by key. */
function wanted(
  events: readonly YearEvent[],
  hydrated: ReadonlyMap<string, VerifiedTitle> = new Map(),
): string[] {
  const outcome = rankYear(events, hydrated)
  return outcome.do === 'hydrate' ? outcome.events.map(naiveKey) : []
}

describe('agrees with the naive reading of the rules, in what it ranks and in whom it asks,', () => {
  test('over all sources, with ties, duplicates and awkward ids', () => {
    fc.assert(
      fc.property(mixed, (scene) => {
        expect(hydrateAndRank(scene)).toEqual(naiveRanking(scene.events, scene.truth))
      }),
      { numRuns: 400 },
    )
  })

  test('over hype cohorts just below and above five', () => {
    fc.assert(
      fc.property(smallCohorts, (scene) => {
        expect(hydrateAndRank(scene)).toEqual(naiveRanking(scene.events, scene.truth))
      }),
      { numRuns: 200 },
    )
  })

  test('over more news than the lists hold', () => {
    fc.assert(
      fc.property(crowdedNews, (scene) => {
        expect(hydrateAndRank(scene)).toEqual(naiveRanking(scene.events, scene.truth))
      }),
      { numRuns: 40 },
    )
  })

  test('over more hype than the column holds', () => {
    fc.assert(
      fc.property(crowdedHype, (scene) => {
        expect(hydrateAndRank(scene)).toEqual(naiveRanking(scene.events, scene.truth))
      }),
      { numRuns: 15 },
    )
  })

  test('over one news source alone', () => {
    const alone = scenes({ sources: ['lobsters'], ids: awkwardIds, points: 2, names: 3, maxLength: 14 })
    fc.assert(
      fc.property(alone, (scene) => {
        expect(hydrateAndRank(scene)).toEqual(naiveRanking(scene.events, scene.truth))
      }),
      { numRuns: 200 },
    )
  })
})

describe('is a function of the events and the titles alone', () => {
  const shuffled = (scene: Scene): fc.Arbitrary<{ scene: Scene; events: YearEvent[] }> =>
    fc.shuffledSubarray(scene.events, { minLength: scene.events.length }).map((events) => ({ scene, events }))

  test('whatever order the events arrive in', () => {
    fc.assert(
      fc.property(mixed.chain(shuffled), ({ scene, events }) => {
        expect(hydrateAndRank({ events, truth: scene.truth })).toEqual(hydrateAndRank(scene))
      }),
    )
  })

  test('whatever titles are known beforehand', () => {
    fc.assert(
      fc.property(mixed, ({ events, truth }) => {
        expect(rankYear(events, truth)).toEqual({
          do: 'ranked',
          year: hydrateAndRank({ events, truth }).year,
        })
      }),
    )
  })

  test('and leaves both as they were', () => {
    fc.assert(
      fc.property(mixed, ({ events, truth }) => {
        const before = structuredClone({ events, truth })
        rankYear(events, truth)
        expect({ events, truth }).toEqual(before)
      }),
      { numRuns: 30 },
    )
  })

  test('of none at all', () => {
    expect(rankedYear([])).toEqual({
      columns: { hn: [], lobsters: [], lesswrong: [] },
      hype: [],
      popular: [],
      midjourney: [],
      excludedCohorts: [],
      unverified: 0,
      eligible: new Map(),
    })
  })
})

describe('a news column', () => {
  test('orders by points, then comments with none as 0, then id in code units', () => {
    const year = rankedYear([
      yearEvent({ sourceId: 'a', points: 5, comments: 0 }),
      yearEvent({ sourceId: '9', points: 5, comments: null }),
      yearEvent({ sourceId: '10', points: 5, comments: 0 }),
      yearEvent({ sourceId: 'Z', points: 5, comments: null }),
      yearEvent({ sourceId: 'late', points: 5, comments: 1 }),
      yearEvent({ sourceId: 'few', points: 4, comments: 99 }),
      yearEvent({ sourceId: 'many', points: 6, comments: null }),
      yearEvent({ sourceId: 'below', points: -1 }),
    ])
    expect(keys(year.columns.hn)).toEqual([
      'hn-many',
      'hn-late',
      'hn-10',
      'hn-9',
      'hn-Z',
      'hn-a',
      'hn-few',
      'hn-below',
    ])
    expect(year.columns.hn.map(({ rank }) => rank)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(year.columns.hn.map(({ percentile }) => percentile)).toEqual(
      [7.5, 6.5, 4, 4, 4, 4, 1.5, 0.5].map((below) => below / 8),
    )
  })

  test('holds 100, and its percentiles still count everyone', () => {
    const year = rankedYear(yearEvents('lesswrong', 101))
    expect(year.columns.lesswrong).toHaveLength(100)
    expect(year.columns.lesswrong.at(-1)).toMatchObject({
      key: 'lesswrong-100',
      rank: 100,
      percentile: 1.5 / 101,
    })
    expect(year.eligible.get('lesswrong')).toBe(101)
  })

  test('keeps equal links and titles', () => {
    const year = rankedYear(yearEvents('hn', 3, () => ({ url: 'https://example.com/', title: 'same' })))
    expect(keys(year.columns.hn)).toEqual(['hn-1', 'hn-2', 'hn-3'])
    expect(keys(year.popular)).toEqual(['hn-1'])
  })
})

describe('the hype column', () => {
  test('needs five eligible events of a provider', () => {
    const year = rankedYear([...yearEvents('hype:github', 5), ...yearEvents('hype:reddit', 4)])
    expect(keys(year.hype)).toEqual([1, 2, 3, 4, 5].map((n) => `hype-github-${n}`))
    expect(year.hype.map(({ percentile }) => percentile)).toEqual([0.9, 0.7, 0.5, 0.3, 0.1])
    expect(year.excludedCohorts).toEqual([{ provider: 'reddit', eligibleEvents: 4 }])
  })

  test('counts only verified events towards the five', () => {
    const events = yearEvents('hype:github', 6, (index) => (index < 2 ? { titleProvenance: null } : {}))
    const year = rankedYear(events)
    expect(year.hype).toEqual([])
    expect(year.unverified).toBe(2)
    expect(year.excludedCohorts).toEqual([{ provider: 'github', eligibleEvents: 4 }])
    expect(year.eligible).toEqual(new Map([['hype:github', 4]]))
  })

  test('leaves unverified events out of the percentiles', () => {
    const year = rankedYear(
      yearEvents('hype:replicate', 6, (index) => (index === 0 ? { titleProvenance: null } : {})),
    )
    expect(year.hype.map(({ key, percentile }) => [key, percentile])).toEqual([
      ['hype-replicate-2', 0.9],
      ['hype-replicate-3', 0.7],
      ['hype-replicate-4', 0.5],
      ['hype-replicate-5', 0.3],
      ['hype-replicate-6', 0.1],
    ])
  })

  test('never ranks an unknown provider, however large', () => {
    const year = rankedYear(yearEvents('hype:civitai', 30))
    expect(year.hype).toEqual([])
    expect(year.excludedCohorts).toEqual([{ provider: 'civitai', eligibleEvents: 30 }])
  })

  test('compares points alone and puts equal percentiles in order of provider, then id', () => {
    const even = (source: string) =>
      yearEvents(source, 5, (index) => ({
        points: 7,
        comments: index,
        sourceId: ['b', 'a', '10', '9', 'Z'][index] ?? '',
      }))
    const year = rankedYear([...even('hype:reddit'), ...even('hype:github')])
    const ids = ['10', '9', 'Z', 'a', 'b']
    expect(keys(year.hype)).toEqual([
      ...ids.map((id) => `hype-github-${id}`),
      ...ids.map((id) => `hype-reddit-${id}`),
    ])
    expect(new Set(year.hype.map(({ percentile }) => percentile))).toEqual(new Set([0.5]))
  })

  test('holds 100 over all providers', () => {
    const year = rankedYear([...yearEvents('hype:github', 80), ...yearEvents('hype:huggingface', 80)])
    expect(year.hype).toHaveLength(100)
    expect(year.hype.filter(({ provider }) => provider === 'github')).toHaveLength(50)
  })
})

describe('the image list', () => {
  test('is ordered like a news column and leaves unverified images out', () => {
    const year = rankedYear([
      yearEvent({ source: 'midjourney', sourceId: 'b', points: 1 }),
      yearEvent({ source: 'midjourney', sourceId: 'a', points: 1 }),
      yearEvent({ source: 'midjourney', sourceId: 'c', points: 9, titleProvenance: null }),
    ])
    expect(keys(year.midjourney)).toEqual(['midjourney-a', 'midjourney-b'])
    expect(year.unverified).toBe(1)
    expect(year.popular).toEqual([])
  })
})

describe('popular', () => {
  test('compares sources by percentile, then comments, then save key in code units', () => {
    const tied = { points: 3, comments: null }
    const year = rankedYear([
      yearEvent({ source: 'hn', sourceId: '9', ...tied }),
      yearEvent({ source: 'hn', sourceId: '10', ...tied }),
      yearEvent({ source: 'lobsters', sourceId: 'a', points: 900, comments: 0 }),
      yearEvent({ source: 'lesswrong', sourceId: 'Z', points: -4, comments: 1 }),
    ])
    expect(keys(year.popular)).toEqual(['lesswrong-Z', 'hn-10', 'hn-9', 'lobsters-a'])
    expect(new Set(year.popular.map(({ percentile }) => percentile))).toEqual(new Set([0.5]))
  })

  test('skips an exact link or an exact title that was taken, over all sources', () => {
    const url = 'https://example.com/same'
    const year = rankedYear([
      yearEvent({ source: 'hn', sourceId: '1', comments: 9, url }),
      yearEvent({ source: 'lobsters', sourceId: '1', comments: 8, url }),
      yearEvent({ source: 'lesswrong', sourceId: '1', comments: 7, title: 'hn 1' }),
    ])
    expect(keys(year.popular)).toEqual(['hn-1'])
  })

  test('compares links and titles exactly, and never two missing links', () => {
    const year = rankedYear([
      yearEvent({ source: 'hn', comments: 9, url: null, title: 'A' }),
      yearEvent({ source: 'lobsters', comments: 8, url: null, title: 'a' }),
      yearEvent({ source: 'lesswrong', comments: 7, url: 'https://example.com/', title: 'A ' }),
      yearEvent({ source: 'hn', sourceId: '2', points: 1, url: 'https://example.com', title: 'B' }),
    ])
    expect(year.popular).toHaveLength(4)
  })

  test('an event that was skipped takes neither its link nor its title from those after it', () => {
    const year = rankedYear([
      yearEvent({ source: 'hn', comments: 9, title: 'A', url: 'https://example.com/1' }),
      yearEvent({ source: 'lobsters', comments: 8, title: 'A', url: 'https://example.com/2' }),
      yearEvent({ source: 'lesswrong', comments: 7, title: 'B', url: 'https://example.com/2' }),
    ])
    expect(keys(year.popular)).toEqual(['hn-1', 'lesswrong-1'])
  })

  test('fills up to 100 behind the events it skips, and no source has a quota', () => {
    const year = rankedYear(yearEvents('hn', 130, (index) => (index < 20 ? { title: 'again' } : {})))
    expect(year.popular).toHaveLength(100)
    expect(year.popular.at(-1)).toMatchObject({ key: 'hn-119', rank: 100 })
  })

  test('has no hype and no images', () => {
    const year = rankedYear([
      ...yearEvents('hype:github', 9),
      ...yearEvents('midjourney', 3),
      ...yearEvents('hn', 1),
    ])
    expect(keys(year.popular)).toEqual(['hn-1'])
  })
})

describe('hydration', () => {
  const unverified = { titleProvenance: null }

  test('asks for unverified news of a column', () => {
    expect(wanted([yearEvent({ sourceId: '1', ...unverified }), yearEvent({ sourceId: '2' })])).toEqual([
      'hn-1',
    ])
  })

  test('does not ask for an event behind both the column and popular', () => {
    const events = yearEvents('hn', 102, (index) => (index >= 100 ? unverified : {}))
    expect(wanted(events)).toEqual([])
  })

  test('asks for an event behind its column that popular needs', () => {
    // One link for the first 60 leaves popular 59 places for the events after the column's end.
    const events = yearEvents('hn', 200, (index) => ({
      ...(index < 60 ? { url: 'https://example.com/same' } : {}),
      ...(index >= 100 ? unverified : {}),
    }))
    const asked = wanted(events)
    expect(asked).toEqual(Array.from({ length: 59 }, (_, index) => `hn-${index + 101}`))
  })

  test('does not ask for an event behind its column whose link is taken', () => {
    const events = yearEvents('hn', 120, (index) => ({
      ...(index < 60 || index === 110 ? { url: 'https://example.com/same' } : {}),
      ...(index === 110 ? unverified : {}),
    }))
    expect(wanted(events)).toEqual([])
  })

  test('publishes and compares the hydrated title, not the stored one', () => {
    const events = [
      yearEvent({ source: 'hn', comments: 9, title: 'stored', ...unverified }),
      yearEvent({ source: 'lobsters', comments: 8, title: 'stored' }),
      yearEvent({ source: 'lesswrong', comments: 7, title: 'true' }),
    ]
    const year = rankedYear(events, new Map([['hn-1', { title: 'true', provenance: 'hn:asked' }]]))
    expect(titlesIn(year.popular)).toEqual(['true', 'stored'])
    expect(year.popular[0]?.title).toEqual({ title: 'true', provenance: 'hn:asked' })
    expect(year.columns.hn[0]?.title).toEqual({ title: 'true', provenance: 'hn:asked' })
  })

  test('asks again only for what an answer brings into popular', () => {
    // hn-101 turns out to repeat a title, so that popular reaches one event further than was asked at first.
    const events = yearEvents('hn', 103, (index) => ({
      ...(index < 2 ? { url: 'https://example.com/same' } : {}),
      ...(index >= 100 ? unverified : {}),
    }))
    expect(wanted(events)).toEqual(['hn-101'])
    const hydrated = new Map([['hn-101', { title: 'hn 1', provenance: 'hn:asked' }]])
    expect(wanted(events, hydrated)).toEqual(['hn-102'])
    hydrated.set('hn-102', { title: 'new', provenance: 'hn:asked' })
    expect(keys(rankedYear(events, hydrated).popular).at(-1)).toBe('hn-102')
  })

  test('lets an event take the link of one whose answer repeats a title', () => {
    const url = 'https://example.com/shared'
    const events = [
      yearEvent({ source: 'hn', comments: 9, title: 'A' }),
      yearEvent({ source: 'lobsters', comments: 8, url, ...unverified }),
      yearEvent({ source: 'lesswrong', comments: 7, url }),
    ]
    const answer = (title: string) => new Map([['lobsters-1', { title, provenance: 'lobsters:asked' }]])
    expect(keys(rankedYear(events, answer('A')).popular)).toEqual(['hn-1', 'lesswrong-1'])
    expect(keys(rankedYear(events, answer('B')).popular)).toEqual(['hn-1', 'lobsters-1'])
  })

  test("keeps a signal's own verified title even when another one is known", () => {
    const year = rankedYear([yearEvent()], new Map([['hn-1', { title: 'older', provenance: 'hn:asked' }]]))
    expect(year.columns.hn[0]?.title).toEqual({ title: 'hn 1', provenance: 'hn:test-api' })
  })

  test('never asks for hype or images', () => {
    const events = ['hype:github', 'hype:civitai', 'midjourney'].flatMap((source) =>
      yearEvents(source, 6, () => unverified),
    )
    expect(wanted(events)).toEqual([])
    expect(rankedYear(events).unverified).toBe(18)
  })
})

describe('code-unit order', () => {
  test('compares unit by unit, not as numbers, words or code points', () => {
    const sorted = ['10', '9', 'Z', 'a', 'aa', 'e\u0301', '\u00e9', '\ud83d\ude00', '\uff5e']
    expect(sorted.toReversed().sort(compareCodeUnits)).toEqual(sorted)
    expect(compareCodeUnits('same', 'same')).toBe(0)
  })
})

describe('a hydrated title over 1,000 characters', () => {
  const events = [
    ...yearEvents('hn', 3, (index) => ({ titleProvenance: index === 1 ? null : 'hn:firebase-item' })),
    ...yearEvents('lobsters', 2),
  ]
  const [, second] = events
  const rankedWith = (title: string) =>
    rankedYear(events, new Map([[`hn-${second?.sourceId}`, { title, provenance: 'hn:asked' }]]))

  test('makes its event not eligible, counted as unverified, and leaves the others as if it were not there', () => {
    const year = rankedWith('x'.repeat(1_001))
    const without = rankedYear(events.filter((event) => event !== second))
    expect(year).toEqual({ ...without, unverified: 1 })
    expect(year.eligible.get('hn')).toBe(2)
  })

  test('is published when it has 1,000 characters', () => {
    const year = rankedWith('😀'.repeat(1_000))
    expect(year.columns.hn).toHaveLength(3)
    expect(year.unverified).toBe(0)
  })
})
