import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { daysBetween } from '../../../src/domain/time.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { coverageOf, rankYear } from '../../../src/domain/year/rank.ts'
import type { RankedYear, VerifiedTitle, YearEvent } from '../../../src/domain/year/rank.ts'
import { naiveKey, naiveRanking } from './naive-ranking.ts'
import type { NaiveOutcome } from './naive-ranking.ts'
import { rankedYear, yearEvent } from './year-events.ts'

/** Events, and what every news source would answer when asked. */
interface Scene {
  events: YearEvent[]
  truth: Map<string, VerifiedTitle>
}

const NEWS = ['hn', 'lobsters', 'lesswrong']
const OTHERS = ['midjourney', 'github', 'hype:civitai', 'hype:zed']
const COHORTS = ['hype:github', 'hype:huggingface', 'hype:replicate', 'hype:reddit']

/** Ids whose code-unit, numeric, locale and code-point orders all differ. */
const awkwardIds = fc.constantFrom(...'10 9 09 1 a Z z ä a-1 a1 \uff5e 😀 é e\u0301'.split(' '))
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

function scenes({ sources, ids, points, names, minLength = 0, maxLength, verified }: Shape) {
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
  return fc.uniqueArray(row, { selector: key, minLength, maxLength, size: 'max' }).map((rows): Scene => {
    const truth = new Map<string, VerifiedTitle>()
    const events = rows.map(({ trueTitle, vouched, ...values }) => {
      const event = yearEvent({ ...values, titleProvenance: vouched ? `${values.source}:own` : null })
      truth.set(naiveKey(event), { title: trueTitle, provenance: `${values.source}:asked` })
      return event
    })
    return { events, truth }
  })
}

const MIXED: Shape = {
  sources: [...NEWS, ...COHORTS, ...OTHERS],
  ids: awkwardIds,
  points: 5,
  names: 25,
  maxLength: 110,
}

/** Ranks, and looks up every requested title in the truth, until the ranking is complete. */
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
  throw new Error('titles are still requested after a round for every event')
}

describe('a ranking', () => {
  const cases: readonly (readonly [string, number, Partial<Shape>])[] = [
    ['over all sources, with ties, duplicates and awkward ids', 400, {}],
    [
      'over hype cohorts just below and above five',
      200,
      {
        sources: ['hype:github', 'hype:replicate', 'hype:zed', 'midjourney'],
        points: 4,
        names: 8,
        maxLength: 30,
      },
    ],
    // Half of it one source, and links and titles so few that `popular` reads far behind the columns.
    [
      'over more news than the lists hold',
      40,
      { sources: ['hn', ...NEWS], ids: plainIds, points: 40, names: 220, minLength: 250, maxLength: 400 },
    ],
    ['over one news source alone', 200, { sources: ['lobsters'], points: 2, names: 3, maxLength: 14 }],
  ]

  test.each(cases)(
    'the ranking agrees with the naive implementation of the rules, %s',
    (_over, numRuns, shape) => {
      fc.assert(
        fc.property(scenes({ ...MIXED, ...shape }), (scene) => {
          expect(hydrateAndRank(scene)).toEqual(naiveRanking(scene.events, scene.truth))
        }),
        { numRuns },
      )
    },
  )
})

describe('coverage', () => {
  const WINDOW = windowEnding('2026-03-14')
  const NOTHING = rankedYear([])
  const ALL_DAYS = daysBetween('2025-03-15', '2026-03-14')

  test('the coverage counts the days of news, and every source that is observed, ranked or of news', () => {
    const observed = [
      { source: 'midjourney', days: ['2025-03-16'], events: 2 },
      { source: 'hn', days: ['2026-03-13'], events: 3 },
      { source: 'lobsters', days: ['2025-03-18'], events: 1 },
    ]
    const ranked: RankedYear = {
      ...NOTHING,
      eligible: new Map([['hype:github', 4]]),
      excludedCohorts: [{ provider: 'github', eligibleEvents: 4 }],
      unverified: 5,
    }
    const coverage = coverageOf(WINDOW, observed, ranked)
    expect(coverage).toMatchObject({
      materializedDays: 2,
      complete: false,
      firstDay: '2025-03-18',
      lastDay: '2026-03-13',
      missingDays: ALL_DAYS.filter((day) => !['2025-03-18', '2026-03-13'].includes(day)),
      excludedCohorts: ranked.excludedCohorts,
      unverified: 5,
    })
    const counts = Object.entries(coverage.sources).map(
      ([source, { materializedDays, events, eligibleEvents }]) =>
        `${source} ${materializedDays} ${events} ${eligibleEvents}`,
    )
    expect(counts).toEqual([
      'hn 1 3 0',
      'hype:github 0 0 4',
      'lesswrong 0 0 0',
      'lobsters 1 1 0',
      'midjourney 1 2 0',
    ])
  })
})
