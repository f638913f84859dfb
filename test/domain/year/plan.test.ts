import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { proveLedger, sealEntry } from '../../../src/domain/year/chain.ts'
import type { ProvedLedger } from '../../../src/domain/year/chain.ts'
import type { Attempt, EntryContent, LegacyRow } from '../../../src/domain/year/ledger.ts'
import {
  ATTEMPTS_PER_DAY,
  COMMIT_WITHIN_MS,
  LEASE_MS,
  missedDays,
  planPublication,
  timeAhead,
} from '../../../src/domain/year/plan.ts'
import { chainOf, gap, headAt, legacyRow, legacySeal, manifest, publication } from './ledger-rows.ts'

const DAY = '2026-03-14'

const NOTHING = { entries: [], timeline: [] }

function ledgerOf(contents: readonly EntryContent[], legacy: LegacyRow[] = []): ProvedLedger {
  const rows = chainOf(contents)
  return proveLedger({ rows, legacy, founding: null }, rows.length === 0 ? null : headAt(rows, rows.length))
}

/** Attempts 1…count; how each ended plays no part in the plan. */
function attempts(count: number, failedAt: number | null = null): Attempt[] {
  return Array.from({ length: count }, (_, index) => ({
    asOfDay: DAY,
    attempt: index + 1,
    startedAt: index,
    failedAt,
    reason: null,
  }))
}

test('the limits are those of the rules', () => {
  expect([ATTEMPTS_PER_DAY, COMMIT_WITHIN_MS, LEASE_MS]).toEqual([3, 10_000, 600_000])
})

describe('the plan for a day', () => {
  test.each([0, 1, 2])('is to publish after %i counted attempts', (count) => {
    for (const failedAt of [null, 5]) {
      const plan = planPublication(DAY, [], attempts(count, failedAt))
      expect(plan).toEqual({ do: 'publish', attempt: count + 1 })
    }
  })

  test('is to record a gap once three attempts are counted, even if they were killed rather than failed', () => {
    for (const failedAt of [null, 5]) {
      expect(planPublication(DAY, [], attempts(3, failedAt))).toEqual({ do: 'record-gap', attempts: 3 })
    }
  })

  test('is nothing when the day is published, however many attempts that took', () => {
    const { entries } = ledgerOf([publication('2026-03-13'), publication(DAY)])
    for (const count of [1, 2, 3]) {
      expect(planPublication(DAY, entries, attempts(count))).toEqual({
        do: 'nothing',
        because: 'already-published',
        manifest: manifest(DAY),
      })
    }
  })

  test('is nothing for ever when the day is a gap, even with attempts left', () => {
    const spent: EntryContent = { kind: 'gap', asOfDay: DAY, reason: 'attempts_spent', attempts: 3 }
    const { entries } = ledgerOf([spent, gap('2026-03-15'), publication('2026-03-16')])
    expect(planPublication(DAY, entries, attempts(3))).toEqual({
      do: 'nothing',
      because: 'gap',
      reason: 'attempts_spent',
      attempts: 3,
    })
    expect(planPublication('2026-03-15', entries, [])).toEqual({
      do: 'nothing',
      because: 'gap',
      reason: 'missed',
      attempts: 0,
    })
  })

  test('does not depend on entries of other days', () => {
    const legacy = [legacyRow(1, '2026-03-01')]
    const { entries } = ledgerOf([legacySeal(legacy), publication('2026-03-12'), gap('2026-03-13')], legacy)
    expect(planPublication(DAY, entries, [])).toEqual({ do: 'publish', attempt: 1 })
    expect(planPublication(DAY, entries, attempts(3))).toEqual({ do: 'record-gap', attempts: 3 })
  })
})

