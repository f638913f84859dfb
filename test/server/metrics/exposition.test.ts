import { describe, expect, test } from 'vitest'
import { jobStateAfter } from '../../../src/domain/job-run.ts'
import { exposition, jobMetrics, lastSuccessIn } from '../../../src/server/metrics/catalogue.ts'

test('an exposition has exactly the samples, each with its help and type', async () => {
  const text = await exposition([
    ['dash_gaps', 0.25],
    ['dash_store_up', 1, { store: 'ledger' }],
    ['dash_store_up', 0, { store: 'feed' }],
    ['process_cpu_seconds_total', 3],
  ])
  expect(text.split('\n').filter((line) => line !== '')).toEqual([
    '# HELP dash_gaps Days that are permanent gaps.',
    '# TYPE dash_gaps gauge',
    'dash_gaps 0.25',
    '# HELP dash_store_up 1 if a store is ready.',
    '# TYPE dash_store_up gauge',
    'dash_store_up{store="ledger"} 1',
    'dash_store_up{store="feed"} 0',
    '# HELP process_cpu_seconds_total Processor time of the process, user and system.',
    '# TYPE process_cpu_seconds_total counter',
    'process_cpu_seconds_total 3',
  ])
  expect(await exposition([])).toBe('')
})

describe('metrics of a job', () => {
  const run = {
    job: 'collect',
    startedAt: 1_795_219_200_000,
    endedAt: 1_795_219_212_345,
    exitCode: 69,
  } as const

  test("the time of a job's last success survives failing runs", async () => {
    const good = await exposition(jobMetrics([jobStateAfter({ ...run, exitCode: 0 }, null)]))
    expect(lastSuccessIn(good)).toBe(run.endedAt)
    const bad = await exposition(
      jobMetrics([jobStateAfter({ ...run, endedAt: run.endedAt + 1_000 }, lastSuccessIn(good))]),
    )
    expect(bad).toContain('dash_job_last_success_timestamp_seconds{command="collect"} 1795219212.345\n')
    expect(bad).toContain('dash_job_last_exit_code{command="collect"} 69\n')
    expect(bad).toContain('dash_job_last_duration_seconds{command="collect"} 13.345\n')
  })

  test('a job that never succeeded has the oldest possible time of success', async () => {
    const text = await exposition(jobMetrics([jobStateAfter(run, null)]))
    expect(text).toContain('dash_job_last_success_timestamp_seconds{command="collect"} 0\n')
    expect(lastSuccessIn(text)).toBeNull()
  })

  test.each(['', 'dash_job_last_success_timestamp_seconds{command="collect"} soon\n', '\0\xff'])(
    'a file without job metrics has no last success',
    (text) => {
      expect(lastSuccessIn(text)).toBeNull()
    },
  )
})
