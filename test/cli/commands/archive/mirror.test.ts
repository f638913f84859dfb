import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addDays } from '../../../../src/domain/time.ts'
import { formatVerifierKey, signerKey } from '../../../../src/domain/year/log/signed-note.ts'
import { staticObjectPath } from '../../../../src/domain/year/log/static-layout.ts'
import type { MirrorReport } from '../../../../src/jobs/archive/mirror.ts'
import { listenLocally } from '../../../support/api-client.ts'
import { exportFolder, exportTo, signedWorkspace } from '../../../support/exports.ts'
import { run, temporaryFolder } from '../../../support/dash.ts'
import { localSource } from '../../../support/local-source.ts'
import { openSampleApp, rewritten, sampleArchive } from '../../../support/sample-archive.ts'
import {
  HOST_POLICY,
  logFilesOf,
  noteOf,
  serveFiles,
  serveInstead,
  staticFiles,
  writeFiles,
} from '../../../support/static-host.ts'
import { testWitness } from '../../../domain/year/log-vectors.ts'
import { filesOfFolder } from '../../../support/temporary-folder.ts'
import { AS_OF } from '../../../support/workspace.ts'

interface Mirrored {
  code: number
  stderr: string
  report: MirrorReport & { reason: string | null }
  /** `code path` of each finding. */
  found: string[]
}

/** Mirrors a host to `mirror` in a folder, with the state folder in it. */
async function mirror(url: string, home: string, ...flags: string[]): Promise<Mirrored> {
  const { code, stdout, stderr } = await run(['mirror', url, 'mirror', '--json', ...flags], {
    cwd: home,
    env: { XDG_STATE_HOME: join(home, 'state') },
  })
  const report = JSON.parse(stdout) as Mirrored['report']
  return {
    code,
    stderr,
    report,
    found: (report.findings ?? []).map(({ code: name, path }) => `${name} ${path}`),
  }
}

const base64 = (files: ReadonlyMap<string, Uint8Array>): Record<string, string> =>
  Object.fromEntries([...files].map(([path, bytes]) => [path, Buffer.from(bytes).toString('base64')]))

const archive = sampleArchive(4)
const size = archive.contents.rows.length
const files = staticFiles(archive)
const forked = rewritten(archive, 3, { reason: 'attempts_spent', attempts: 3 })
const objectPath = [...files.keys()].find((path) => path.startsWith('objects/')) ?? ''

