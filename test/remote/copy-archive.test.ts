import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import type { CopyReport } from '../../src/jobs/archive/copy-archive.ts'
import type { VerifyReport } from '../../src/jobs/archive/audit.ts'
import { dash, temporaryFolder } from '../support/dash.ts'
import { filesOfFolder } from '../support/temporary-folder.ts'
import { startS3Server } from '../support/s3-server.ts'
import type { S3Server } from '../support/s3-server.ts'
import { startSqld } from '../support/sqld.ts'
import type { Sqld } from '../support/sqld.ts'
import { AS_OF, publishedWorkspace, reopenWorkspace } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

let sqld: Sqld
let s3: S3Server

beforeAll(async () => {
  sqld = await startSqld()
  s3 = await startS3Server()
})
afterAll(async () => {
  await s3.close()
  await sqld.stop()
})

/** Three publications, a gap, and the failed attempts of a day. */
async function filledWorkspace(): Promise<Workspace> {
  const workspace = await publishedWorkspace([-3, -1, 0].map((back) => addDays(AS_OF, back)))
  const grant = await workspace.ledger.takeLease({ name: 'x', process: null }, 1, 1_000, () => false)
  if (!grant.granted) throw new Error('the lease is held')
  for (const attempt of [1, 2])
    await workspace.ledger.countAttempt(addDays(AS_OF, 1), attempt, 2, grant.token)
  await workspace.ledger.releaseLease(grant.token)
  return workspace
}

/** Environment of an archive that is held by both servers. */
function remoteEnvironment(): Record<string, string> {
  const { bucket, endpoint, region, accessKeyId, secretAccessKey } = s3.location()
  return {
    DASH_DATABASE_URL: sqld.url,
    DASH_STORE_URL: `s3://${bucket}/copied?endpoint=${encodeURIComponent(endpoint)}&region=${region}`,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  }
}

async function copied(args: readonly string[], env: Record<string, string>): Promise<CopyReport> {
  const { code, stdout, stderr } = await dash(['copy-archive', '--json', ...args], { env })
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as CopyReport
}

async function audited(
  args: readonly string[],
  env: Record<string, string>,
): Promise<VerifyReport & { recorded: boolean }> {
  const { code, stdout, stderr } = await dash(['verify-archive', '--payloads', '--json', ...args], { env })
  // A folder without a state database keeps no record of an audit, which is reported.
  expect([code, stderr.replace(/^this audit was not recorded: .*\n$/, '')]).toEqual([0, ''])
  return JSON.parse(stdout) as VerifyReport & { recorded: boolean }
}

test('an archive copied from files to servers and back keeps every byte, and passes the audit everywhere', async () => {
  const source = await filledWorkspace()
  const env = remoteEnvironment()
  const { DASH_DATABASE_URL: database = '', DASH_STORE_URL: store = '', ...secrets } = env
  const out = await copied(['--data-dir', source.folder, '--to', database, store], secrets)
  expect(out).toMatchObject({ objects: { copied: 3 }, entries: { copied: 4 }, head: { seq: 4 } })
  const there = await audited([], env)
  const here = await audited(['--data-dir', source.folder], {})
  // The servers keep records of audits, the folder has no state database.
  expect([there.recorded, here.recorded]).toEqual([true, false])
  expect({ ...there, durationMs: 0, recorded: false }).toEqual({ ...here, durationMs: 0 })
  expect(there).toMatchObject({ ok: true, complete: true, findings: [], gaps: 1 })

  const again = await copied(['--data-dir', source.folder, '--to', database, store], secrets)
  expect(again).toMatchObject({ objects: { copied: 0, unchanged: 3 }, entries: { copied: 0, unchanged: 4 } })

  const folder = join(temporaryFolder(), 'back')
  const back = await copied(['--to', folder], env)
  expect(back.head).toEqual(out.head)
  expect(filesOfFolder(join(folder, 'objects'))).toEqual(filesOfFolder(source.objectsPath))
  expect((await audited(['--data-dir', folder], {})).findings).toEqual([])
  const returned = reopenWorkspace(folder)
  expect(await returned.ledger.read()).toEqual(await source.ledger.read())
  expect(await returned.ledger.everyAttempt()).toEqual(await source.ledger.everyAttempt())
})
