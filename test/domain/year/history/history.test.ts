import { describe, expect, test } from 'vitest'
import { parseHistoryQuery } from '../../../../src/domain/year/history/history.ts'

const NOW = Date.UTC(2026, 2, 15, 12, 0, 0, 123)

const ask = (query: string): number => parseHistoryQuery(new URLSearchParams(query), NOW).at

/** Asks for this `at`, encoded so that it arrives exactly as written. */
const askAt = (at: string): number => parseHistoryQuery(new URLSearchParams({ sort: 'year', at }), NOW).at

const refusal = (code: string): unknown => expect.objectContaining({ code })

describe('`at`', () => {
  test('the parameter `at` defaults to now, whatever other parameters say', () => {
    expect(ask('sort=year&limit=5&At=x&asof=y')).toBe(NOW)
  })

  test.each([
    ['2026-03-15T11:00:00.5Z', Date.UTC(2026, 2, 15, 11, 0, 0, 500)],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000],
    ['2026-03-15T12:05:00.123Z', NOW + 300_000],
  ])('the parameter `at` may be %s', (at, instant) => {
    expect(askAt(at)).toBe(instant)
  })

  const noon = '2025-01-01T00:00:00Z'

  // prettier-ignore
  test.each([
    '2025-01-01T00:00:00+00:00', '2025-01-01T00:00:00.1234Z', '2026-03-15T12:05:00.124Z',
    ...['\u200b', '\ufeff', ' ', '\r\n'].flatMap((space) => [`${space}${noon}`, `${noon}${space}`]), `${noon}\0`,
  ])('the value %j is invalid_at', (at) => {
    expect(() => askAt(at)).toThrow(refusal('invalid_at'))
  })

  test('a repeated `at` is invalid_at', () => {
    expect(() => ask(`sort=year&at=${noon}&at=`)).toThrow(refusal('invalid_at'))
  })
})
