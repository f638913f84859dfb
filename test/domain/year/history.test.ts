import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Refusal } from '../../../src/domain/refusal.ts'
import { parseHistoryQuery, HISTORY_REFUSALS } from '../../../src/domain/year/history.ts'
const NOW = Date.UTC(2026, 2, 15, 12, 0, 0, 123)
const FIVE_MINUTES = 300_000

const ask = (query: string): number => parseHistoryQuery(new URLSearchParams(query), NOW).at

/** Asks for `sort=year` and this `at`, encoded so that it arrives exactly as written. */
const askAt = (at: string): number => parseHistoryQuery(new URLSearchParams({ sort: 'year', at }), NOW).at

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
  throw new Error('not refused')
}

describe('sort', () => {
  test.each([
    ['missing', ''],
    ['missing beside a good `at`', 'at=2026-01-01T00:00:00Z'],
    ['empty', 'sort='],
    ['month', 'sort=month'],
    ['in upper case', 'sort=Year'],
    ['with a space after it', 'sort=year+'],
    ['with a space before it', 'sort=%20year'],
    ['given twice', 'sort=year&sort=year'],
    ['given twice with another value last', 'sort=year&sort=day'],
    ['given twice with another value first', 'sort=day&sort=year'],
    ['under another name', 'Sort=year'],
    ['with a zero-width space', 'sort=year%E2%80%8B'],
  ])('%s is invalid_sort', (_, query) => {
    expect(codeOf(() => ask(query))).toBe('invalid_sort')
  })

  test('is judged before `at`', () => {
    expect(codeOf(() => ask('sort=day&at=nonsense'))).toBe('invalid_sort')
    expect(codeOf(() => ask('at=nonsense'))).toBe('invalid_sort')
  })
})

