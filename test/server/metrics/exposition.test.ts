import { describe, expect, test } from 'vitest'
import { afterRun } from '../../../src/domain/job-run.ts'
import { exposition, jobMetrics, lastSuccessIn } from '../../../src/server/metrics/catalogue.ts'
describe('an exposition', () => {
  test('has each family under its help and type, and none without samples', () => {
    const text = exposition([
      { name: 'a_total', type: 'counter', help: 'How often.', samples: [{ labels: { of: 'x' }, value: 3 }] },
      { name: 'b', type: 'gauge', help: 'Nothing.', samples: [] },
      { name: 'c', type: 'gauge', help: 'How much.', samples: [{ value: 0.25 }] },
    ])
    expect(text).toBe(
      '# HELP a_total How often.\n# TYPE a_total counter\na_total{of="x"} 3\n' +
        '# HELP c How much.\n# TYPE c gauge\nc 0.25\n',
    )
  })

  test('escapes what would end a line or a label', () => {
    const labels = { of: 'a "b" \\ c\nd' }
    const text = exposition([{ name: 'a', type: 'gauge', help: 'x\ny \\', samples: [{ labels, value: 1 }] }])
    expect(text).toBe('# HELP a x\\ny \\\\\n# TYPE a gauge\na{of="a \\"b\\" \\\\ c\\nd"} 1\n')
  })

  test.each([
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
    [NaN, 'NaN'],
    [1e21, '1e+21'],
  ])('writes %d as %s', (value, written) => {
    expect(exposition([{ name: 'a', type: 'gauge', help: 'x', samples: [{ value }] }])).toContain(
      `\na ${written}\n`,
    )
  })
})

describe('metrics of a job', () => {
  const run = {
    job: 'collect',
    startedAt: 1_795_219_200_000,
    endedAt: 1_795_219_212_345,
    exitCode: 69,
  } as const

  test('keep when it last succeeded through runs that fail', () => {
    const good = exposition(jobMetrics([afterRun({ ...run, exitCode: 0 }, null)]))
    expect(lastSuccessIn(good)).toBe(run.endedAt)
    const bad = exposition(
      jobMetrics([afterRun({ ...run, endedAt: run.endedAt + 1_000 }, lastSuccessIn(good))]),
    )
    expect(bad).toContain('dash_job_last_success_timestamp_seconds{command="collect"} 1795219212.345\n')
    expect(bad).toContain('dash_job_last_exit_code{command="collect"} 69\n')
    expect(bad).toContain('dash_job_last_duration_seconds{command="collect"} 13.345\n')
  })

  test('are older than any limit while it never succeeded', () => {
    const text = exposition(jobMetrics([afterRun(run, null)]))
    expect(text).toContain('dash_job_last_success_timestamp_seconds{command="collect"} 0\n')
    expect(lastSuccessIn(text)).toBeNull()
  })

  test.each(['', 'dash_job_last_success_timestamp_seconds{command="collect"} soon\n', '\0\xff'])(
    'of a file that does not tell begin anew',
    (text) => {
      expect(lastSuccessIn(text)).toBeNull()
    },
  )
})
