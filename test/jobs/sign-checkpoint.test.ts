import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays, DAY_MS } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import { logFileName, newestPolicyNumber } from '../../src/domain/year/log/log-history.ts'
import { formatVerifierKey, signerKey } from '../../src/domain/year/log/signed-note.ts'
import type { PublishPorts, PublishResult } from '../../src/jobs/publish-year.ts'
import { signLedger } from '../../src/jobs/sign-checkpoint.ts'
import type { SignedLog } from '../../src/domain/year/ports.ts'
import { DAMAGED } from '../support/refusals.ts'
import { findingsIn, LOG_NAME, noteSizes, signedLogIn } from '../support/signed-log.ts'
import {
  AS_OF,
  openWorkspace,
  publish,
  publishPortsOf,
  reopenWorkspace,
  RUN_AT,
  sampleSignals,
  tickingClock,
} from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'

const dayAfter = (days: number): Day => addDays(AS_OF, days)

/** Opens a workspace with the signals of some days, and a log key. */
async function signedWorkspace(
  days = 4,
): Promise<{ workspace: Workspace; log: ReturnType<typeof signedLogIn> }> {
  const workspace = await openWorkspace()
  for (let index = 0; index < days; index += 1)
    await workspace.feed.importSignals(sampleSignals(dayAfter(index)))
  return { workspace, log: signedLogIn(workspace.folder) }
}

/** Publishes the day that is `index` days after the first. */
function publishDay(
  workspace: Workspace,
  log: SignedLog | null,
  index: number,
  changes: Partial<PublishPorts> = {},
): Promise<PublishResult> {
  const clock = tickingClock(RUN_AT + index * DAY_MS)
  return publish(publishPortsOf(workspace, { log, clock, ...changes }))
}

function checkpointPorts(workspace: Workspace, log: SignedLog) {
  return { ...publishPortsOf(workspace), log, clock: tickingClock(RUN_AT + DAY_MS) }
}

describe('a publisher with a key', () => {
  test('a run signs one checkpoint for its publication and one for all missed days, and stores the policy when it changes', async () => {
    const { workspace, log } = await signedWorkspace()
    for (const index of [0, 1]) expect(await publishDay(workspace, log, index)).toMatchObject({ cause: null })
    expect(newestPolicyNumber(await workspace.objects.logFiles.list())).toBe(1)
    const moved = { ...log, policy: `# moved\n${log.policy}` }
    expect(await publishDay(workspace, moved, 3)).toMatchObject({ cause: null })
    expect(await noteSizes(workspace.objects)).toEqual([1, 2, 3, 4])
    expect(await log.signer.lastSigned()).toMatchObject({ origin: LOG_NAME, size: 4 })
    expect(await findingsIn(workspace.folder)).toEqual([])
    const policyOf = async (number: number): Promise<string> =>
      Buffer.from((await workspace.objects.logFiles.get({ kind: 'policy', number })) ?? []).toString()
    expect([await policyOf(1), await policyOf(2)]).toEqual([log.policy, moved.policy])
  })

  test('a run signs the gap that is recorded after the last attempt', async () => {
    const { workspace, log } = await signedWorkspace()
    const failing = { objects: { ...workspace.objects, put: () => Promise.reject(new Error('no room')) } }
    for (const _attempt of [1, 2, 3]) await publishDay(workspace, log, 0, failing)
    expect((await workspace.ledger.read()).rows.map(({ kind }) => kind)).toEqual(['gap'])
    expect(await noteSizes(workspace.objects)).toEqual([1])
  })
})

test('every later run refuses a restored older backup, and leaves it unchanged', async () => {
  const { workspace, log } = await signedWorkspace()
  for (const index of [0, 1]) await publishDay(workspace, log, index)
  const backup = join(workspace.folder, 'backup')
  for (const part of ['ledger.db', 'objects'])
    cpSync(join(workspace.folder, part), join(backup, part), { recursive: true })
  await publishDay(workspace, log, 2)
  const record = readFileSync(`${log.keyPath}.signed`, 'utf8')
  const restored = reopenWorkspace(backup)
  const files = await restored.objects.logFiles.list()
  const refusal = {
    ...DAMAGED,
    detail: expect.stringContaining('the checkpoint has 3 entries, the ledger only 2') as string,
  }
  for (const index of [2, 3]) await expect(publishDay(restored, log, index)).rejects.toMatchObject(refusal)
  await expect(signLedger(checkpointPorts(restored, log))).rejects.toMatchObject(refusal)
  await expect(publish(publishPortsOf(restored, { log }), { dryRun: true })).rejects.toMatchObject(refusal)
  expect((await restored.ledger.read()).rows).toHaveLength(2)
  expect(await restored.ledger.attempts(dayAfter(2))).toEqual([])
  expect(await restored.objects.logFiles.list()).toEqual(files)
  expect(readFileSync(`${log.keyPath}.signed`, 'utf8')).toBe(record)
})