describe('`at`', () => {
  test('defaults to now', () => {
    expect(ask('sort=year')).toBe(NOW)
  })

  test.each([
    ['2026-03-15T11:00:00Z', Date.UTC(2026, 2, 15, 11)],
    ['2026-03-15T11:00:00.5Z', Date.UTC(2026, 2, 15, 11, 0, 0, 500)],
    ['2026-03-15T11:00:00.05Z', Date.UTC(2026, 2, 15, 11, 0, 0, 50)],
    ['2026-03-15T11:00:00.000Z', Date.UTC(2026, 2, 15, 11)],
    ['2024-02-29T23:59:59.999Z', Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
    ['1970-01-01T00:00:00Z', 0],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000],
  ])('%s is understood', (at, instant) => {
    expect(askAt(at)).toBe(instant)
  })

  test('is understood with or without milliseconds, at every past instant', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1900, 0, 1), max: NOW }), (instant) => {
        const written = new Date(instant).toISOString()
        expect(askAt(written)).toBe(instant)
        expect(askAt(`${written.slice(0, 19)}Z`)).toBe(Math.floor(instant / 1000) * 1000)
      }),
    )
  })

  test.each([
    ['empty', ''],
    ['the 30th of February', '2025-02-30T00:00:00Z'],
    ['the 29th of February of a common year', '2025-02-29T00:00:00Z'],
    ['the 31st of April', '2025-04-31T00:00:00Z'],
    ['day 0', '2025-01-00T00:00:00Z'],
    ['day 32', '2025-01-32T00:00:00Z'],
    ['month 0', '2025-00-01T00:00:00Z'],
    ['month 13', '2025-13-01T00:00:00Z'],
    ['hour 24', '2025-01-01T24:00:00Z'],
    ['hour 24 and a second', '2025-01-01T24:00:01Z'],
    ['minute 60', '2025-01-01T00:60:00Z'],
    ['a leap second', '2025-06-30T23:59:60Z'],
    ['an offset', '2025-01-01T00:00:00+00:00'],
    ['an offset whose plus became a space', '2025-01-01T00:00:00 00:00'],
    ['no zone', '2025-01-01T00:00:00'],
    ['a lower-case t', '2025-01-01t00:00:00Z'],
    ['a lower-case z', '2025-01-01T00:00:00z'],
    ['a space for the T', '2025-01-01 00:00:00Z'],
    ['a comma for the point', '2025-01-01T00:00:00,5Z'],
    ['a fraction of four digits', '2025-01-01T00:00:00.1234Z'],
    ['a point without a fraction', '2025-01-01T00:00:00.Z'],
    ['full-width digits', '\uff12\uff10\uff12\uff15-01-01T00:00:00Z'],
    ['Arabic digits', '\u0662\u0660\u0662\u0665-01-01T00:00:00Z'],
    ['a full-width colon', '2025-01-01T00\uff1a00:00Z'],
    ['a non-ASCII hyphen', '2025\u201001\u201001T00:00:00Z'],
    ['a zero-width space before', '\u200b2025-01-01T00:00:00Z'],
    ['a zero-width space after', '2025-01-01T00:00:00Z\u200b'],
    ['a byte order mark before', '\ufeff2025-01-01T00:00:00Z'],
    ['a byte order mark after', '2025-01-01T00:00:00Z\ufeff'],
    ['a no-break space before', '\u00a02025-01-01T00:00:00Z'],
    ['a no-break space after', '2025-01-01T00:00:00Z\u00a0'],
    ['a space before', ' 2025-01-01T00:00:00Z'],
    ['a space after', '2025-01-01T00:00:00Z '],
    ['a tab after', '2025-01-01T00:00:00Z\t'],
    ['a line break after', '2025-01-01T00:00:00Z\n'],
    ['a line break before', '\r\n2025-01-01T00:00:00Z'],
    ['a NUL after', '2025-01-01T00:00:00Z\0'],
    ['a day alone', '2025-01-01'],
    ['no seconds', '2025-01-01T00:00Z'],
    ['basic format', '20250101T000000Z'],
    ['an expanded year', '+002025-01-01T00:00:00Z'],
    ['a year of five digits', '12025-01-01T00:00:00Z'],
    ['one-digit fields', '2025-1-1T0:0:0Z'],
    ['a week date', '2025-W01-1T00:00:00Z'],
    ['epoch milliseconds', '1735689600000'],
    ['a word', 'now'],
    ['a space alone', ' '],
  ])('with %s is invalid_at', (_, at) => {
    expect(codeOf(() => askAt(at))).toBe('invalid_at')
  })

  test.each([
    ['twice the same', 'sort=year&at=2025-01-01T00:00:00Z&at=2025-01-01T00:00:00Z'],
    ['twice, one empty', 'sort=year&at=2025-01-01T00:00:00Z&at='],
    ['twice, different', 'sort=year&at=2025-01-01T00:00:00Z&at=2025-01-02T00:00:00Z'],
    ['without a value', 'sort=year&at'],
    ['with an encoded offset', 'sort=year&at=2025-01-01T00:00:00%2B00:00'],
    ['with a raw offset', 'sort=year&at=2025-01-01T00:00:00+00:00'],
  ])('given %s is invalid_at', (_, query) => {
    expect(codeOf(() => ask(query))).toBe('invalid_at')
  })

  test('takes exactly the days of the calendar and the seconds of the clock', () => {
    const field = (max: number) => fc.integer({ min: 0, max }).map((value) => String(value).padStart(2, '0'))
    const written = fc.tuple(field(14), field(33), field(25), field(61), field(61))
    fc.assert(
      fc.property(written, ([month, day, hour, minute, second]) => {
        const text = `2025-${month}-${day}T${hour}:${minute}:${second}Z`
        const at = new Date(text)
        const real = !Number.isNaN(at.getTime()) && at.toISOString() === text.replace('Z', '.000Z')
        if (real) expect(askAt(text)).toBe(at.getTime())
        else expect(codeOf(() => askAt(text))).toBe('invalid_at')
      }),
      { numRuns: 500 },
    )
  })

  test('is allowed exactly five minutes ahead', () => {
    expect(askAt(new Date(NOW + FIVE_MINUTES).toISOString())).toBe(NOW + FIVE_MINUTES)
  })

  test('refuses an `at` more than five minutes ahead', () => {
    for (const ahead of [1, 1000, 86_400_000]) {
      const at = new Date(NOW + FIVE_MINUTES + ahead).toISOString()
      expect(codeOf(() => askAt(at))).toBe('invalid_at')
    }
    expect(codeOf(() => askAt('9999-12-31T23:59:59.999Z'))).toBe('invalid_at')
  })
})

test('ignores parameters it does not know', () => {
  expect(ask('sort=year&limit=5&At=x&asof=y')).toBe(NOW)
})

test('the refusal codes are the list of the contract', () => {
  expect([...HISTORY_REFUSALS].sort()).toEqual([
    'invalid_at',
    'invalid_sort',
    'method_not_allowed',
    'year_history_archive_corrupt',
    'year_history_lookup_failed',
    'year_history_not_found',
    'year_history_storage_unavailable',
  ])
})
