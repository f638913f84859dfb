import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { lastCompleteDay, TARGET_DAYS, windowEnding } from '../../../src/domain/year/ledger.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const instants = fc.integer({ min: Date.UTC(1970, 0, 2), max: Date.UTC(2199, 11, 31) })

test('ends at midnight after the as-of day and starts 365 days before', () => {
  expect(windowEnding('2026-03-14')).toEqual({
    asOfDay: '2026-03-14',
    firstDay: '2025-03-15',
    windowStart: Date.UTC(2025, 2, 15),
    windowEnd: Date.UTC(2026, 2, 15),
  })
})

test('has 365 days in a leap year too', () => {
  expect(windowEnding('2024-12-31')).toMatchObject({
    firstDay: '2024-01-02',
    windowEnd: Date.UTC(2025, 0, 1),
  })
  expect(windowEnding('2024-02-29')).toMatchObject({
    firstDay: '2023-03-02',
    windowEnd: Date.UTC(2024, 2, 1),
  })
})

test('covers 365 whole UTC days, whenever it ends', () => {
  fc.assert(
    fc.property(instants, (instant) => {
      const window = windowEnding(new Date(instant).toISOString().slice(0, 10))
      expect(window.windowEnd - window.windowStart).toBe(TARGET_DAYS * DAY)
      expect(TARGET_DAYS).toBe(365)
      expect(window.windowEnd % DAY).toBe(0)
      expect(window.windowEnd).toBeGreaterThan(instant)
      expect(window.windowEnd - DAY).toBeLessThanOrEqual(instant)
      expect(new Date(window.windowStart).toISOString()).toBe(`${window.firstDay}T00:00:00.000Z`)
    }),
  )
})

test('the last complete day is yesterday from the first to the last millisecond of a day', () => {
  expect(lastCompleteDay(Date.UTC(2026, 2, 15))).toBe('2026-03-14')
  expect(lastCompleteDay(Date.UTC(2026, 2, 15) + DAY - 1)).toBe('2026-03-14')
  expect(lastCompleteDay(Date.UTC(2026, 2, 15) - 1)).toBe('2026-03-13')
  expect(lastCompleteDay(Date.UTC(2024, 2, 1, 5))).toBe('2024-02-29')
})

test('the window of the last complete day is over at that time', () => {
  fc.assert(
    fc.property(instants, (now) => {
      const { windowEnd } = windowEnding(lastCompleteDay(now))
      expect(windowEnd).toBeLessThanOrEqual(now)
      expect(now - windowEnd).toBeLessThan(DAY)
    }),
  )
})
