import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { rawClient } from '../../adapters/sqlite/lock-holder.ts'
import { dash, serve, startDash, temporaryFolder } from '../../support/dash.ts'
import type { RunOptions } from '../../support/dash.ts'
import { stateOfFolder } from '../../support/temporary-folder.ts'
import { AS_OF, publishDays, publishedWorkspace, sampleSignals } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'
import { addDays } from '../../../src/domain/time.ts'
import type { VerifyReport } from '../../../src/jobs/archive/audit.ts'

const DAYS = [addDays(AS_OF, -2), addDays(AS_OF, -1), AS_OF]

async function verify(
  { folder }: { folder: string },
  args: readonly string[] = [],
  options: RunOptions = {},
) {
  const finished = await dash(['verify-archive', '--data-dir', folder, '--json', ...args], options)
  return { ...finished, report: JSON.parse(finished.stdout) as VerifyReport }
}

/** Returns the state of the folder without the records of audits. */
function archiveOf({ folder }: Workspace): Record<string, string> {
  return stateOfFolder(folder, (name) => name.startsWith('state.db'))
}

/** Files of the store's objects, in the order of their digests. */
function objectFiles({ objectsPath }: Workspace): string[] {
  return readdirSync(join(objectsPath, 'sha256'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

/** Note of an audit without a state database for its record. */
const NO_RECORD = /^this audit was not recorded: the state database \S+state\.db does not exist; .*\n$/

describe('verify-archive', () => {
  test('a sound archive is reported as one JSON document of the schema, and is not changed', async () => {
    const workspace = await publishedWorkspace(DAYS)
    const { rows } = await workspace.ledger.read()
    const before = stateOfFolder(workspace.folder)
    const { code, stdout, stderr, report } = await verify(workspace, ['--payloads'])
    expect([code, stderr]).toEqual([0, expect.stringMatching(NO_RECORD)])
    expect(stdout.trimEnd().split('\n')).toHaveLength(1)
    const expected = {
      ok: true,
      complete: true,
      publications: 3,
      objects: 3,
      bytes: rows.reduce((sum, { byteSize }) => sum + (byteSize ?? 0), 0),
      gaps: 0,
      head: { seq: 3, leaf: rows[2]?.leaf },
      findings: [],
      durationMs: expect.any(Number) as unknown,
      reason: null,
      recorded: false,
    }
    expect(report).toEqual(expected)
    expect(Object.keys(report)).toEqual(Object.keys(expected))
    expect(stateOfFolder(workspace.folder)).toEqual(before)
  })

  test('a sound archive prints one line, and nothing under --quiet', async () => {
    const { folder } = await publishedWorkspace(DAYS.slice(0, 1))
    const spoken = await dash(['verify-archive', '--data-dir', folder])
    expect([spoken.code, spoken.stderr]).toEqual([0, expect.stringMatching(NO_RECORD)])
    expect(spoken.stdout).toMatch(/^sound: 1 publication, 1 object with .* read, 0 gaps, head 1 \w{16}\n$/)
    const quiet = await dash(['verify-archive', '--data-dir', folder, '--quiet'])
    expect(quiet).toEqual({ code: 0, stdout: '', stderr: '' })
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
    rmSync(objectFiles(workspace)[0] ?? '')
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
    const [first = ''] = objectFiles(workspace)
    rmSync(first)
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
    const quiet = await dash(['verify-archive', '--data-dir', workspace.folder, '--quiet'])
    expect([quiet.code, quiet.stdout]).toEqual([65, ''])
    expect(quiet.stderr).toContain('object_missing')
  })

  test('damage beside an unreadable store ends the audit with 65, and the unreadable store alone with 74', async () => {
    const workspace = await publishedWorkspace(DAYS.slice(0, 1))
    chmodSync(join(workspace.objectsPath, 'sha256'), 0)
    const alone = await verify(workspace, [], { boundByModes: true })
    expect([alone.code, alone.report]).toMatchObject([74, { ok: false, complete: false }])
    const client = rawClient(`file:${workspace.ledgerPath}`)
    await client.execute('DROP TRIGGER entries_no_update')
    await client.execute('UPDATE entries SET byte_size = byte_size + 1')
    client.close()
    const { code, report } = await verify(workspace, [], { boundByModes: true })
    expect([code, report.complete, report.findings[0]?.code]).toEqual([65, false, 'row_tampered'])
  })

  test('a missing store or ledger folder ends the audit with 74, and is not created', async () => {
    const workspace = await publishedWorkspace(DAYS.slice(0, 1))
    const ledger = pathToFileURL(join(workspace.folder, 'absent', 'ledger.db')).href
    const lost = await verify(workspace, [], { env: { DASH_LEDGER_URL: ledger } })
    expect([lost.code, lost.report.complete]).toEqual([74, false])
    expect(lost.stderr).toContain(join(workspace.folder, 'absent'))
    rmSync(workspace.objectsPath, { recursive: true })
    const { code, stderr, report } = await verify(workspace)
    expect([code, report.ok, report.complete, report.findings]).toEqual([74, false, false, []])
    expect(stderr).toContain(workspace.objectsPath)
    expect(() => readdirSync(workspace.objectsPath)).toThrow('ENOENT')
  })
})

test('an audit of another host reports whether it was compared with the local archive', async () => {
  const host = await publishedWorkspace(DAYS.slice(0, 1))
  const other = await publishedWorkspace(DAYS.slice(1, 2))
  const { url } = await serve(['--data-dir', host.folder])
  const audit = (folder: string, ...flags: string[]): ReturnType<typeof dash> =>
    dash(['verify-archive', '--url', url, '--data-dir', folder, ...flags])
  const unrelated = await audit(other.folder, '--json')
  expect([unrelated.code, JSON.parse(unrelated.stdout)]).toMatchObject([
    0,
    { ok: true, publications: 1, findings: [], comparedWith: 'none' },
  ])
  expect(unrelated.stderr.trim().split('\n')).toEqual([
    expect.stringContaining(
      `has no entry and no publication in common with ${url}; the host was not compared with it`,
    ),
  ])
  expect((await audit(other.folder)).stdout).toMatch(
    /^sound \(not compared with the local archive, which is a different one\): /,
  )
  expect((await audit(host.folder)).stdout).toMatch(/^sound: /)
  const own = await audit(host.folder, '--json')
  expect(JSON.parse(own.stdout)).toMatchObject({ ok: true, comparedWith: 'own' })
})

test('an audit of a host that cannot be reached gives the reason in its JSON result', async () => {
  const cwd = temporaryFolder()
  const { code, stdout, stderr } = await dash(
    ['verify-archive', '--url', 'http://127.0.0.1:9', '--json', '--quiet'],
    { cwd },
  )
  expect(code).toBe(69)
  const { reason } = JSON.parse(stdout) as { reason: string }
  expect(reason).toContain('127.0.0.1:9')
  expect(reason).toMatch(/; check the address and the network, and try again$/)
  expect(stderr).toContain(reason)
})

describe('an expected head', () => {
  test('an expected head reveals that both stores were rolled back together', async () => {
    const workspace = await publishedWorkspace(DAYS.slice(0, 2))
    const old = join(temporaryFolder(), 'old')
    cpSync(workspace.folder, old, { recursive: true })
    await workspace.feed.importSignals(sampleSignals(AS_OF))
    await publishDays(workspace, [AS_OF])
    const kept = join(workspace.objectsPath, 'heads', '3')
    expect((await verify(workspace, ['--expect-head', kept])).code).toBe(0)
    expect((await verify({ folder: old })).code).toBe(0)
    const { code, report } = await verify({ folder: old }, ['--expect-head', kept])
    expect(code).toBe(65)
    const { leaf } = JSON.parse(readFileSync(kept, 'utf8')) as { leaf: string }
    const actual = 'the ledger ends at entry 2'
    expect(report.findings).toEqual([
      { code: 'head_mismatch', publicationId: null, path: kept, expected: leaf, actual },
    ])
  })

  test('an unreadable expected head is refused', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'other'), '{"seq":1,"leaf":"a","time":"2026-01-01T00:00:00.000Z"}')
    const { code, stderr } = await dash(['verify-archive', '--expect-head', 'other'], { cwd })
    expect([code, stderr]).toEqual([64, expect.stringContaining('--expect-head "other"')])
  })
})

