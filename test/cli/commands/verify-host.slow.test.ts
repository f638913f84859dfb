import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { headAt } from '../../domain/year/ledger-rows.ts'
import { listenLocally } from '../../support/api-client.ts'
import { run, temporaryFolder } from '../../support/dash.ts'
import { openSampleApp, rewritten, sampleArchive } from '../../support/sample-archive.ts'
import type { SampleArchive } from '../../support/sample-archive.ts'
import { LOG_NAME } from '../../support/signed-log.ts'
import {
  HOST_KEY,
  HOST_POLICY,
  logFilesOf,
  noteOf,
  serveFiles,
  serveInstead,
  staticFiles,
} from '../../support/static-host.ts'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { formatHead, leafText } from '../../../src/domain/year/ledger.ts'
import { formatPolicy, signNote, signerKey } from '../../../src/domain/year/log/signed-note.ts'
import type { VerifyReport } from '../../../src/jobs/archive/audit.ts'

interface Audit {
  code: number
  stderr: string
  report: VerifyReport
  /** `code path` of each finding. */
  found: string[]
}

/** Audits a host with the state folder of `home`. */
async function audit(url: string, home: string, ...flags: string[]): Promise<Audit> {
  const args = ['verify-archive', '--url', url, '--json', '--jobs', '2', ...flags]
  const { code, stdout, stderr } = await run(args, {
    cwd: home,
    env: { XDG_STATE_HOME: join(home, 'state') },
  })
  const report = JSON.parse(stdout) as VerifyReport
  return { code, stderr, report, found: report.findings.map(({ code: name, path }) => `${name} ${path}`) }
}

const archive = sampleArchive(4)
const { rows } = archive.contents
const size = rows.length
/** The same log, except for the reason of its gap. */
const forked = rewritten(archive, 3, { reason: 'attempts_spent', attempts: 3 })
const sound = await staticFiles(archive)

type Files = ReadonlyMap<string, Uint8Array>

const hostOf = async (files: Files): Promise<string> => (await serveFiles(files)).url

/** Audits a host of these files that was never seen before. */
const auditFiles = async (files: Files): Promise<Audit> => audit(await hostOf(files), temporaryFolder())

/** A server over an archive whose log is signed; returns its URL. */
async function server(served: SampleArchive): Promise<string> {
  const { url } = await listenLocally(openSampleApp(served, {}, logFilesOf(archive)))
  return url
}

/** Files with some of them changed, or removed by null. */
function changed(files: Files, changes: Record<string, Uint8Array | string | null>): Files {
  const result = new Map(files)
  for (const [path, content] of Object.entries(changes))
    if (content === null) result.delete(path)
    else result.set(path, Buffer.from(content))
  return result
}

const CHECKPOINT = 'tlog/year/checkpoint'
const TILE = 'tlog/year/tile/0/000.p/7'
const newest = `objects/sha256/${rows.at(-1)?.sha256?.slice(0, 2)}/${rows.at(-1)?.sha256}.json`

const OTHER_KEY = signerKey(LOG_NAME, new Uint8Array(32).fill(8))

/** The checkpoint and the policy of another key. */
const ofKey = (key: typeof OTHER_KEY, of = archive): Record<string, string> => ({
  [CHECKPOINT]: noteOf(of, size, key),
  'tlog/year/policy': formatPolicy([key], null),
})

const flipped = (bytes: Uint8Array = new Uint8Array()): Uint8Array => bytes.with(40, (bytes[40] ?? 0) ^ 1)

/** The note in the file of the log in the state folder of `home`. */
function keptNote(home: string): string {
  const path = join(home, 'state', 'dash', 'logs', `${sha256Hex(LOG_NAME)}.txt`)
  return /^[^]*?\n\n[^]*?\n(?=\n)/.exec(readFileSync(path, 'utf8'))?.[0] ?? ''
}

/** A folder that is home to an audit, with the policy of the hosts in the file `policy`. */
function homeWithPolicy(): string {
  const home = temporaryFolder()
  writeFileSync(join(home, 'policy'), HOST_POLICY)
  return home
}

const notChecked = (url: string): string =>
  `_headers, pages and feeds of ${url} are not signed and were not checked\n`

