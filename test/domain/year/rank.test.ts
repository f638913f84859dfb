import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { coverageOf, rankYear } from '../../../src/domain/year/rank.ts'
import type {
  RankedYear,
  SourceObservation,
  VerifiedTitle,
  YearEvent,
} from '../../../src/domain/year/rank.ts'
import { coverageSchema } from '../../../src/domain/year/schema.ts'
import type { Coverage } from '../../../src/domain/year/schema.ts'
import { rankedYear, yearEvent } from '../../support/signals.ts'
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
const mixed = scenes(MIXED)

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
    [
      'over more hype than the column holds',
      15,
      {
        sources: COHORTS,
        ids: plainIds,
        points: 40,
        names: 400,
        minLength: 130,
        maxLength: 220,
        verified: true,
      },
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

  test('the ranking depends on the titles and the events in any order, and changes neither', () => {
    const shuffled = mixed.chain(({ events, truth }) =>
      fc
        .shuffledSubarray(events, { minLength: events.length })
        .map((others) => ({ events, truth, others, before: structuredClone({ events, truth }) })),
    )
    fc.assert(
      fc.property(shuffled, ({ events, truth, others, before }) => {
        const { year } = hydrateAndRank({ events, truth })
        expect(hydrateAndRank({ events: others, truth }).year).toEqual(year)
        expect(rankYear(events, truth)).toEqual({ do: 'ranked', year })
        expect({ events, truth }).toEqual(before)
      }),
    )
  })
})

describe('coverage', () => {
  /** One stored signal, as the coverage rule sees it. */
  interface Seen {
    source: string
    sourceId: string
    day: string
  }

  const WINDOW = windowEnding('2026-03-14')
  const NOTHING = rankedYear([])

  /** The day `offset` days after the first of the window; 0 to 364 lie inside. */
  const dayAt = (offset: number): string =>
    new Date(Date.UTC(2025, 2, 15 + offset)).toISOString().slice(0, 10)
  const ALL_DAYS = Array.from({ length: 365 }, (_, offset) => dayAt(offset))

  const daysOf = (seen: readonly Seen[]): string[] =>
    ALL_DAYS.filter((day) => seen.some((signal) => signal.day === day))
  const eventsOf = (seen: readonly Seen[]): number => new Set(seen.map(({ sourceId }) => sourceId)).size

  /** Returns the observations that a store reports: days and events of each source inside the window. */
  function observed(seen: readonly Seen[]): SourceObservation[] {
    const inside = seen.filter(({ day }) => ALL_DAYS.includes(day))
    return [...new Set(inside.map(({ source }) => source))].map((source) => {
      const own = inside.filter((signal) => signal.source === source)
      return { source, days: daysOf(own), events: eventsOf(own) }
    })
  }

  /** decisions.md, part 3, `coverage`, read off the signals day by day. */
  function naiveCoverage(seen: readonly Seen[], ranked: RankedYear): Coverage {
    const inside = seen.filter(({ day }) => ALL_DAYS.includes(day))
    const present = daysOf(inside.filter(({ source }) => NEWS.includes(source)))
    const names = [...NEWS, ...inside.map(({ source }) => source), ...ranked.eligible.keys()]
    const sources = [...new Set(names)].map((source) => {
      const own = inside.filter((signal) => signal.source === source)
      const eligibleEvents = ranked.eligible.get(source) ?? 0
      return [source, { materializedDays: daysOf(own).length, events: eventsOf(own), eligibleEvents }]
    })
    return {
      targetDays: 365,
      materializedDays: present.length,
      complete: present.length === 365,
      firstDay: present[0] ?? null,
      lastDay: present.at(-1) ?? null,
      missingDays: ALL_DAYS.filter((day) => !present.includes(day)),
      sources: Object.fromEntries(sources) as Coverage['sources'],
      excludedCohorts: ranked.excludedCohorts,
      unverified: ranked.unverified,
    }
  }

  const seenSignals = fc.array(
    fc.record({
      source: fc.constantFrom(...NEWS, 'hype:github', 'hype:zed', 'midjourney', 'github'),
      sourceId: fc.constantFrom('1', '2', '3'),
      day: fc.oneof(fc.integer({ min: -3, max: 367 }), fc.constantFrom(-1, 0, 364, 365)).map(dayAt),
    }),
    { maxLength: 60 },
  )
  const rankings = fc
    .record({
      eligible: fc.dictionary(
        fc.constantFrom('hn', 'lesswrong', 'hype:github', 'github'),
        fc.integer({ min: 1 }),
      ),
      unverified: fc.nat(9),
      cohort: fc.nat(4),
    })
    .map(({ eligible, unverified, cohort }) => ({
      ...NOTHING,
      eligible: new Map(Object.entries(eligible)),
      excludedCohorts: [{ provider: 'github', eligibleEvents: cohort }],
      unverified,
    }))

  test('the coverage agrees with a count signal by signal, fits its schema, and has one order', () => {
    fc.assert(
      fc.property(seenSignals, rankings, (seen, ranked) => {
        const coverage = coverageOf(WINDOW, observed(seen), ranked)
        expect(coverage).toEqual(naiveCoverage(seen, ranked))
        expect(coverageSchema.parse(coverage)).toEqual(coverage)
        const reversed = { ...ranked, eligible: new Map([...ranked.eligible].toReversed()) }
        const again = coverageOf(WINDOW, observed(seen).toReversed(), reversed)
        expect(JSON.stringify(again)).toBe(JSON.stringify(coverage))
      }),
    )
  })

  test('the coverage is complete when sources fill the days together', () => {
    const observations = NEWS.map((source, share): SourceObservation => {
      const days = ALL_DAYS.filter((_, index) => index % 3 === share)
      return { source, days, events: days.length }
    })
    expect(coverageOf(WINDOW, observations, NOTHING)).toMatchObject({
      materializedDays: 365,
      complete: true,
      firstDay: '2025-03-15',
      lastDay: '2026-03-14',
      missingDays: [],
    })
  })
})
