import { describe, expect, test } from 'vitest'
import { addDays, daysBetween } from '../../../src/domain/time.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import { sealEntry } from '../../../src/domain/year/chain.ts'
import type { Attempt } from '../../../src/domain/year/ledger.ts'
import {
  missedDays,
  planPublication,
  laterTimeInLedger,
  unconfirmedGaps,
} from '../../../src/domain/year/plan.ts'
import { chainOf, gap, headAt, legacyRow, legacySeal, manifest, proved, publication } from './ledger-rows.ts'

const DAY = '2026-03-14'

/** Attempts 1…count; how each ended plays no part in the plan. */
function attempts(count: number): Attempt[] {
  const open = { asOfDay: DAY, failedAt: null, reason: null }
  return Array.from({ length: count }, (_, index) => ({ ...open, attempt: index + 1, startedAt: index }))
}

describe('the plan for a day', () => {
  test.each([
    [0, { do: 'publish', attempt: 1 }],
    [2, { do: 'publish', attempt: 3 }],
    [3, { do: 'record-gap', attempts: 3 }],
  ])('the plan after %i counted attempts is %j, with entries of other days', (count, plan) => {
    const { entries } = proved([publication('2026-03-12'), gap('2026-03-13')])
    expect(planPublication(DAY, entries, attempts(count))).toEqual(plan)
  })

  test('the plan is to do nothing when the day is published', () => {
    const { entries } = proved([publication('2026-03-13'), publication(DAY)])
    const plan = { do: 'nothing', because: 'already-published', manifest: manifest(DAY) }
    expect(planPublication(DAY, entries, attempts(1))).toEqual(plan)
  })

  test('the plan is to do nothing for ever when the day is a gap, even with attempts left', () => {
    const { entries } = proved([gap(DAY), publication('2026-03-16')])
    const plan = { do: 'nothing', because: 'gap', reason: 'missed', attempts: 0 }
    expect(planPublication(DAY, entries, [])).toEqual(plan)
  })
})

describe('the missed days', () => {
  const legacy = [legacyRow(1, '2026-03-11'), legacyRow(2, '2026-03-05')]
  const both = [publication('2026-03-02'), publication('2026-03-12'), legacySeal(legacy)]

  test.each([
    ['the archive is new', proved([]), null, []],
    ['there are attempts and no entry', proved([]), '2026-03-12', ['2026-03-12', '2026-03-13']],
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

describe('the confirmation of missed days', () => {
  const now = Date.UTC(2026, 2, 15, 0, 10)
  const lastEntryAt = Date.UTC(2026, 0, 2, 0, 10)

  /** @param newsAge days from the newest news signal to the day; null without news */
  function refusal(missed: number, newsAge: number | null, confirmed: number | null): string | null {
    const facts = {
      asOfDay: DAY,
      missed: daysBetween(addDays(DAY, -missed), addDays(DAY, -1)),
      newestNews: newsAge === null ? null : addDays(DAY, -newsAge),
      now,
      lastEntryAt,
    }
    return unconfirmedGaps(facts, confirmed)
  }

  test.each([
    [7, 7, null],
    [0, null, null],
    [8, 8, 8],
  ])('%i missed days, with news %j days old, are confirmed by %j', (missed, newsAge, confirmed) => {
    expect(refusal(missed, newsAge, confirmed)).toBeNull()
  })

  test.each([
    [8, 0, null, 'or confirm with --record-gaps 8'],
    [0, 8, null, 'or confirm with --record-gaps 0'],
    [8, 0, 7, '--record-gaps 7 is not the number of missed days; 8 missed days'],
    [0, null, 1, '--record-gaps 1 is not the number of missed days; this run would record no missed days'],
  ])(
    '%i missed days, with news %j days old, are not confirmed by %j',
    (missed, newsAge, confirmed, reason) => {
      expect(refusal(missed, newsAge, confirmed)).toContain(reason)
    },
  )

  test('the refusal names the number, the days, the clock, the last entry and the flag', () => {
    expect(refusal(8, 0, null)).toBe(
      '8 missed days (2026-03-06 to 2026-03-13) would become permanent gaps: the clock says 2026-03-15T00:10:00.000Z, and the last entry of the ledger is of 2026-01-02T00:10:00.000Z; correct the clock if it is wrong, or confirm with --record-gaps 8, the number of missed days',
    )
    expect(refusal(0, 40, null)).toBe(
      'the newest news signal is of 2026-02-02, 40 days before 2026-03-14, the day to publish: the clock says 2026-03-15T00:10:00.000Z, and the last entry of the ledger is of 2026-01-02T00:10:00.000Z; correct the clock if it is wrong, import or collect newer signals, or confirm with --record-gaps 0, since no day was missed',
    )
    expect(refusal(1, 0, 2)).toBe(
      '--record-gaps 2 is not the number of missed days; this run would record 1 missed day (2026-03-13); give 1, or leave the flag out',
    )
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

  test.each([
    ['versioned', [3, 9], [5], 9],
    ['legacy', [3], [9, 5], 9],
    ['no', [], [], null],
  ])('the time ahead is that of the greatest publication, a %s one, until the clock is past it', (...row) => {
    const [, own, old, newest] = row
    const legacy = old.map((publishedAt, index) => legacyRow(index + 1, '2025-12-30', { publishedAt }))
    const contents = own.map((publishedAt) => publication(DAY, { publishedAt }))
    const { entries, timeline } = proved([...contents, legacySeal(legacy)], legacy)
    expect([8, 9].map((now) => laterTimeInLedger(now, entries, timeline))).toEqual([newest, newest])
    expect(laterTimeInLedger(10, entries, timeline)).toBeNull()
  })
})
