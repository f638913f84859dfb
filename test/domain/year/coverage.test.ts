import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { coverageOf } from '../../../src/domain/year/rank.ts'
import type { SourceObservation, RankedYear } from '../../../src/domain/year/rank.ts'
import { coverageSchema } from '../../../src/domain/year/schema.ts'
import type { Coverage } from '../../../src/domain/year/schema.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import { rankedYear, yearEvents } from '../../support/signals.ts'

/** One stored signal, as the coverage rule sees it. */
interface Seen {
  source: string
  sourceId: string
  day: string
}

const NEWS = ['hn', 'lobsters', 'lesswrong']
const WINDOW = windowEnding('2026-03-14')
const NOTHING = rankedYear([])

/** The day `offset` days after the first of the window; 0 to 364 lie inside. */
const dayAt = (offset: number): string => new Date(Date.UTC(2025, 2, 15 + offset)).toISOString().slice(0, 10)
const ALL_DAYS = Array.from({ length: 365 }, (_, offset) => dayAt(offset))

/** What a store reports of its signals: days and events of each source inside the window. */
function observed(seen: readonly Seen[]): SourceObservation[] {
  const inside = seen.filter(({ day }) => ALL_DAYS.includes(day))
  return [...new Set(inside.map(({ source }) => source))].map((source) => {
    const own = inside.filter((signal) => signal.source === source)
    return {
      source,
      days: ALL_DAYS.filter((day) => own.some((signal) => signal.day === day)),
      events: new Set(own.map(({ sourceId }) => sourceId)).size,
    }
  })
}

/** decisions.md, part 3, `coverage`, read off the signals day by day. */
function naiveCoverage(seen: readonly Seen[], ranked: RankedYear): Coverage {
  const present: string[] = []
  const missing: string[] = []
  for (const day of ALL_DAYS) {
    const materialized = seen.some((signal) => signal.day === day && NEWS.includes(signal.source))
    ;(materialized ? present : missing).push(day)
  }
  const sources: Coverage['sources'] = {}
  for (const source of [...NEWS, ...seen.map((signal) => signal.source), ...ranked.eligible.keys()]) {
    const own = seen.filter((signal) => signal.source === source && ALL_DAYS.includes(signal.day))
    if (own.length === 0 && !NEWS.includes(source) && !ranked.eligible.has(source)) continue
    sources[source] = {
      materializedDays: ALL_DAYS.filter((day) => own.some((signal) => signal.day === day)).length,
      events: new Set(own.map(({ sourceId }) => sourceId)).size,
      eligibleEvents: ranked.eligible.get(source) ?? 0,
    }
  }
  return {
    targetDays: 365,
    materializedDays: present.length,
    complete: present.length === 365,
    firstDay: present[0] ?? null,
    lastDay: present[present.length - 1] ?? null,
    missingDays: missing,
    sources,
    excludedCohorts: ranked.excludedCohorts,
    unverified: ranked.unverified,
  }
}

const offsets = fc.oneof(fc.integer({ min: -3, max: 367 }), fc.constantFrom(-1, 0, 364, 365))
const seenSignals = fc.array(
  fc.record({
    source: fc.constantFrom(...NEWS, 'hype:github', 'hype:zed', 'midjourney', 'github'),
    sourceId: fc.constantFrom('1', '2', '3'),
    day: offsets.map(dayAt),
  }),
  { maxLength: 60 },
)

const rankings = fc
  .record({
    eligible: fc.dictionary(
      fc.constantFrom('hn', 'lesswrong', 'hype:github', 'github'),
      fc.integer({ min: 1, max: 9 }),
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

test('agrees with a reading of the rule signal by signal, and fits its schema', () => {
  fc.assert(
    fc.property(seenSignals, rankings, (seen, ranked) => {
      const coverage = coverageOf(WINDOW, observed(seen), ranked)
      expect(coverage).toEqual(naiveCoverage(seen, ranked))
      expect(coverageSchema.parse(coverage)).toEqual(coverage)
    }),
  )
})

test('is written the same for any order of observations and of eligible sources', () => {
  fc.assert(
    fc.property(seenSignals, rankings, (seen, ranked) => {
      const observations = observed(seen)
      const reversed = { ...ranked, eligible: new Map([...ranked.eligible].toReversed()) }
      expect(JSON.stringify(coverageOf(WINDOW, observations.toReversed(), reversed))).toBe(
        JSON.stringify(coverageOf(WINDOW, observations, ranked)),
      )
    }),
  )
})

describe('an archive', () => {
  const everyDay = (source: string, days: readonly string[]): SourceObservation => ({
    source,
    days: [...days],
    events: days.length,
  })

  test('of every day of the window is complete', () => {
    const coverage = coverageOf(WINDOW, [everyDay('lobsters', ALL_DAYS)], NOTHING)
    expect(coverage).toMatchObject({
      targetDays: 365,
      materializedDays: 365,
      complete: true,
      firstDay: '2025-03-15',
      lastDay: '2026-03-14',
      missingDays: [],
    })
  })

  test('is complete when its news sources fill the days between them', () => {
    const shares = NEWS.map((source, share) =>
      everyDay(
        source,
        ALL_DAYS.filter((_, index) => index % 3 === share),
      ),
    )
    expect(coverageOf(WINDOW, shares, NOTHING)).toMatchObject({ materializedDays: 365, complete: true })
  })

  test('without one day is not complete and names it', () => {
    for (const missing of [0, 182, 364]) {
      const coverage = coverageOf(WINDOW, [everyDay('hn', ALL_DAYS.toSpliced(missing, 1))], NOTHING)
      expect(coverage).toMatchObject({
        materializedDays: 364,
        complete: false,
        firstDay: dayAt(missing === 0 ? 1 : 0),
        lastDay: dayAt(missing === 364 ? 363 : 364),
        missingDays: [dayAt(missing)],
      })
    }
  })

  test('of hype and images alone has no materialized day', () => {
    const coverage = coverageOf(
      WINDOW,
      [everyDay('hype:github', ALL_DAYS), everyDay('midjourney', ALL_DAYS)],
      NOTHING,
    )
    expect(coverage).toMatchObject({ materializedDays: 0, complete: false, firstDay: null, lastDay: null })
    expect(coverage.missingDays).toEqual(ALL_DAYS)
    expect(coverage.sources['hype:github']).toEqual({ materializedDays: 365, events: 365, eligibleEvents: 0 })
  })

  test('of nothing still names the news sources', () => {
    const none = { materializedDays: 0, events: 0, eligibleEvents: 0 }
    expect(coverageOf(WINDOW, [], NOTHING).sources).toEqual({ hn: none, lobsters: none, lesswrong: none })
  })

  test('reports what the ranking left out', () => {
    const ranked = rankedYear([
      ...yearEvents('hype:github', 4),
      ...yearEvents('hype:civitai', 6),
      ...yearEvents('hype:reddit', 6, (index) => (index < 2 ? { titleProvenance: null } : {})),
      ...yearEvents('hn', 3),
    ])
    const coverage = coverageOf(WINDOW, [], ranked)
    expect(coverage.excludedCohorts).toEqual([
      { provider: 'civitai', eligibleEvents: 6 },
      { provider: 'github', eligibleEvents: 4 },
      { provider: 'reddit', eligibleEvents: 4 },
    ])
    expect(coverage.unverified).toBe(2)
    expect(coverage.sources['hn']).toEqual({ materializedDays: 0, events: 0, eligibleEvents: 3 })
    expect(coverage.sources['hype:reddit']?.eligibleEvents).toBe(4)
  })
})
