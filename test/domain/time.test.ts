import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  addDays,
  DAY_MS,
  dayOf,
  daysBetween,
  formatInstant,
  minuteSeenFrom,
  parseDay,
  parseInstant,
  startOfDay,
} from '../../src/domain/time.ts'

/** Years 0000 to 9999, the years a day can be written in. */
const instants = fc.integer({
  min: Date.parse('0000-01-02T00:00:00Z'),
  max: Date.parse('9999-12-30T23:59:59.999Z'),
})
const days = instants.map((instant) => new Date(instant).toISOString().slice(0, 10))

const pad = (value: number, width = 2): string => String(value).padStart(width, '0')

/** The Gregorian calendar, spelled out. */
function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}

describe('a day', () => {
  test('a day is parsed exactly when the Gregorian calendar has it', () => {
    const parts = fc.record({
      year: fc.oneof(fc.constantFrom(0, 1900, 2000, 2024, 2100, 9999), fc.integer({ min: 0, max: 9999 })),
      month: fc.integer({ min: 0, max: 14 }),
      day: fc.oneof(fc.constantFrom(0, 28, 29, 30, 31, 32), fc.integer({ min: 0, max: 99 })),
    })
    fc.assert(
      fc.property(parts, ({ year, month, day }) => {
        const text = `${pad(year, 4)}-${pad(month)}-${pad(day)}`
        const real = month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)
        expect(parseDay(text)).toBe(real ? text : null)
      }),
      { numRuns: 1000 },
    )
  })

  // prettier-ignore
  test('no day is parsed from "2025-04-31"', () => {
    expect(parseDay('2025-04-31')).toBeNull()
  })

  test('a day contains every instant from its midnight to the millisecond before the next', () => {
    fc.assert(
      fc.property(days, fc.integer({ min: 0, max: DAY_MS - 1 }), (day, offset) => {
        expect(dayOf(startOfDay(day) + offset)).toBe(day)
        expect(dayOf(startOfDay(day) + DAY_MS)).not.toBe(day)
      }),
    )
  })

  test('counting days forth and back returns to the same day', () => {
    const counts = fc.integer({ min: -800, max: 800 })
    fc.assert(
      fc.property(fc.integer({ min: 1900, max: 2199 }), counts, (year, count) => {
        const day = `${year}-03-01`
        expect(addDays(addDays(day, count), -count)).toBe(day)
        expect(startOfDay(addDays(day, count)) - startOfDay(day)).toBe(count * DAY_MS)
      }),
    )
  })
})

describe('the days between two', () => {
  test('the days between two include both and are consecutive', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1900, max: 2199 }), fc.integer({ min: 0, max: 800 }), (year, count) => {
        const first = `${year}-12-30`
        const between = daysBetween(first, addDays(first, count))
        expect(between).toEqual(Array.from({ length: count + 1 }, (_, index) => addDays(first, index)))
      }),
      { numRuns: 30 },
    )
  })

  test('there are no days when the last is before the first', () => {
    expect(daysBetween('2026-01-02', '2026-01-01')).toEqual([])
  })
})

describe('an instant', () => {
  test('a formatted instant is parsed back', () => {
    fc.assert(
      fc.property(instants, (instant) => {
        expect(formatInstant(instant)).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
        expect(parseInstant(formatInstant(instant))).toBe(instant)
      }),
    )
  })

  test('an instant may have any zone', () => {
    const zone = fc.record({
      sign: fc.constantFrom(1, -1),
      hours: fc.integer({ min: 0, max: 23 }),
      minutes: fc.integer({ min: 0, max: 59 }),
    })
    fc.assert(
      fc.property(instants, zone, (instant, { sign, hours, minutes }) => {
        const local = new Date(instant + sign * (hours * 60 + minutes) * 60_000).toISOString()
        const text = `${local.slice(0, -1)}${sign > 0 ? '+' : '-'}${pad(hours)}:${pad(minutes)}`
        expect(parseInstant(text)).toBe(instant)
      }),
    )
  })

  test.each([
    ['2026-01-01T00:00:00Z', 0],
    ['2026-01-01T00:00:00.5Z', 500],
    ['2026-01-01T00:00:00.0059Z', 5],
  ])('the fraction of %s is %i ms and the rest is cut', (text, millis) => {
    expect(parseInstant(text)).toBe(Date.UTC(2026, 0, 1) + millis)
  })

  // prettier-ignore
  test.each([
    '2026-02-30T00:00:00Z',  
      '2026-01-01T24:00:00Z',
    '2026-01-01T23:60:00Z', '2026-01-01T23:59:60Z', '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00+00:60', '2026-01-01T00:00:00+0000', 
     '2026-01-01T00:00:00Z\n', ' 2026-01-01T00:00:00Z',
  ])('no instant is parsed from %j', (text) => {
    expect(parseInstant(text)).toBeNull()
  })
})

test.each([
  ['2026-03-16T07:30:00Z', 'today 07:30 UTC'],
  ['2026-03-15T20:00:00Z', 'yesterday 20:00 UTC'],
  ['2026-03-14T23:59:00Z', '2026-03-14 23:59 UTC'],
])('readers see %s on 2026-03-16 as %s', (at, text) => {
  expect(minuteSeenFrom(Date.parse('2026-03-16T20:00:00Z'), Date.parse(at))).toBe(text)
})
