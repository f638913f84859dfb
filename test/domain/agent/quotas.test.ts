import { describe, expect, test } from 'vitest'
import { keepCallersFrom } from '../../../src/domain/agent/budget.ts'

const MIDNIGHT = Date.UTC(2026, 2, 2)

describe('the callers of a day', () => {
  test.each([
    ['while a token of theirs may last', MIDNIGHT + 1_799_999, 1_800, '2026-03-01'],
    ['not a moment longer', MIDNIGHT + 1_800_000, 1_800, '2026-03-02'],
    ['for the minute of a burst at least', MIDNIGHT + 59_999, 1, '2026-03-01'],
    ['for a day at most', MIDNIGHT + 86_399_999, 86_400, '2026-03-01'],
  ])('are known %s', (_, now, sessionSeconds, day) => {
    expect(keepCallersFrom(now, sessionSeconds)).toBe(day)
  })
})