describe('a sound host', () => {
  test('a server with a signed log is sound, and its checkpoint is kept for the next audit', async () => {
    const home = temporaryFolder()
    const url = await server(archive)
    const first = await audit(url, home)
    const firstUse = `the key of the log ${LOG_NAME} is trusted on first use, as ${url} names it; to verify it, give a policy from another source with --policy\n`
    expect([first.code, first.found, first.stderr]).toEqual([0, [], firstUse])
    const log = { origin: LOG_NAME, size, trust: 'first use', behind: 0, fork: null }
    expect(first.report.log).toMatchObject(log)
    expect(keptNote(home)).toBe(noteOf(archive))
    const second = await audit(url, home)
    expect([second.code, second.stderr, second.report.log]).toMatchObject([0, '', { trust: 'kept' }])
    expect(readdirSync(join(home, 'state', 'dash', 'logs'))).toEqual([`${sha256Hex(LOG_NAME)}.txt`])
    writeFileSync(join(home, 'kept.json'), formatHead(headAt(forked.contents.rows, 3)))
    expect((await audit(url, home, '--expect-head', 'kept.json')).found).toEqual(['head_mismatch kept.json'])
  })

  test('a static host below a prefix is sound without an API, and every publication is fetched', async () => {
    const { code, found, report } = await auditFiles(sound)
    expect([code, found]).toEqual([0, []])
    expect(report).toMatchObject({ publications: 7, objects: 7, gaps: 1, head: { seq: size } })
  })

  test('a static host may list entries after its checkpoint in its index, and a note says so', async () => {
    const files = changed(await staticFiles(archive, size - 1), {
      'index.json': sound.get('index.json') ?? null,
    })
    const { code, stderr } = await auditFiles(files)
    const note: unknown = expect.stringContaining('lists 1 entry beyond the checkpoint of ')
    expect([code, stderr]).toEqual([0, note])
  })
})

describe('a damaged static host', () => {
  test.each([
    ['changed', TILE, 'tile_mismatch'],
    ['changed', 'tlog/year/policy', 'note_invalid'],
    ['changed', 'index.json', 'digest_mismatch'],
    ['changed', newest, 'digest_mismatch'],
    ['missing', 'tlog/year/tile/entries/000.p/7', 'tile_mismatch'],
    ['missing', CHECKPOINT, 'note_invalid'],
    ['missing', 'ledger/legacy.ndjson', 'digest_mismatch'],
    ['missing', newest, 'object_missing'],
  ])('a static host with a %s %s is not sound, and a finding names the file', async (what, path, finding) => {
    const isChanged = what === 'changed'
    const content = isChanged ? flipped(sound.get(path)) : null
    const { code, found } = await auditFiles(changed(sound, { [path]: content }))
    const expected = `${finding} ${path}`
    expect([code, found]).toEqual([65, isChanged ? [expected] : expect.arrayContaining([expected])])
  })

  test('a static host whose entries and tiles agree with each other and not with the checkpoint is forked', async () => {
    const files = changed(await staticFiles(forked), { [CHECKPOINT]: noteOf(archive) })
    expect(await auditFiles(files)).toMatchObject({ code: 65, found: [`log_forked ${CHECKPOINT}`] })
  })

  test.each([
    ['20 MB', { status: 200, body: new Uint8Array(20_000_000) }, 69, []],
    ['20 KB', { status: 200, body: new Uint8Array(20_000) }, 65, [`tile_mismatch ${TILE}`]],
    ['a redirect', { status: 301 }, 74, [`object_unreadable ${TILE}`]],
    ['an error', { status: 500 }, 74, [`object_unreadable ${TILE}`]],
  ])(
    'a static host that sends %s in place of a tile is reported, and the audit ends',
    async (_what, response, code, found) => {
      const host = await serveFiles(sound, (requested) => (requested === TILE ? response : undefined))
      expect(await audit(host.url, temporaryFolder())).toMatchObject({ code, found })
    },
  )

  test.each(['<!doctype html><title>Start</title>', `<html>${'x'.repeat(2_000)}`])(
    'a static host that sends its start page %.15s… for every missing file is not audited',
    async (body) => {
      const host = await serveFiles(sound, (path) => (sound.has(path) ? undefined : { status: 200, body }))
      const { code, report } = await audit(host.url, temporaryFolder())
      const reason: unknown = expect.stringContaining('must answer 404 for a file that it does not have')
      expect([code, report]).toMatchObject([69, { findings: [], reason }])
    },
  )

  test('a static host whose checkpoint has no entry is not sound if its index has entries', async () => {
    const emptied = changed(sound, { [CHECKPOINT]: noteOf(archive, 0), 'ledger/legacy.ndjson': null })
    expect(await auditFiles(emptied)).toMatchObject({ code: 65, found: ['digest_mismatch index.json'] })
  })

  test('a static host whose checkpoint is longer than any, or names too many entries, is not audited', async () => {
    const long = changed(sound, { [CHECKPOINT]: new Uint8Array(100_000) })
    expect((await auditFiles(long)).found).toEqual([`note_invalid ${CHECKPOINT}`])
    const huge = `${LOG_NAME}\n900000000\n${Buffer.alloc(32).toString('base64')}\n`
    const many = await auditFiles(changed(sound, { [CHECKPOINT]: signNote(huge, HOST_KEY) }))
    const reason: unknown = expect.stringContaining('900000000 entries')
    expect(many).toMatchObject({ code: 69, report: { reason } })
  })
})

