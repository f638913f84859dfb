import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { retryAt } from '../../src/adapters/http.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0, 500)

const usedUp = (reset: string): Record<string, string> => ({
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': reset,
})

describe('the retry time of a response', () => {
  test.each([
    ['seconds', { 'retry-after': '120' }, NOW + 120_000],
    ['no time at all', { 'retry-after': '0' }, NOW],
    ['a date', { 'retry-after': 'Sat, 21 Nov 2026 12:05:00 GMT' }, Date.UTC(2026, 10, 21, 12, 5)],
    ['a date that is over', { 'retry-after': 'Sat, 21 Nov 2026 11:00:00 GMT' }, NOW],
    ['more than a year', { 'retry-after': '999999999' }, NOW + 366 * 86_400_000],
    ['the Unix time of a reset', usedUp(String(NOW / 1000 + 29.5)), NOW + 30_000],
    ['the seconds to a reset', usedUp('311'), NOW + 311_000],
    ['the fraction of a second to a reset', usedUp('0.4'), NOW + 1_000],
    ['a reset that is over', usedUp('1700000000'), NOW],
    ['both', { 'retry-after': '5', ...usedUp('311') }, NOW + 5_000],
    [
      'a reset of a limit that is not used up',
      { 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '9' },
      null,
    ],
    ['nothing', {}, null],
    ['a negative number', { 'retry-after': '-5' }, null],
    ['a fraction of a second more', { 'retry-after': '1.5' }, NOW + 1_500],
    ['no date', { 'retry-after': 'soon' }, null],
    ['a reset without a number', usedUp('soon'), null],
  ])('the retry time is read %s', (_how, headers, expected) => {
    expect(retryAt(headers, NOW)).toBe(expected)
  })

  test('the retry time is never before now and never more than a year ahead', () => {
    const text = fc.oneof(
      fc.string(),
      fc.double().map(String),
      fc.integer().map(String),
      fc.date().map(String),
    )
    fc.assert(
      fc.property(text, text, text, (retryAfter, remaining, reset) => {
        const at = retryAt(
          { 'retry-after': retryAfter, 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset },
          NOW,
        )
        if (at === null) return
        expect(Number.isFinite(at)).toBe(true)
        expect(at).toBeGreaterThanOrEqual(NOW)
        expect(at).toBeLessThanOrEqual(NOW + 366 * 86_400_000)
      }),
      { numRuns: 2_000 },
    )
  })
})
