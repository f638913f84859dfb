import { describe, expect, test } from 'vitest'
import { finding } from '../../../src/domain/year/finding.ts'
import type { Finding } from '../../../src/domain/year/finding.ts'
import { addFindings, sendAll } from '../../../src/jobs/archive/host-requests.ts'
import type { HostRun } from '../../../src/jobs/archive/host-requests.ts'

const startRun = (): HostRun => ({
  findings: [],
  objects: 0,
  bytes: 0,
  jobs: 1,
  signal: new AbortController().signal,
  onProgress: () => undefined,
})

const findingsOf = (count: number): Finding[] =>
  Array.from({ length: count }, (_, index) =>
    finding('row_tampered', `entries/${index + 1}`, 'a row', 'another row'),
  )

const TOO_MANY = { code: 'source_unavailable', detail: expect.stringContaining('more than 1000 findings') }

describe('the findings of a host', () => {
  test('a thousand findings are kept, and one more ends the audit', () => {
    const run = startRun()
    for (const half of [findingsOf(500), findingsOf(500)]) addFindings(run, half)
    expect(run.findings).toHaveLength(1_000)
    expect(() => addFindings(run, findingsOf(1))).toThrow(expect.objectContaining(TOO_MANY))
    expect(run.findings).toHaveLength(1_000)
  })

  test('requests may have a thousand findings, and one more ends the audit', async () => {
    const roundOf = (count: number) => () => ({ checks: [], findings: findingsOf(count) })
    const run = startRun()
    await sendAll(run, [roundOf(1_000)])
    expect(run.findings).toHaveLength(1_000)
    const next = startRun()
    await expect(sendAll(next, [roundOf(1_000), roundOf(1)])).rejects.toMatchObject(TOO_MANY)
    expect(next.findings).toHaveLength(1_000)
  })
})