describe('a mirror', () => {
  test('a mirror of a server has the files of an export, and nothing else', async () => {
    const home = temporaryFolder()
    const objects = new Map([...files].filter(([path]) => path.startsWith('objects/')))
    const { url } = await serveInstead(openSampleApp(archive, {}, logFilesOf(archive)), objects)
    const { code, found, report } = await mirror(url, home)
    const bytes = [...files.values()].reduce((sum, { byteLength }) => sum + byteLength, 0)
    expect([code, found, report]).toMatchObject([
      0,
      [],
      {
        files: files.size,
        written: files.size,
        unchanged: 0,
        bytes,
        checkpoint: { origin: 'dash.example/tlog/year', size },
      },
    ])
    expect(filesOfFolder(join(home, 'mirror'))).toEqual(base64(files))
  })

  test('a mirror of a server that publishes more than its checkpoint ends at the checkpoint', async () => {
    const home = temporaryFolder()
    const objects = new Map([...files].filter(([path]) => path.startsWith('objects/')))
    const { url } = await serveInstead(openSampleApp(archive, {}, logFilesOf(archive, size - 1)), objects)
    expect((await mirror(url, home)).code).toBe(0)
    const { found, code } = await mirror((await serveFiles(join(home, 'mirror'))).url, temporaryFolder())
    expect([code, found]).toEqual([0, []])
    expect(readFileSync(join(home, 'mirror', 'tlog/year/checkpoint'), 'utf8')).toBe(noteOf(archive, size - 1))
  })

  test('a server without objects by digest is mirrored by time, except a publication that another one hides', async () => {
    const home = temporaryFolder()
    const app = openSampleApp(archive, {}, logFilesOf(archive))
    const host = await localSource(async ({ target }, response) => {
      const honest = target.startsWith('/objects/')
        ? new Response(null, { status: 404 })
        : await app.request(`http://dash.test${target}`)
      const body = Buffer.from(await honest.arrayBuffer())
      response.writeHead(honest.status, Object.fromEntries(honest.headers)).end(body)
    })
    const { code, found, report } = await mirror(host.url, home)
    const hidden = staticObjectPath(archive.contents.legacy[1]?.sha256 ?? '')
    expect([code, found]).toEqual([65, expect.arrayContaining([`digest_mismatch ${hidden}`])])
    expect(report).toMatchObject({ files: 6, written: 6, checkpoint: null })
    expect(readdirSync(join(home, 'mirror'))).toEqual(['objects'])
  })

  test('a mirror of a static host is the same files, and so is a mirror of the mirror', async () => {
    const home = temporaryFolder()
    const host = await serveFiles(files)
    const first = await mirror(host.url, home)
    expect([first.code, first.found, first.report]).toMatchObject([
      0,
      [],
      { files: files.size, written: files.size, unchanged: 0 },
    ])
    expect(filesOfFolder(join(home, 'mirror'))).toEqual(base64(files))
    const other = temporaryFolder()
    const second = await mirror((await serveFiles(join(home, 'mirror'))).url, other)
    expect([second.code, second.found]).toEqual([0, []])
    expect(filesOfFolder(join(other, 'mirror'))).toEqual(base64(files))
  })

  test('a mirror of an export that dash wrote is the same files, and both are sound', async () => {
    const home = temporaryFolder()
    const workspace = await signedWorkspace([addDays(AS_OF, -1), AS_OF])
    const { path, tree } = exportFolder(workspace)
    await exportTo(workspace, tree)
    const { code, found } = await mirror((await serveFiles(path)).url, home)
    expect([code, found]).toEqual([0, []])
    expect(filesOfFolder(join(home, 'mirror'))).toEqual(filesOfFolder(path))
    const { url } = await serveFiles(join(home, 'mirror'))
    const audited = await run(['verify-archive', '--url', url, '--state', 'state'], { cwd: home })
    expect([audited.code, audited.stdout]).toEqual([0, expect.stringMatching(/^sound: 2 publications, /)])
  })

  test('a mirror has the trusted policy, and a note names keys that only the policy of the host has', async () => {
    const home = temporaryFolder()
    const stranger = formatVerifierKey(signerKey('stranger.example', new Uint8Array(32).fill(9)))
    const policy = HOST_POLICY.replace('quorum', `log ${stranger}\nquorum`)
    const host = await serveFiles(new Map([...files, ['tlog/year/policy', Buffer.from(policy)]]))
    writeFileSync(join(home, 'policy'), HOST_POLICY)
    const { code, stderr } = await mirror(host.url, home, '--policy', 'policy')
    expect([code, stderr]).toEqual([0, expect.stringContaining(`also has the keys ${stranger}`)])
    expect(readFileSync(join(home, 'mirror', 'tlog/year/policy'), 'utf8')).toBe(HOST_POLICY)
  })

  test('a repeated mirror requests no publication again, and follows the host', async () => {
    const home = temporaryFolder()
    const older = staticFiles(archive, size - 2)
    const changing = new Map(older)
    const host = await serveFiles(changing)
    await mirror(host.url, home)
    const requestsOfObjects = (): string[] =>
      host.requests.map(({ target }) => target).filter((target) => target.includes('/objects/'))
    const before = requestsOfObjects().length
    expect((await mirror(host.url, home)).report).toMatchObject({
      files: older.size,
      written: 0,
      unchanged: older.size,
      bytes: 0,
    })
    expect(requestsOfObjects()).toHaveLength(before)
    for (const [path, bytes] of files) changing.set(path, bytes)
    expect((await mirror(host.url, home)).code).toBe(0)
    expect(requestsOfObjects()).toHaveLength(before + 2)
    expect(filesOfFolder(join(home, 'mirror'))).toEqual({ ...base64(older), ...base64(files) })
  })

  test('an interrupted mirror has no checkpoint, and the next run requests only what is missing', async () => {
    const home = temporaryFolder()
    const isDown = { value: true }
    const host = await serveFiles(files, (path) =>
      isDown.value && path === objectPath ? { status: 500 } : undefined,
    )
    const first = await mirror(host.url, home)
    expect([first.code, first.found]).toEqual([74, [`object_unreadable ${objectPath}`]])
    expect(readdirSync(join(home, 'mirror'))).toEqual(['objects'])
    isDown.value = false
    const before = host.requests.length
    expect((await mirror(host.url, home)).code).toBe(0)
    const requested = host.requests.slice(before).map(({ target }) => target)
    expect(requested.filter((target) => target.includes('/objects/'))).toEqual([`/some/prefix/${objectPath}`])
    expect(filesOfFolder(join(home, 'mirror'))).toEqual(base64(files))
  })
})

