import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { daysBetween } from '../../../src/domain/time.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import { sealEntry } from '../../../src/domain/year/chain.ts'
import type { Attempt, EntryContent } from '../../../src/domain/year/ledger.ts'
import { LEASE_MS } from '../../../src/domain/lease.ts'
import {
  ATTEMPTS_PER_DAY,
  COMMIT_WITHIN_MS,
  missedDays,
  planPublication,
  laterTimeInLedger,
} from '../../../src/domain/year/plan.ts'
import { chainOf, gap, headAt, legacyRow, legacySeal, manifest, proved, publication } from './ledger-rows.ts'

const DAY = '2026-03-14'

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
  const legacy = [legacyRow(1, '2026-03-01')]
  const others = proved([legacySeal(legacy), publication('2026-03-12'), gap('2026-03-13')], legacy).entries

  test.each([
    [0, { do: 'publish', attempt: 1 }],
    [1, { do: 'publish', attempt: 2 }],
    [2, { do: 'publish', attempt: 3 }],
    [3, { do: 'record-gap', attempts: 3 }],
  ])('the plan after %i counted attempts is %j, with any ends of them and any other days', (count, plan) => {
    for (const failedAt of [null, 5]) {
      expect(planPublication(DAY, [], attempts(count, failedAt))).toEqual(plan)
      expect(planPublication(DAY, others, attempts(count, failedAt))).toEqual(plan)
    }
  })

  test.each([1, 2, 3])('the plan is to do nothing when the day is published, after %i attempts', (count) => {
    const { entries } = proved([publication('2026-03-13'), publication(DAY)])
    const because = 'already-published'
    const plan = { do: 'nothing', because, manifest: manifest(DAY) }
    expect(planPublication(DAY, entries, attempts(count))).toEqual(plan)
  })

  test('the plan is to do nothing for ever when the day is a gap, even with attempts left', () => {
    const spent: EntryContent = { kind: 'gap', asOfDay: DAY, reason: 'attempts_spent', attempts: 3 }
    const { entries } = proved([spent, gap('2026-03-15'), publication('2026-03-16')])
    const nothing = { do: 'nothing', because: 'gap' }
    expect(planPublication(DAY, entries, attempts(3))).toEqual({
      ...nothing,
      reason: 'attempts_spent',
      attempts: 3,
    })
    expect(planPublication('2026-03-15', entries, [])).toEqual({ ...nothing, reason: 'missed', attempts: 0 })
  })
})

describe('the missed days', () => {
  const legacy = [legacyRow(1, '2026-03-11'), legacyRow(2, '2026-03-05')]
  const both = [publication('2026-03-02'), publication('2026-03-12'), legacySeal(legacy)]

  test.each([
    ['yesterday has an entry', proved([publication('2026-03-13')]), '2026-03-13', []],
    ['the day itself has an entry', proved([publication(DAY)]), DAY, []],
    ['the clock stands before the last entry', proved([publication('2026-03-20')]), '2026-03-01', []],
    ['the archive is new', proved([]), null, []],
    ['there are attempts and no entry', proved([]), '2026-03-12', ['2026-03-12', '2026-03-13']],
    ['the first attempt is of the day', proved([]), DAY, []],
    ['attempts are older than an entry', proved([publication('2026-03-12')]), '2026-01-01', ['2026-03-13']],
    [
      'the archive was imported',
      proved([legacySeal(legacy)], legacy),
      '2026-01-01',
      ['2026-03-12', '2026-03-13'],
    ],
    ['the imported past has a hole', proved(both, legacy), null, ['2026-03-13']],
    [
      'nothing ran for a month',
      proved([publication('2026-01-30'), gap('2026-01-31')]),
      null,
      daysBetween('2026-02-01', '2026-03-13'),
    ],
  ])('the missed days when %s are none or those since the newest day', (_when, ledger, attempted, days) => {
    expect(missedDays(ledger, attempted, DAY)).toEqual(days)
  })
})

describe('the time ahead of the clock', () => {
  const at = Date.UTC(2026, 2, 15, 0, 5)

  test('the time ahead is that of the last entry when it is a gap, whose own millisecond may be shared', () => {
    const [first] = chainOf([publication(DAY, { publishedAt: at })])
    if (!first) throw new Error('no entry')
    const rows = [first, sealEntry(gap('2026-03-15'), 2, at + 900, first.leaf)]
    const { entries, timeline } = proveLedger({ rows, legacy: [], founding: null }, headAt(rows, 2))
    expect(laterTimeInLedger(at + 899, entries, timeline)).toBe(at + 900)
    expect(laterTimeInLedger(at + 900, entries, timeline)).toBeNull()
  })

  test('the time ahead is that of the greatest publication of either ledger until the clock is past it', () => {
    const times = fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 5 })
    fc.assert(
      fc.property(times, times, fc.integer({ min: 0, max: 21 }), (versioned, old, now) => {
        const legacy = old.map((publishedAt, index) => legacyRow(index + 1, '2025-12-30', { publishedAt }))
        const ascending = versioned.toSorted((a, b) => a - b)
        const own = ascending.map((publishedAt) => publication(DAY, { publishedAt }))
        const { entries, timeline } = proved([...own, legacySeal(legacy)], legacy)
        const newest = Math.max(0, ...versioned, ...old)
        expect(laterTimeInLedger(now, entries, timeline)).toBe(newest > 0 && now <= newest ? newest : null)
      }),
    )
    expect(laterTimeInLedger(0, [], [])).toBeNull()
  })
})