describe('an audit that is interrupted', () => {
  /** Starts an audit that waits for its expected head, runs `act`, and lets it continue. */
  async function meanwhile(
    workspace: Workspace,
    act: (audit: ReturnType<typeof startDash>['child']) => void,
  ) {
    const pipe = join(temporaryFolder(), 'head')
    execFileSync('mkfifo', [pipe])
    const args = ['verify-archive', '--data-dir', workspace.folder, '--json', '--expect-head', pipe]
    const { child, output, end } = startDash(args)
    const head = readFileSync(join(workspace.objectsPath, 'heads', '1'))
    // Opens once the other end is open.
    const writer = await open(pipe, 'w')
    act(child)
    await writer.writeFile(head)
    await writer.close()
    return { code: await end(), ...output, report: JSON.parse(output.stdout) as VerifyReport }
  }

  test.each<[NodeJS.Signals, number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('an audit ended by %s exits with %i and a report of its results so far', async (signal, expected) => {
    const workspace = await publishedWorkspace(DAYS.slice(0, 2))
    const { code, report, stderr } = await meanwhile(workspace, (audit) => audit.kill(signal))
    expect(code).toBe(expected)
    expect(report).toMatchObject({ ok: false, complete: false, publications: 2, objects: 0, findings: [] })
    expect(stderr).toContain(`the audit ended early: stopped by ${signal}`)
  })
})
