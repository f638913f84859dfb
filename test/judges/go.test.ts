import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addDays, formatInstant, startOfDay } from '../../src/domain/time.ts'
import { asOfProofSchema } from '../../src/domain/year/log/log-proof.ts'
import { formatVerifierKey } from '../../src/domain/year/log/signed-note.ts'
import { importArchive } from '../../src/jobs/import-archive.ts'
import { requestRoute } from '../server/contract-client.ts'
import { listenLocally, openApp } from '../support/api-client.ts'
import { exportFolder, exportTo, publishSigned } from '../support/exports.ts'
import type { SignedWorkspace } from '../support/exports.ts'
import { importPortsOf, recentArchive } from '../support/legacy-archive.ts'
import { signedLogIn } from '../support/signed-log.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../support/workspace.ts'

/**
 * A Go program checks the log with Go's own note and tlog packages and none of dash's code. It reads from a server of
 * this process, so that it must not block the process.
 */

/** Where Debian and Ubuntu install Go packages. */
const GOPATH = '/usr/share/gocode'

const built = mkdtempSync(join(tmpdir(), 'dash-check-log-'))
const program = join(built, 'check-log')

beforeAll(() => {
  if (spawnSync('go', ['version']).error || !existsSync(join(GOPATH, 'src/golang.org/x/mod/sumdb/tlog')))
    throw new Error('Go is missing; install it: apt-get install golang-go golang-golang-x-mod-dev')
  const source = fileURLToPath(new URL('../../docs/check-log.go', import.meta.url))
  const GOCACHE = process.env['GOCACHE'] ?? join(built, 'cache')
  execFileSync('go', ['build', '-o', program, source], {
    env: { ...process.env, GO111MODULE: 'off', GOPATH, GOCACHE },
  })
})
afterAll(() => rmSync(built, { recursive: true }))

/** Runs the program and returns its exit code and its lines. */
const check = (args: readonly string[]): Promise<{ code: unknown; stdout: string; stderr: string }> =>
  new Promise((resolve) => {
    execFile(program, args, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stdout, stderr }),
    )
  })

const dayAt = (index: number): string => addDays(AS_OF, index)

/** A workspace whose file clock is ahead of the real one, so that every proof settles at once, and the key of its log. */
async function signedWorkspace(): Promise<SignedWorkspace & { vkey: string }> {
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  const log = signedLogIn(workspace.folder)
  return { ...workspace, log, vkey: formatVerifierKey(log.signer.key) }
}

/** The application over an archive, two days after the newest day given. */
const appOf = (workspace: SignedWorkspace, newest: () => number): ReturnType<typeof openApp> =>
  openApp(workspace, { clock: () => startOfDay(dayAt(newest() + 2)) })

/** Exports the archive, into the same folder each time, and returns the folder of its checkpoint. */
async function exportLog(workspace: SignedWorkspace): Promise<string> {
  const { path, tree } = exportFolder(workspace)
  await exportTo(workspace, tree)
  return join(path, 'tlog', 'year')
}

test('Go accepts every file, entry and pair of checkpoints of a log at the sizes around full tiles', async () => {
  const workspace = await signedWorkspace()
  let newest = 0
  const { url } = await listenLocally(appOf(workspace, () => newest))
  const stored = join(workspace.objectsPath, 'tlog', 'year')
  for (const size of [1, 2, 255, 256, 257, 512, 600]) {
    // After missed days, the gaps have a checkpoint of their own.
    newest = size - 1
    await publishSigned(workspace, [dayAt(newest)])
    const notes = readdirSync(stored).filter((name) => /^\d+$/.test(name))
    for (const place of [await exportLog(workspace), `${url}/tlog/year`]) {
      const files = notes.map((name) => join(stored, name))
      const { code, stdout, stderr } = await check([workspace.vkey, place, ...files])
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout.trimEnd().split('\n')).toEqual([
        expect.stringContaining(`signed a tree of ${size} entries`),
        expect.stringMatching(/^ok tiles: /),
        `ok entries: all ${size} are in the tree`,
        `ok consistency: every two of ${notes.length + 1} checkpoints`,
      ])
    }
  }
})

test('Go accepts every proof file of an archive with a legacy ledger, gaps and entries before its key', async () => {
  const workspace = await signedWorkspace()
  await importArchive(importPortsOf(workspace, recentArchive()))
  await workspace.feed.importSignals(sampleSignals(dayAt(0)))
  await publishDays({ ...workspace, log: null }, [dayAt(0)])
  await publishSigned(workspace, [dayAt(3), dayAt(4)])
  const app = appOf(workspace, () => 4)
  const { timeline } = (await workspace.year.read()).proved
  const folder = temporaryFolder()
  const files: string[] = []
  for (const { manifest } of timeline)
    for (const query of ['', '&until=next']) {
      const path = `/tlog/year/proof?at=${formatInstant(manifest.publishedAt)}${query}`
      const { text } = await requestRoute(app, path)
      const proofs = text.startsWith('{') ? asOfProofSchema.parse(JSON.parse(text)).proofs : [text]
      for (const proof of proofs) {
        files.push(join(folder, `${files.length}.tlog-proof`))
        writeFileSync(files.at(-1) ?? '', proof)
      }
    }
  const { stdout, stderr } = await check([workspace.vkey, await exportLog(workspace), ...files])
  expect(stderr).toBe('')
  const proved = [...stdout.matchAll(/^ok proof .*: entry (\d+) is in the tree/gm)].map(([, index]) => index)
  expect(proved).toHaveLength(files.length)
  const { rows } = await workspace.ledger.read()
  expect(rows.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['legacy-seal', 'gap', 'publication']))
  expect(new Set(proved)).toEqual(new Set(rows.map(({ seq }) => `${seq - 1}`)))
})

test('Go refuses another checkpoint, another entry and another proof', async () => {
  const workspace = await signedWorkspace()
  await publishSigned(workspace, [dayAt(0), dayAt(1)])
  const log = await exportLog(workspace)
  const note = readFileSync(join(log, 'checkpoint'), 'utf8')
  const { text: proof } = await requestRoute(
    appOf(workspace, () => 1),
    '/tlog/year/proof',
  )
  const refusal = async (place: string, text: string): Promise<string> => {
    const changed = join(temporaryFolder(), 'changed')
    writeFileSync(changed, text)
    const { code, stderr } = await check([workspace.vkey, place, changed])
    expect(code).toBe(1)
    return stderr
  }
  expect(await refusal(log, note.replace('\n2\n', '\n3\n'))).toMatch(/^failed .*invalid signature/)
  expect(await refusal(log, proof.replace('index 1', 'index 0'))).toMatch(/^failed .*changed/)
  const forged = join(temporaryFolder(), 'forged')
  cpSync(log, forged, { recursive: true })
  const bundle = join(forged, 'tile/entries/000.p/2')
  const bytes = readFileSync(bundle)
  rmSync(bundle)
  writeFileSync(bundle, bytes.with(40, (bytes[40] ?? 0) ^ 1))
  expect(await refusal(forged, note)).toMatch(/^failed .*entry 0 .*is not in the tree/)
})
