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

describe('a day', () => {
  test('a day is parsed exactly when the Gregorian calendar has it', () => {
    const real = [
      '0000-01-01',
      '0000-02-29',
      '2000-02-29',
      '2024-02-29',
      '2025-04-30',
      '2025-12-31',
      '9999-12-31',
    ]
    expect(real.map(parseDay)).toEqual(real)
    // prettier-ignore
    const none = [
      '1900-02-29', '2025-02-29', '2024-02-30', '2025-04-31', '2025-12-32', '2025-13-01', '2025-00-10', '2025-01-00',
      '2025-1-1', '12025-01-01', '2025-01-01 ', '',
    ]
    expect(none.flatMap((text) => parseDay(text) ?? [])).toEqual([])
  })

  test('a day contains every instant from its midnight to the millisecond before the next', () => {
    const midnight = startOfDay('2024-02-29')
    expect(midnight).toBe(Date.UTC(2024, 1, 29))
    expect([midnight - 1, midnight, midnight + DAY_MS - 1].map(dayOf)).toEqual([
      '2024-02-28',
      '2024-02-29',
      '2024-02-29',
    ])
  })

  test('days are counted over months and years', () => {
    expect([addDays('2024-02-28', 2), addDays('2024-03-01', -2)]).toEqual(['2024-03-01', '2024-02-28'])
    expect(addDays('2026-01-01', -366)).toBe('2024-12-31')
    expect(daysBetween('2026-12-30', '2027-01-01')).toEqual(['2026-12-30', '2026-12-31', '2027-01-01'])
    expect(daysBetween('2026-01-02', '2026-01-01')).toEqual([])
  })
})

describe('an instant', () => {
  test.each(['0000-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'])(
    'the formatted instant %s is parsed back',
    (text) => {
      const instant = parseInstant(text) ?? Number.NaN
      expect([instant, formatInstant(instant)]).toEqual([Date.parse(text), text])
    },
  )

  test.each([
    ['2026-01-01T00:00:00Z', 0],
    ['2026-01-01T00:00:00.5Z', 500],
    ['2026-01-01T00:00:00.0059Z', 5],
    ['2026-01-01T05:30:00+05:30', 0],
    ['2025-12-31T14:01:00-09:59', 0],
  ])('the instant %s is %i ms after the beginning of 2026; smaller fractions are cut', (text, millis) => {
    expect(parseInstant(text)).toBe(Date.UTC(2026, 0, 1) + millis)
  })

  // prettier-ignore
  test.each([
    '2026-02-30T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T23:60:00Z', '2026-01-01T23:59:60Z',
    '2026-01-01T00:00:00+24:00', '2026-01-01T00:00:00+00:60', '2026-01-01T00:00:00+0000', ' 2026-01-01T00:00:00Z',
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
