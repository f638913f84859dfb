import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openApp } from '../../support/api-client.ts'
import { run, temporaryFolder } from '../../support/dash.ts'
import { signedLogIn } from '../../support/signed-log.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'

/** Saves the files of a host that a reader needs: a publication, its proofs, and the policy. */
async function savedFiles(): Promise<string> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(sampleSignals())
  await publishDays({ ...workspace, log: signedLogIn(workspace.folder) }, [AS_OF])
  const app = openApp(workspace)
  const folder = temporaryFolder()
  for (const [name, path] of [
    ['year.json', '/api/feed/history?sort=year'],
    ['year.json.tlog-proof', '/tlog/year/proof'],
    ['newest.json', '/tlog/year/proof?until=next'],
    ['policy', '/tlog/year/policy'],
  ] as const) {
    const response = await app.request(`http://dash.test${path}`)
    expect([path, response.status]).toEqual([path, 200])
    writeFileSync(join(folder, name), Buffer.from(await response.arrayBuffer()))
  }
  return folder
}

test('verify proves the files of a host offline and prints what is not proved, in sentences or in JSON', async () => {
  const cwd = await savedFiles()
  const verify = (proof: string, ...flags: string[]) =>
    run(['verify', 'year.json', proof, '--policy', 'policy', ...flags], { cwd })
  const open = /^ {2}not proved: that it was the newest at .*: a checkpoint does not say when/
  for (const [proof, notProved] of [
    ['year.json.tlog-proof', null],
    ['newest.json', [expect.stringMatching(open)]],
  ] as const) {
    const { code, stdout, stderr } = await verify(proof)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^verified\n {2}proved: the file is top-year-v3-2026-03-01, SHA-256 [0-9a-f]{64}, byte for byte\n/,
    )
    expect(stdout).toContain('  proved: it was the newest while the log had 1 entry\n')
    expect(stdout.match(/^  not proved: .*/gm)).toEqual(notProved)
  }
  const { code, stdout } = await verify('year.json.tlog-proof', '--json')
  const sentences: unknown = expect.arrayContaining(['proved: it was the newest while the log had 1 entry'])
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    {
      ok: true,
      proved: ['digest', 'inclusion', 'identity', 'log', 'newest'],
      notProved: [],
      entry: { seq: 1, publicationId: 'top-year-v3-2026-03-01', asOfDay: '2026-03-01' },
      problem: null,
      sentences,
    },
  ])
})

test('verify ends with 65 for a changed file', async () => {
  const cwd = await savedFiles()
  writeFileSync(join(cwd, 'year.json'), '{}')
  const args = ['verify', 'year.json', 'year.json.tlog-proof']
  const json = await run([...args, '--json'], { cwd })
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, proved: [], notProved: [], entry: null })
  const { code, stdout, stderr } = await run([...args, '--policy', 'policy'], { cwd })
  expect([code, stderr]).toEqual([65, ''])
  expect(stdout).toMatch(
    /^WRONG: the file has the SHA-256 [0-9a-f]{64}; the proof is of top-year-v3-2026-03-01, /,
  )
})

test.each([
  [['year.json'], 'name two files'],
  [['year.json', 'policy', 'policy'], 'name two files'],
  [['absent.json', 'policy'], '"absent.json" cannot be read'],
  [['year.json', 'policy', '--policy', 'absent'], '"absent" cannot be read'],
  [['year.json', 'policy', '--policy', 'year.json'], 'is not a valid policy: line 1 begins with'],
])('verify ends with 64 for the arguments %j', async (args, says) => {
  const cwd = await savedFiles()
  const { code, stderr } = await run(['verify', ...args], { cwd })
  expect([code, stderr]).toEqual([64, expect.stringContaining(says)])
})