describe('a mirror that is not written', () => {
  test.each([
    'tlog/year/tile/0/000.p/7',
    'tlog/year/tile/entries/000.p/7',
    'ledger/legacy.ndjson',
    'index.json',
    'tlog/year/policy',
  ])('a host with a damaged %s is not mirrored', async (path) => {
    const home = temporaryFolder()
    const damaged = new Map([...files, [path, new TextEncoder().encode('damaged')]])
    const { code, found } = await mirror((await serveFiles(damaged)).url, home)
    expect(code).toBe(65)
    expect(found[0]).toMatch(new RegExp(`^\\w+ (${path}|legacy_publications/1)$`))
    expect(existsSync(join(home, 'mirror'))).toBe(false)
  })

  test('a host without a signed log is not mirrored', async () => {
    const home = temporaryFolder()
    const { url } = await listenLocally(openSampleApp(archive))
    const { code, stderr } = await mirror(url, home)
    expect([code, stderr]).toEqual([64, expect.stringContaining('has no signed log to mirror')])
  })

  test('a host that cannot be reached leaves no folder', async () => {
    const home = temporaryFolder()
    const { code } = await mirror('http://127.0.0.1:9', home)
    expect([code, readdirSync(home)]).toEqual([69, []])
  })

  test('a file of the mirror that differs is not overwritten', async () => {
    for (const path of [objectPath, 'tlog/year/tile/0/000.p/2', 'ledger/legacy.ndjson']) {
      const home = temporaryFolder()
      mkdirSync(join(home, 'mirror', dirname(path)), { recursive: true })
      writeFileSync(join(home, 'mirror', path), 'mine')
      const { code, report } = await mirror((await serveFiles(files)).url, home)
      expect([code, report.reason]).toEqual([74, expect.stringContaining(`${path} in the target differs`)])
      expect(readFileSync(join(home, 'mirror', path), 'utf8')).toBe('mine')
      expect(filesOfFolder(join(home, 'mirror'))).not.toHaveProperty('tlog/year/checkpoint')
    }
  })

  test('a target that overlaps the object store of the archive is refused', async () => {
    const { folder, objectsPath } = await signedWorkspace([AS_OF])
    const { url } = await serveFiles(files)
    const before = filesOfFolder(objectsPath)
    for (const target of [objectsPath, join(objectsPath, 'site')]) {
      const env = {
        DASH_DATA_DIR: folder,
        DASH_STORE_URL: `file://${objectsPath}`,
        XDG_STATE_HOME: join(folder, 'state'),
      }
      const { code, stderr } = await run(['mirror', url, target], { cwd: folder, env })
      expect([code, stderr]).toEqual([64, expect.stringContaining('overlaps the object store')])
    }
    expect(filesOfFolder(objectsPath)).toEqual(before)
  })

  test('a folder that holds another site is not overwritten', async () => {
    const home = temporaryFolder()
    writeFiles(join(home, 'mirror'), new Map([['index.json', new Uint8Array(1)]]))
    const { code, report } = await mirror((await serveFiles(files)).url, home)
    expect([code, report.reason]).toEqual([1, expect.stringContaining('already has index.json')])
  })

  test('a mirror of another history stays, also if its state folder is lost, and both notes are reported', async () => {
    const home = temporaryFolder()
    await mirror((await serveFiles(files)).url, home)
    for (const other of [forked, rewritten(sampleArchive(6), 3, { attempts: 4 })]) {
      rmSync(join(home, 'state'), { recursive: true })
      const { code, found, report } = await mirror((await serveFiles(staticFiles(other))).url, home)
      expect([code, found]).toEqual([65, ['log_forked tlog/year/checkpoint']])
      expect(report.log?.fork?.map(({ note }) => note)).toEqual([noteOf(archive), noteOf(other)])
      expect(filesOfFolder(join(home, 'mirror'))).toEqual(base64(files))
    }
  })

  test('a mirror that is newer than the host stays, and a note says so', async () => {
    const home = temporaryFolder()
    await mirror((await serveFiles(files)).url, home)
    const older = await serveFiles(staticFiles(archive, size - 2))
    rmSync(join(home, 'state'), { recursive: true })
    const { code, stderr } = await mirror(older.url, home)
    expect([code, stderr]).toEqual([0, expect.stringContaining(`only ${size - 2}; nothing was changed`)])
    expect(filesOfFolder(join(home, 'mirror'))).toEqual(base64(files))
  })

  test('a mirror with a newer cosignature of a witness keeps its checkpoint, and a newer one replaces it', async () => {
    const home = temporaryFolder()
    const { vkey, cosign } = testWitness('w1', 3)
    const [text = ''] = noteOf(archive).split('\n\n')
    const cosigned = (time: number): Buffer => Buffer.from(`${noteOf(archive)}${cosign(`${text}\n`, time)}\n`)
    const policy = `${HOST_POLICY.replace('quorum none\n', '')}witness w1 ${vkey}\nquorum w1\n`
    const witnessed = new Map([...files, ['tlog/year/policy', Buffer.from(policy)]])
    const hostWith = async (served: typeof files, note: string | Buffer): Promise<string> =>
      (await serveFiles(new Map([...served, ['tlog/year/checkpoint', Buffer.from(note)]]))).url
    await mirror(await hostWith(witnessed, cosigned(2_000)), home)
    const before = filesOfFolder(join(home, 'mirror'))
    const hosts = [
      await hostWith(witnessed, noteOf(archive)),
      await hostWith(witnessed, cosigned(1_000)),
      await hostWith(files, noteOf(archive)),
    ]
    for (const url of hosts) {
      // A checkpoint without its quorum is not kept.
      rmSync(join(home, 'state'), { recursive: true, force: true })
      const { code, found, stderr } = await mirror(url, home)
      expect([code, found, stderr]).toEqual([
        0,
        [],
        expect.stringContaining('the target has a newer cosignature of w1.example than'),
      ])
      expect(filesOfFolder(join(home, 'mirror'))).toEqual(before)
    }
    expect((await mirror(await hostWith(witnessed, cosigned(3_000)), home)).code).toBe(0)
    expect(readFileSync(join(home, 'mirror', 'tlog/year/checkpoint'))).toEqual(cosigned(3_000))
  })

  test('a mirror with a damaged checkpoint is refused and accuses no host', async () => {
    const home = temporaryFolder()
    const { url } = await serveFiles(files)
    await mirror(url, home)
    const path = join(home, 'mirror', 'tlog/year/checkpoint')
    chmodSync(path, 0o644)
    writeFileSync(path, noteOf(archive).replace('\n7\n', '\n8\n'))
    const { code, found, report } = await mirror(url, home)
    expect([code, found]).toEqual([74, []])
    expect(report.reason).toContain('tlog/year/checkpoint in the target is not a checkpoint of')
  })
})