test('a damaged stored note ends a run before an attempt is counted', async () => {
  const { workspace, log } = await signedWorkspace()
  await publishDay(workspace, log, 0)
  const { logFiles } = workspace.objects
  const get: typeof logFiles.get = async (file) => {
    const text = new TextDecoder().decode((await logFiles.get(file)) ?? undefined)
    return new TextEncoder().encode(text.replace('\n1\n', '\n1\nmore\n'))
  }
  const objects = { ...workspace.objects, logFiles: { ...logFiles, get } }
  await expect(publishDay(workspace, log, 1, { objects })).rejects.toMatchObject({
    ...DAMAGED,
    detail: 'the note tlog/year/1 is not a signed checkpoint',
  })
  expect(await workspace.ledger.attempts(dayAfter(1))).toEqual([])
})

describe('the checkpoint job', () => {
  test('the job signs an unsigned ledger with its policy once, and nothing if the ledger is empty', async () => {
    const { workspace, log } = await signedWorkspace()
    const ports = checkpointPorts(workspace, log)
    const reason = 'the ledger has no entries yet'
    expect(await signLedger(ports)).toMatchObject({ signed: false, reason, origin: LOG_NAME, size: 0 })
    expect(await workspace.objects.logFiles.list()).toEqual([])
    await publishDay(workspace, null, 0)
    const report = await signLedger(ports)
    const root = Buffer.from((await log.signer.lastSigned()).root).toString('hex')
    expect(report).toEqual({ signed: true, reason: null, origin: LOG_NAME, size: 1, root })
    const files = await workspace.objects.logFiles.list()
    expect(files.map(logFileName).sort()).toEqual(['1', 'policy.1'])
    expect(await signLedger(ports)).toEqual({ ...report, signed: false })
    expect(await workspace.objects.logFiles.list()).toEqual(files)
  })

  test('the job says that the stored checkpoint belongs to another log, and signs with the next entry', async () => {
    const { workspace, log } = await signedWorkspace()
    await publishDay(workspace, log, 0)
    rmSync(join(workspace.folder, 'key'), { recursive: true })
    const other = signedLogIn(workspace.folder, 'dash.example/tlog/year-2')
    expect(await signLedger(checkpointPorts(workspace, other))).toMatchObject({
      signed: false,
      reason: `the note tlog/year/1 is of the log ${LOG_NAME}; dash.example/tlog/year-2 signs with the next entry`,
    })
    expect((await workspace.objects.logFiles.list()).map(logFileName).sort()).toEqual(['1', 'policy.1'])
    await publishDay(workspace, other, 1)
    expect((await other.signer.lastSigned()).size).toBe(2)
  })

  test.each([
    ['lost', []],
    ['damaged', ['policy.1']],
    ['without the key of the log', ['policy.1']],
  ])('the job stores the policy again if it is %s', async (what, kept) => {
    const { workspace, log } = await signedWorkspace()
    await publishDay(workspace, log, 0)
    const path = join(workspace.folder, 'objects', 'tlog', 'year', 'policy.1')
    const other = formatVerifierKey(signerKey(LOG_NAME, new Uint8Array(32)))
    rmSync(path)
    if (what === 'damaged') writeFileSync(path, 'hello\n')
    if (what === 'without the key of the log') writeFileSync(path, `log ${other}\nquorum none\n`)
    const number = kept.length + 1
    for (const _run of [1, 2]) {
      expect(await signLedger(checkpointPorts(workspace, log))).toMatchObject({ signed: false, reason: null })
      const files = (await workspace.objects.logFiles.list()).map(logFileName).sort()
      expect(files).toEqual(['1', ...kept, `policy.${number}`])
    }
    expect(readFileSync(path.replace('policy.1', `policy.${number}`), 'utf8')).toBe(log.policy)
  })

  test('the job writes the head that a crash left out', async () => {
    const { workspace, log } = await signedWorkspace()
    const putHead = (): Promise<void> => Promise.reject(new Error('no room'))
    await publishDay(workspace, null, 0, { objects: { ...workspace.objects, putHead } })
    expect(await workspace.objects.newestHead()).toBeNull()
    await signLedger(checkpointPorts(workspace, log))
    expect(await workspace.objects.newestHead()).toMatchObject({ seq: 1 })
    expect(await noteSizes(workspace.objects)).toEqual([1])
  })
})
