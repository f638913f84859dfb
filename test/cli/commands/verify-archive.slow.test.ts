import { chmodSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { rawClient } from '../../adapters/sqlite/lock-holder.ts'
import { dash, run, temporaryFolder } from '../../support/dash.ts'
import { listenLocally, openApp } from '../../support/api-client.ts'
import { stateOfFolder } from '../../support/temporary-folder.ts'
import { AS_OF, manifestsOf, objectFile, publishedWorkspace } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'
import { addDays } from '../../../src/domain/time.ts'
import type { VerifyReport } from '../../../src/jobs/archive/audit.ts'

const DAYS = [addDays(AS_OF, -2), addDays(AS_OF, -1), AS_OF]

/** @param boundByModes true to run the built program with file modes binding even root */
async function verify({ folder }: Workspace, args: readonly string[] = [], boundByModes = false) {
  const argv = ['verify-archive', '--data-dir', folder, '--json', ...args]
  const finished = await (boundByModes ? dash(argv, { boundByModes }) : run(argv))
  return { ...finished, report: JSON.parse(finished.stdout) as VerifyReport }
}

/** Returns the state of the folder without the records of audits. */
function archiveOf({ folder }: Workspace): Record<string, string> {
  return stateOfFolder(folder, (name) => name.startsWith('state.db'))
}

/** Note of an audit without a state database for its record. */
const NO_RECORD = /^this audit was not recorded: the state database \S+state\.db does not exist; .*\n$/

describe('verify-archive', () => {
  test('a sound archive is reported as one JSON document of the schema, and is not changed', async () => {
    const workspace = await publishedWorkspace(DAYS)
    const before = stateOfFolder(workspace.folder)
    const { code, stdout, stderr, report } = await verify(workspace, ['--payloads'])
    expect([code, stderr]).toEqual([0, expect.stringMatching(NO_RECORD)])
    expect(stdout.trimEnd().split('\n')).toHaveLength(1)
    expect(report).toMatchObject({
      ok: true,
      publications: 3,
      head: { seq: 3 },
      reason: null,
      recorded: false,
    })
    expect(Object.keys(report).join(' ')).toBe(
      'ok complete publications objects bytes gaps head findings durationMs reason recorded',
    )
    expect(stateOfFolder(workspace.folder)).toEqual(before)
    const args = ['verify-archive', '--data-dir', workspace.folder]
    const sound = /^sound: 3 publications, 3 objects with .* read, 0 gaps, head 3 \w{16}\n$/
    expect((await run(args)).stdout).toMatch(sound)
    expect(await run([...args, '--quiet'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('audits of the whole archive, of a part, and of damage are recorded in the state database', async () => {
    const workspace = await publishedWorkspace(DAYS)
    expect(await workspace.audits.newest()).toBeNull()
    const before = archiveOf(workspace)
    const { publications, objects, bytes, gaps, head, ...rest } = (await verify(workspace)).report
    expect(rest).toMatchObject({ ok: true, recorded: true, reason: null })
    const counts = { publications, objects, bytes, gaps, head }
    const whole = { ...counts, ok: true, complete: true, whole: true, damage: 0 }
    expect(await workspace.audits.newest()).toMatchObject(whole)
    await verify(workspace, ['--sample', '1/7'])
    expect(await workspace.audits.newest()).toMatchObject({ ok: true, whole: false })
    expect(archiveOf(workspace)).toEqual(before)
    rmSync(objectFile(workspace, (await manifestsOf(workspace))[0]?.sha256))
    expect((await verify(workspace)).code).toBe(65)
    expect(await workspace.audits.newest()).toMatchObject({ ok: false, complete: true, damage: 1 })
  })

  test('an audit whose record cannot be stored keeps its verdict, and notes the failure', async () => {
    const workspace = await publishedWorkspace(DAYS)
    writeFileSync(join(workspace.folder, 'state.db'), 'this is no database at all'.repeat(100))
    const { code, stderr, report } = await verify(workspace)
    expect([code, report.ok]).toEqual([0, true])
    expect(stderr).toContain('this audit could not be recorded')
  })

  test('damage ends the audit with 65 and is reported completely, also on standard error, and nothing is changed', async () => {
    const workspace = await publishedWorkspace(DAYS)
    rmSync(objectFile(workspace, (await manifestsOf(workspace))[0]?.sha256))
    writeFileSync(join(workspace.objectsPath, 'heads', '2'), '{}')
    const before = stateOfFolder(workspace.folder)
    const { code, stderr, report } = await verify(workspace)
    expect(stateOfFolder(workspace.folder)).toEqual(before)
    expect([code, report]).toMatchObject([65, { ok: false, complete: true, objects: 3 }])
    expect(report.findings.map((finding) => finding.code).sort()).toEqual(['head_mismatch', 'object_missing'])
    for (const finding of report.findings) {
      expect(Object.keys(finding)).toEqual(['code', 'publicationId', 'path', 'expected', 'actual'])
      expect(stderr).toContain(`error: ${finding.code} ${finding.path}`)
    }
  })

  test('damage beside an unreadable store ends the audit with 65, and the unreadable store alone with 74', async () => {
    const workspace = await publishedWorkspace(DAYS.slice(0, 1))
    chmodSync(join(workspace.objectsPath, 'sha256'), 0)
    const alone = await verify(workspace, [], true)
    expect(alone).toMatchObject({ code: 74, report: { ok: false, complete: false } })
    const client = rawClient(`file:${workspace.ledgerPath}`)
    await client.execute('DROP TRIGGER entries_no_update')
    await client.execute('UPDATE entries SET byte_size = byte_size + 1')
    client.close()
    const findings = [{ code: 'row_tampered' }, { code: 'object_unreadable' }]
    expect(await verify(workspace, [], true)).toMatchObject({
      code: 65,
      report: { complete: false, findings },
    })
  })
})

test('an audit needs no write permission, and changes nothing', async () => {
  const workspace = await publishedWorkspace(DAYS.slice(0, 1))
  const { folder } = workspace
  const setModes = (file: number, directory: number): void => {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
      chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? directory : file)
    chmodSync(folder, directory)
  }
  setModes(0o444, 0o555)
  onTestFinished(() => setModes(0o644, 0o755))
  const before = stateOfFolder(folder)
  const report = { ok: true, complete: true, publications: 1, objects: 1, findings: [], recorded: false }
  const stderr: unknown = expect.stringMatching(NO_RECORD)
  expect(await verify(workspace, [], true)).toMatchObject({ code: 0, stderr, report })
  expect(stateOfFolder(folder)).toEqual(before)
})

test('an audit of another host reports whether it was compared with the local archive', async () => {
  const host = await publishedWorkspace(DAYS.slice(0, 1))
  const other = await publishedWorkspace(DAYS.slice(1, 2))
  const { url } = await listenLocally(openApp(host))
  const audit = (folder: string, ...flags: string[]) =>
    run(['verify-archive', '--url', url, '--data-dir', folder, ...flags])
  const unrelated = await audit(other.folder, '--json')
  expect([unrelated.code, JSON.parse(unrelated.stdout)]).toMatchObject([0, { comparedWith: 'none' }])
  expect(unrelated.stderr).toContain(`has no entry and no publication in common with ${url}; `)
  expect((await audit(other.folder)).stdout).toMatch(
    /^sound \(not compared with the local archive, which is a different one\): /,
  )
  expect((await audit(host.folder)).stdout).toMatch(/^sound: /)
})

test('an unreadable expected head is refused', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'other'), '{"seq":1,"leaf":"a","time":"2026-01-01T00:00:00.000Z"}')
  const { code, stderr } = await run(['verify-archive', '--expect-head', 'other'], { cwd })
  expect([code, stderr]).toEqual([64, expect.stringContaining('--expect-head "other"')])
})

test('an audit ended by a signal exits with its code and a report of its results so far', async () => {
  const { folder } = await publishedWorkspace(DAYS.slice(0, 2))
  const signal = AbortSignal.abort(new DOMException('stopped by SIGINT', 'AbortError'))
  const { code, stdout, stderr } = await run(['verify-archive', '--data-dir', folder, '--json'], { signal })
  const report = { ok: false, complete: false, publications: 2, objects: 0, findings: [] }
  expect([code, JSON.parse(stdout)]).toMatchObject([130, report])
  expect(stderr).toContain('the audit ended early: stopped by SIGINT')
})
