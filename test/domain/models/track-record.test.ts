import { expect, test } from 'vitest'
import { summaryOfRecord, trackRecords } from '../../../src/domain/models/track-record.ts'

const run = (checkedAt: string | null, healthStatus: string, latencyMs: number | null = null) => ({
  models: [{ id: 'a', healthStatus, latencyMs, checkedAt }],
})

test('a track record has the last test of each of the last days, on the day of the test', () => {
  const recordOf = trackRecords(
    [
      run('2026-08-01T03:00:00.000Z', 'passed', 100),
      run('2026-08-20T03:00:00.000Z', 'timeout', 9_000),
      run('2026-08-21T03:00:00.000Z', 'passed', 300),
      run('2026-08-21T09:00:00.000Z', 'imperfect', 200),
      // A run that repeats an earlier test adds none.
      run('2026-08-21T09:00:00.000Z', 'imperfect', 200),
      run('2026-08-22T03:00:00.000Z', 'not_probed'),
      run(null, 'failed'),
    ],
    '2026-08-22',
  )
  const record = recordOf('a')
  expect(record).toHaveLength(14)
  expect(record.slice(0, 11)).toEqual(Array(11).fill(null))
  expect(record.slice(11)).toEqual([
    { day: '2026-08-20', answered: false, latencyMs: null },
    { day: '2026-08-21', answered: true, latencyMs: 200 },
    null,
  ])
  expect(summaryOfRecord(record)).toEqual({
    tested: 2,
    answered: 1,
    fastestMs: 200,
    slowestMs: 200,
    failedDays: ['2026-08-20'],
  })
  expect(summaryOfRecord(recordOf('b'))).toMatchObject({ tested: 0, fastestMs: null, slowestMs: null })
})
