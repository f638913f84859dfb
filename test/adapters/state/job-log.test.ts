import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { database } from '../../../src/adapters/sqlite/database.ts'
import { migrationsOf } from '../../../src/adapters/sqlite/migrate.ts'
import { libsqlJobLog } from '../../../src/adapters/state/job-log.ts'
import type { JobLog } from '../../../src/domain/ports.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { DAMAGED } from '../../support/refusals.ts'

const RUN = { job: 'collect', startedAt: 1_000, endedAt: 2_000, exitCode: 0 } as const

const fileUrl = async (): Promise<string> => pathToFileURL(join(await temporaryFolder(), 'state.db')).href

function openLog(url: string): JobLog {
  const state = database({
    location: { url, authToken: null },
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    nativeBusyMs: 10,
    retryMs: 5_000,
  })
  onTestFinished(() => state.close())
  return libsqlJobLog(state)
}

describe('the log of jobs', () => {
  test('tells the last run of each and when one last succeeded, to another process too', async () => {
    const url = await fileUrl()
    const log = openLog(url)
    expect(await log.states()).toEqual([])
    await log.record({ ...RUN, job: 'snapshot', exitCode: 74 })
    await log.record(RUN)
    await log.record({ ...RUN, startedAt: 3_000, endedAt: 4_000, exitCode: 69 })
    expect(await openLog(url).states()).toEqual([
      { job: 'collect', startedAt: 3_000, endedAt: 4_000, exitCode: 69, lastSuccessAt: 2_000 },
      { ...RUN, job: 'snapshot', exitCode: 74, lastSuccessAt: null },
    ])
  })

  test('is not changed by a run that ended before the one it knows', async () => {
    const log = openLog(await fileUrl())
    await log.record(RUN)
    await log.record({ ...RUN, endedAt: 1_999, exitCode: 1 })
    expect(await log.states()).toEqual([{ ...RUN, lastSuccessAt: 2_000 }])
  })

  test('leaves out jobs that it does not know, and refuses damage', async () => {
    const url = await fileUrl()
    const log = openLog(url)
    await log.record(RUN)
    const raw = createClient({ url })
    onTestFinished(() => raw.close())
    await raw.execute("INSERT INTO jobs VALUES ('of-a-later-release', 1, 2, 0, 2)")
    expect(await log.states()).toHaveLength(1)
    await raw.execute("UPDATE jobs SET job = CAST(x'ff' AS TEXT) WHERE job = 'collect'")
    await expect(log.states()).rejects.toMatchObject(DAMAGED)
  })
})