describe('the missed days', () => {
  test('are none when yesterday has an entry', () => {
    expect(missedDays(ledgerOf([publication('2026-03-13')]), '2026-03-13', DAY)).toEqual([])
    expect(missedDays(ledgerOf([gap('2026-03-13')]), null, DAY)).toEqual([])
  })

  test('are none when the day itself has an entry', () => {
    expect(missedDays(ledgerOf([publication(DAY)]), DAY, DAY)).toEqual([])
  })

  test('are none when the clock stands before the last entry', () => {
    expect(missedDays(ledgerOf([publication('2026-03-20')]), '2026-03-01', DAY)).toEqual([])
  })

  test('are all days since the last entry after a pause of a month', () => {
    const february = Array.from({ length: 28 }, (_, index) => `2026-02-${String(index + 1).padStart(2, '0')}`)
    const march = Array.from({ length: 13 }, (_, index) => `2026-03-${String(index + 1).padStart(2, '0')}`)
    for (const last of [publication('2026-01-31'), gap('2026-01-31')]) {
      expect(missedDays(ledgerOf([publication('2026-01-30'), last]), null, DAY)).toEqual([
        ...february,
        ...march,
      ])
    }
  })

  test('go over a leap day and a new year', () => {
    const ledger = ledgerOf([publication('2024-02-27')])
    expect(missedDays(ledger, null, '2024-03-02')).toEqual(['2024-02-28', '2024-02-29', '2024-03-01'])
    expect(missedDays(ledgerOf([gap('2025-12-30')]), null, '2026-01-02')).toEqual([
      '2025-12-31',
      '2026-01-01',
    ])
  })

  test('are none in a new archive, which owes nothing', () => {
    expect(missedDays(NOTHING, null, DAY)).toEqual([])
  })

  test('begin with the first attempted day when there are attempts and no entry', () => {
    expect(missedDays(NOTHING, '2026-03-11', DAY)).toEqual(['2026-03-11', '2026-03-12', '2026-03-13'])
    expect(missedDays(NOTHING, DAY, DAY)).toEqual([])
  })

  test('are counted from the last entry, not from the first attempt, when there is one', () => {
    expect(missedDays(ledgerOf([publication('2026-03-12')]), '2026-01-01', DAY)).toEqual(['2026-03-13'])
  })

  test('are counted from the newest day of either ledger, and fill no hole of an imported past', () => {
    const legacy = [legacyRow(1, '2026-03-11'), legacyRow(2, '2026-03-05')]
    expect(missedDays(ledgerOf([legacySeal(legacy)], legacy), '2026-01-01', DAY)).toEqual([
      '2026-03-12',
      '2026-03-13',
    ])
    const both = ledgerOf([publication('2026-03-02'), publication('2026-03-12'), legacySeal(legacy)], legacy)
    expect(missedDays(both, null, DAY)).toEqual(['2026-03-13'])
  })

  test('leave no day without an entry once they are recorded', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }), (pauses) => {
        const contents: EntryContent[] = [publication('2026-01-01')]
        const dayAfter = (count: number): string =>
          new Date(Date.UTC(2026, 0, 1 + count)).toISOString().slice(0, 10)
        let passed = 0
        for (const pause of pauses) {
          passed += pause
          const missed = missedDays(ledgerOf(contents), null, dayAfter(passed))
          contents.push(...missed.map(gap), publication(dayAfter(passed)))
        }
        const days = contents.map((content) => {
          if (content.kind === 'publication') return content.manifest.asOfDay
          return content.kind === 'gap' ? content.asOfDay : ''
        })
        expect(days).toEqual(Array.from({ length: passed + 1 }, (_, index) => dayAfter(index)))
      }),
      { numRuns: 50 },
    )
  })
})

describe('the time ahead of the clock', () => {
  const at = Date.UTC(2026, 2, 15, 0, 5)
  const published = ledgerOf([publication(DAY, { publishedAt: at })])

  test('is none in an empty archive', () => {
    expect(timeAhead(0, [], [])).toBeNull()
  })

  test('is none one millisecond after the last publication', () => {
    expect(timeAhead(at + 1, published.entries, published.timeline)).toBeNull()
  })

  test('is the last publication for the same millisecond and every one before', () => {
    for (const now of [at, at - 1, 0]) expect(timeAhead(now, published.entries, published.timeline)).toBe(at)
  })

  test('is the greatest publication of either ledger', () => {
    const legacy = [legacyRow(1, '2026-03-01', { publishedAt: at + 500 }), legacyRow(2, '2026-03-02')]
    const { entries, timeline } = ledgerOf(
      [publication(DAY, { publishedAt: at }), legacySeal(legacy)],
      legacy,
    )
    expect(timeAhead(at + 500, entries, timeline)).toBe(at + 500)
    expect(timeAhead(at + 501, entries, timeline)).toBeNull()
  })

  test('is the last entry when that is a gap, whose own millisecond may be shared', () => {
    const [first] = chainOf([publication(DAY, { publishedAt: at })])
    if (!first) throw new Error('no entry')
    const rows = [first, sealEntry(gap('2026-03-15'), 2, at + 900, first.leaf)]
    const { entries, timeline } = proveLedger({ rows, legacy: [], founding: null }, headAt(rows, 2))
    expect(timeAhead(at + 899, entries, timeline)).toBe(at + 900)
    expect(timeAhead(at + 900, entries, timeline)).toBeNull()
  })

  test('is none exactly when the clock is past every publication and not before any entry', () => {
    const times = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 5 })
    fc.assert(
      fc.property(times, times, fc.integer({ min: 0, max: 21 }), (versioned, old, now) => {
        const legacy = old.map((publishedAt, index) => legacyRow(index + 1, '2025-12-30', { publishedAt }))
        const contents = versioned
          .toSorted((a, b) => a - b)
          .map((publishedAt) => publication(DAY, { publishedAt }))
        const { entries, timeline } = ledgerOf([...contents, legacySeal(legacy)], legacy)
        const trusted =
          [...versioned, ...old].every((time) => now > time) && entries.every((e) => now >= e.recordedAt)
        expect(timeAhead(now, entries, timeline) === null).toBe(trusted)
      }),
    )
  })
})
