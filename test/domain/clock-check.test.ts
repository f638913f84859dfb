import { describe, expect, test } from 'vitest'
import {
  clockDifference,
  describeDifference,
  describeWrongDay,
  isClockWrong,
  medianOf,
  skewOf,
  stopsPublishing,
} from '../../src/domain/clock-check.ts'

const NOW = Date.parse('2026-03-02T12:00:00Z')
const HOUR = 3_600_000

test('a header that is cut to the second and arrives later agrees with the clock', () => {
  expect(skewOf(10_000, 10_999, 11_200)).toBe(0)
  expect(skewOf(10_000, 9_900, 10_100)).toBe(0)
  expect(skewOf(10_000, 15_000, 15_100)).toBe(-4_000)
  expect(skewOf(20_000, 15_000, 15_100)).toBe(4_900)
})

test('the median is the middle value, or the middle of two, and none without values', () => {
  expect([[], [9, 1, 3], [4, 1, 2, 9]].map(medianOf)).toEqual([null, 3, 3])
})

describe('the difference to the sources', () => {
  test('each source counts once, however many responses it sent', () => {
    const many = Array.from({ length: 350 }, () => -900_000)
    expect(clockDifference([many, [0, 1_000], [500]])).toEqual({ aheadMs: -500, sources: 3 })
    expect(clockDifference([many, [], []])).toEqual({ aheadMs: 900_000, sources: 1 })
    expect(clockDifference([[], []])).toBeNull()
  })

  test('a clock is wrong from more than five minutes in either direction', () => {
    const wrong = (aheadMs: number): boolean => isClockWrong({ aheadMs, sources: 1 })
    expect([300_000, 300_001, -300_000, -300_001, 0].map(wrong)).toEqual([false, true, false, true, false])
    expect(isClockWrong(null)).toBe(false)
  })

  test.each([
    [{ aheadMs: 301_000, sources: 1 }, '5 minutes ahead of 1 source'],
    [{ aheadMs: -7_200_000, sources: 3 }, '2 hours behind 3 sources'],
    [{ aheadMs: 94_608_000_000, sources: 2 }, '1095 days ahead of 2 sources'],
    [{ aheadMs: 90_000, sources: 2 }, '90 seconds ahead of 2 sources'],
  ])('the difference %j is described as %s', (difference, text) => {
    expect(describeDifference(difference)).toBe(text)
  })
})

test.each([
  [301_000, 120_000, 'the clock is 5 minutes ahead of 2 sources, where 2026-03-02 is another day'],
  [301_000, 400_000, null],
  [-301_000, -120_000, 'the clock is 5 minutes behind 2 sources, where 2026-03-01 is another day'],
  [-301_000, 120_000, null],
  [299_000, 120_000, null],
])('a clock %i ms ahead, %i ms after midnight: %s', (aheadMs, afterMs, problem) => {
  const startedAt = Date.UTC(2026, 2, 2) + afterMs
  expect(describeWrongDay({ aheadMs, sources: 2 }, startedAt)).toBe(problem)
})

const YEARS = 26_000 * HOUR

test.each([
  ['the clock was right', NOW, 300_000, false],
  ['it is more than 48 hours ago', NOW - 48 * HOUR - 1, YEARS, false],
  ['the clock was ahead and was corrected', NOW - 48 * HOUR + YEARS, YEARS, true],
])('a comparison stops publications unless it is old or found the clock right: %s', (...row) => {
  const [, checkedAt, aheadMs, stops] = row
  expect(stopsPublishing({ checkedAt, aheadMs, sources: 1 }, NOW)).toBe(stops)
})