describe('a damaged server', () => {
  const app = openSampleApp(archive, {}, logFilesOf(archive))
  const auditInstead = async (files: Record<string, string>): Promise<Audit> =>
    audit((await serveInstead(app, changed(new Map(), files))).url, temporaryFolder())

  test('a server whose ledger is not the signed one is forked, although its chain holds', async () => {
    const path = 'api/feed/history/ledger'
    const text = forked.contents.rows.map((row) => `${leafText(row)}\n`).join('')
    const { code, found } = await auditInstead({ [path]: text })
    expect([code, found]).toEqual([65, expect.arrayContaining([`log_forked ${path}`])])
  })

  test('a server whose note has an invalid signature is not sound, and its ledger is audited as before', async () => {
    expect(await auditInstead({ [CHECKPOINT]: noteOf(archive, size, OTHER_KEY) })).toMatchObject({
      code: 65,
      found: [`note_invalid ${CHECKPOINT}`],
      report: { publications: 7, log: null },
    })
  })

  test('a server that finds its log damaged is not sound', async () => {
    const url = await server(rewritten(archive, 3, { attempts: 4 }))
    const found = [`note_invalid ${CHECKPOINT}`]
    expect(await audit(url, temporaryFolder())).toMatchObject({ code: 65, found })
  })
})

describe('checkpoints seen earlier', () => {
  test('a host that shows another history than before is forked, and both notes are written out and shown', async () => {
    const home = temporaryFolder()
    expect((await audit(await hostOf(sound), home)).code).toBe(0)
    for (const covered of [size, size - 1]) {
      const url = await hostOf(await staticFiles(forked, covered))
      const { code, found, report, stderr } = await audit(url, home)
      expect([code, found]).toEqual([65, [`log_forked ${CHECKPOINT}`]])
      const notes = [noteOf(archive), noteOf(forked, covered)]
      const fork = report.log?.fork ?? []
      expect(fork.map(({ note }) => note)).toEqual(notes)
      expect(fork.map(({ file }) => readFileSync(file, 'utf8'))).toEqual(notes)
      for (const { file } of fork) expect(stderr).toContain(file)
      const env = { XDG_STATE_HOME: join(home, 'state') }
      const { stdout } = await run(['verify-archive', '--url', url], { cwd: home, env })
      for (const note of notes) expect(stdout).toContain(note)
    }
    expect(keptNote(home)).toBe(noteOf(archive))
  })

  test('two hosts with the same checkpoints have one history, and a host that lags is sound', async () => {
    const home = temporaryFolder()
    const older = await hostOf(await staticFiles(archive, size - 1))
    for (const url of [older, await hostOf(sound)]) expect((await audit(url, home)).code).toBe(0)
    const { code, stderr, report } = await audit(older, home)
    expect([code, report.log?.behind]).toEqual([0, 1])
    expect(stderr).toBe(
      `${older} is 1 entry behind the newest checkpoint that was seen of ${LOG_NAME}\n${notChecked(older)}`,
    )
    expect(keptNote(home)).toBe(noteOf(archive))
  })

  test('--state names the folder of seen checkpoints, and a host with damage is not remembered', async () => {
    const home = temporaryFolder()
    await audit(await hostOf(changed(sound, { [TILE]: null })), home)
    expect(readdirSync(home)).toEqual([])
    expect((await audit(await hostOf(sound), home, '--state', 'seen')).code).toBe(0)
    expect(readdirSync(home)).toEqual(['seen'])
  })

  test('a host whose key differs from the one kept at first use is not sound', async () => {
    const home = homeWithPolicy()
    await audit(await hostOf(sound), home)
    const url = await hostOf(changed(sound, ofKey(OTHER_KEY)))
    for (const flags of [[], ['--policy', 'policy']])
      expect((await audit(url, home, ...flags)).found).toEqual([`note_invalid ${CHECKPOINT}`])
  })

  test.each([[['--policy', 'policy']], [[]]])(
    'a host whose signed log vanishes or gets another name is not sound, with the flags %j after an earlier audit',
    async (flags) => {
      const home = homeWithPolicy()
      let [app, files] = [openSampleApp(archive, {}, logFilesOf(archive)), new Map() as Files]
      const { url } = await serveInstead(
        { request: (...args) => app.request(...args) },
        { get: (path) => files.get(path) },
      )
      expect((await audit(url, home)).code).toBe(0)
      const other = ofKey(signerKey('other.example/tlog/year', new Uint8Array(32).fill(9)))
      files = changed(files, other)
      expect((await audit(url, home, ...flags)).found).toEqual([`note_invalid ${CHECKPOINT}`])
      ;[app, files] = [openSampleApp(archive), new Map()]
      const { code, found, report } = await audit(url, home, ...flags)
      expect([code, found]).toEqual([65, [`note_invalid ${CHECKPOINT}`]])
      expect(report.findings[0]?.actual).toBeNull()
    },
  )

  test('a checkpoint of another key that an earlier audit kept accuses no host of the given policy', async () => {
    const home = homeWithPolicy()
    const other = changed(await staticFiles(forked), ofKey(OTHER_KEY, forked))
    expect((await audit(await hostOf(other), home)).code).toBe(0)
    const url = await hostOf(sound)
    const { code, found, stderr } = await audit(url, home, '--policy', 'policy')
    expect([code, found, stderr]).toEqual([0, [], expect.stringContaining('proves nothing')])
    expect(keptNote(home)).toBe(noteOf(archive))
    expect((await audit(url, home)).stderr).toBe(notChecked(url))
  })
})
