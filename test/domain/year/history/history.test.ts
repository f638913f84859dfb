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
    ['2026-03-15T11:00:00Z', Date.UTC(2026, 2, 15, 11)],
    ['2026-03-15T11:00:00.5Z', Date.UTC(2026, 2, 15, 11, 0, 0, 500)],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000],
    ['2026-03-15T12:05:00.123Z', NOW + 300_000],
  ])('the parameter `at` may be %s', (at, instant) => {
    expect(askAt(at)).toBe(instant)
  })

  const noon = '2025-01-01T00:00:00Z'

  // prettier-ignore
  test.each([
    '2025-01-01T00:00:00+00:00',   
     '2025-01-01T00:00:00.1234Z',  
    ...['\u200b', '\ufeff', '\u00a0', ' ', '\r\n'].map((before) => `${before}${noon}`),
    ...['\u200b', '\ufeff', '\u00a0', '\t', '\n', '\0'].map((after) => `${noon}${after}`),
    '2026-03-15T12:05:00.124Z', '2026-03-15T12:05:01Z', 
  ])('the value %j is invalid_at', (at) => {
    expect(() => askAt(at)).toThrow(refusal('invalid_at'))
  })

  test.each([`sort=year&at=${noon}&at=`])('the value %j is invalid_at', (query) => {
    expect(() => ask(query)).toThrow(refusal('invalid_at'))
  })
})
