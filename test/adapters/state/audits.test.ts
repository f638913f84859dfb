import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { database } from '../../../src/adapters/sqlite/database.ts'
import { migrationsOf } from '../../../src/adapters/sqlite/migrate.ts'
import { libsqlAudits } from '../../../src/adapters/state/job-log.ts'
import type { AuditLog } from '../../../src/domain/ports.ts'
import type { AuditRecord } from '../../../src/domain/year/finding.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { DAMAGED } from '../../support/refusals.ts'

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

function openAudits(url: string): AuditLog {
  const state = database({
    location: { url, authToken: null },
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    nativeBusyMs: 10,
    retryMs: 5_000,
  })
  onTestFinished(() => state.close())
  return libsqlAudits(state)
}

const fileUrl = async (): Promise<string> => pathToFileURL(join(await temporaryFolder(), 'state.db')).href

describe('the log of audits', () => {
  test('gives the newest record as it was left, to another process too', async () => {
    const url = await fileUrl()
    const audits = openAudits(url)
    expect(await audits.newest()).toBeNull()
    await audits.record({ ...AUDIT, ok: true, damage: 0 })
    await audits.record(AUDIT)
    expect(await openAudits(url).newest()).toEqual(AUDIT)
  })

  test('keeps the newest hundred', async () => {
    const url = await fileUrl()
    const audits = openAudits(url)
    for (let objects = 1; objects <= 103; objects += 1) await audits.record({ ...AUDIT, objects })
    const raw = createClient({ url })
    onTestFinished(() => raw.close())
    const { rows } = await raw.execute('SELECT count(*) AS n, min(objects) AS oldest FROM audits')
    expect(rows[0]).toMatchObject({ n: 100, oldest: 4 })
    expect(await audits.newest()).toMatchObject({ objects: 103 })
  })

  test('refuses a damaged record', async () => {
    const url = await fileUrl()
    const audits = openAudits(url)
    await audits.record(AUDIT)
    const raw = createClient({ url })
    onTestFinished(() => raw.close())
    await raw.execute("UPDATE audits SET head_leaf = CAST(x'ff' AS TEXT)")
    await expect(audits.newest()).rejects.toMatchObject(DAMAGED)
  })
})
