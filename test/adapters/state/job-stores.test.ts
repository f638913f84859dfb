import { describe, expect, test } from 'vitest'
import { libsqlJobLog, libsqlAudits } from '../../../src/adapters/state/job-stores.ts'
import type { State } from '../../../src/domain/ports.ts'
import { DAMAGED } from '../../support/refusals.ts'
import { evaluationsContract } from './evaluations-contract.ts'
import { connectEvaluations, evaluationsInFile, openState, stateUrl } from './open-chat.ts'
import { rawClient } from '../sqlite/lock-holder.ts'
import type { AuditRecord } from '../../../src/domain/year/finding.ts'

const RUN = { job: 'collect', startedAt: 1_000, endedAt: 2_000, exitCode: 0 } as const

const openLog = (url: string): State['jobs'] => libsqlJobLog(openState(url))

describe('the log of jobs', () => {
  test('the log returns the run of each job that was recorded last and its last success, also to another process', async () => {
    const url = await stateUrl()
    const log = openLog(url)
    expect(await log.states()).toEqual([])
    await log.record({ ...RUN, job: 'snapshot', exitCode: 74 })
    // By a clock that was ahead.
    await log.record({ ...RUN, startedAt: 94_608_000_000, endedAt: 94_608_001_000 })
    await log.record(RUN)
    expect(await log.states()).toMatchObject([{ ...RUN, lastSuccessAt: 2_000 }, { job: 'snapshot' }])
    await log.record({ ...RUN, startedAt: 3_000, endedAt: 4_000, exitCode: 69 })
    expect(await openLog(url).states()).toEqual([
      { job: 'collect', startedAt: 3_000, endedAt: 4_000, exitCode: 69, lastSuccessAt: 2_000 },
      { ...RUN, job: 'snapshot', exitCode: 74, lastSuccessAt: null },
    ])
  })

  test('the log omits unknown jobs, and refuses damage', async () => {
    const url = await stateUrl()
    const log = openLog(url)
    await log.record(RUN)
    const raw = rawClient(url)
    await raw.execute("INSERT INTO jobs VALUES ('of-a-later-release', 1, 2, 0, 2)")
    expect(await log.states()).toHaveLength(1)
    await raw.execute("UPDATE jobs SET job = CAST(x'ff' AS TEXT) WHERE job = 'collect'")
    await expect(log.states()).rejects.toMatchObject(DAMAGED)
  })
})

const AUDIT: AuditRecord = {
  endedAt: 1_795_219_200_000,
  ok: false,
  complete: true,
  whole: false,
  publications: 30,
  objects: 12,
  bytes: 3_456_789,
  gaps: 2,
  damage: 1,
  head: { seq: 32, leaf: 'ab'.repeat(32) },
}

const openAudits = (url: string): State['audits'] => libsqlAudits(openState(url))

describe('the log of audits', () => {
  test('the log keeps the newest hundred records, and returns the newest unchanged, also to another process', async () => {
    const url = await stateUrl()
    const audits = openAudits(url)
    expect(await audits.newest()).toBeNull()
    for (let objects = 1; objects <= 103; objects += 1) await audits.record({ ...AUDIT, objects })
    const raw = rawClient(url)
    const { rows } = await raw.execute('SELECT count(*) AS n, min(objects) AS oldest FROM audits')
    expect(rows[0]).toMatchObject({ n: 100, oldest: 4 })
    expect(await openAudits(url).newest()).toEqual({ ...AUDIT, objects: 103 })
  })

  test('the log refuses a damaged record', async () => {
    const url = await stateUrl()
    const audits = openAudits(url)
    await audits.record(AUDIT)
    const raw = rawClient(url)
    await raw.execute("UPDATE audits SET head_leaf = CAST(x'ff' AS TEXT)")
    await expect(audits.newest()).rejects.toMatchObject(DAMAGED)
  })
})

evaluationsContract('a file', evaluationsInFile)

test.each(["'unheard', NULL", "'answered', '{'", "'answered', CAST(x'ff' AS TEXT)"])(
  'an attempt of a file with the damaged class and tasks %s is refused, not misread',
  async (values) => {
    const url = await stateUrl()
    const { evaluations } = connectEvaluations(url)
    await evaluations.attemptsSince(0)
    const raw = rawClient(url)
    await raw.execute(
      `INSERT INTO evaluation_attempts (model, kind, day, sent_at, settled_at, class, tasks)
      VALUES ('a/b', 'text', '2026-03-01', 5, 6, ${values})`,
    )
    await expect(evaluations.attemptsSince(0)).rejects.toMatchObject(DAMAGED)
  },
)
