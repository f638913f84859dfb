import { chmodSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
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

/** A server over an archive whose newest checkpoint covers the first `size` entries; returns its URL. */
async function server(archive: SampleArchive, size?: number): Promise<string> {
  const { url } = await listenLocally(openSampleApp(archive, {}, logFilesOf(archive, size)))
  return url
}

/** File of the log in the state folder of `home`. */
const stateOf = (home: string): string => join(home, 'state', 'dash', 'logs', `${sha256Hex(LOG_NAME)}.txt`)

/** The note in that file. */
const keptNote = (home: string): string =>
  /^[^]*?\n\n[^]*?\n(?=\n)/.exec(readFileSync(stateOf(home), 'utf8'))?.[0] ?? ''

const NOT_CHECKED = '_headers, pages and feeds of URL are not signed and were not checked\n'

const FIRST_USE = `the key of the log ${LOG_NAME} is trusted on first use, as URL names it; to verify it, give a policy from another source with --policy\n`

const archive = sampleArchive(4)
const { rows } = archive.contents
const size = rows.length
/** The same log, except for the reason of its gap. */
const forked = rewritten(archive, 3, { reason: 'attempts_spent', attempts: 3 })

describe('a sound host', () => {
  test('a server with a signed log is sound, and its checkpoint is kept for the next audit', async () => {
    const home = temporaryFolder()
    const url = await server(archive)
    const first = await audit(url, home)
    expect([first.code, first.found, first.stderr]).toEqual([0, [], FIRST_USE.replace('URL', url)])
    expect(first.report.log).toMatchObject({
      origin: LOG_NAME,
      size,
      trust: 'first use',
      behind: 0,
      fork: null,
    })
    expect(keptNote(home)).toBe(noteOf(archive))
    const second = await audit(url, home)
    expect([second.code, second.stderr, second.report.log]).toMatchObject([0, '', { trust: 'kept' }])
    expect(readdirSync(join(home, 'state', 'dash', 'logs'))).toEqual([`${sha256Hex(LOG_NAME)}.txt`])
  })

  test('a static host below a prefix is sound without an API, and every publication is fetched', async () => {
    const host = await serveFiles(staticFiles(archive))
    const { code, found, report } = await audit(host.url, temporaryFolder())
    expect([code, found]).toEqual([0, []])
    expect(report).toMatchObject({ publications: 7, objects: 7, gaps: 1, head: { seq: size } })
  })

  test('a host of the policy of --policy is sound without a note', async () => {
    const home = temporaryFolder()
    writeFileSync(join(home, 'trusted'), HOST_POLICY)
    const { code, stderr, report } = await audit(await server(archive), home, '--policy', 'trusted')
    expect([code, stderr, report.log]).toMatchObject([0, '', { trust: 'policy' }])
  })

  test('a static host is compared with a kept head', async () => {
    const home = temporaryFolder()
    const host = await serveFiles(staticFiles(archive))
    writeFileSync(join(home, 'kept.json'), formatHead(headAt(rows, 3)))
    expect((await audit(host.url, home, '--expect-head', 'kept.json')).code).toBe(0)
    writeFileSync(join(home, 'kept.json'), formatHead(headAt(forked.contents.rows, 3)))
    expect((await audit(host.url, home, '--expect-head', 'kept.json')).found).toEqual([
      'head_mismatch kept.json',
    ])
  })

  test('a static host may list entries after its checkpoint in its index, and a note says so', async () => {
    const files = staticFiles(archive, size - 1)
    files.set('index.json', staticFiles(archive).get('index.json') ?? new Uint8Array())
    const { code, stderr } = await audit((await serveFiles(files)).url, temporaryFolder())
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('index.json lists 1 entries that are not in the checkpoint of '),
    ])
  })
})

const flipped = (bytes: Uint8Array | undefined, at = 40): Uint8Array =>
  (bytes ?? new Uint8Array()).map((byte, index) => (index === at ? byte ^ 1 : byte))

const OTHER_KEY = signerKey(LOG_NAME, new Uint8Array(32).fill(8))

const OTHER_POLICY = formatPolicy([OTHER_KEY], null)

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

const newest = `objects/sha256/${rows.at(-1)?.sha256?.slice(0, 2)}/${rows.at(-1)?.sha256}.json`

describe('a damaged static host', () => {
  test.each([
    ['changed', 'tlog/year/tile/0/000.p/7', 'tile_mismatch'],
    ['changed', 'tlog/year/policy', 'note_invalid'],
    ['changed', 'index.json', 'digest_mismatch'],
    ['changed', newest, 'digest_mismatch'],
    ['missing', 'tlog/year/tile/entries/000.p/7', 'tile_mismatch'],
    ['missing', 'tlog/year/checkpoint', 'note_invalid'],
    ['missing', 'ledger/legacy.ndjson', 'digest_mismatch'],
    ['missing', newest, 'object_missing'],
  ])('a static host with a %s %s is not sound, and a finding names the file', async (what, path, finding) => {
    const files = staticFiles(archive)
    if (what === 'changed') files.set(path, flipped(files.get(path)))
    else files.delete(path)
    const { code, found } = await audit((await serveFiles(files)).url, temporaryFolder())
    const expected = `${finding} ${path}`
    expect([code, found]).toEqual([65, what === 'changed' ? [expected] : expect.arrayContaining([expected])])
  })

  test('a static host whose entries and tiles agree with each other and not with the checkpoint is forked', async () => {
    const files = staticFiles(forked)
    files.set('tlog/year/checkpoint', encode(noteOf(archive)))
    const { code, found } = await audit((await serveFiles(files)).url, temporaryFolder())
    expect([code, found]).toEqual([65, ['log_forked tlog/year/checkpoint']])
  })

  test('a static host that sends longer files, redirects and errors is reported, and the audit ends', async () => {
    const path = 'tlog/year/tile/0/000.p/7'
    const files = staticFiles(archive)
    const answers = [
      [{ status: 200, body: new Uint8Array(20_000_000) }, 69, []],
      [{ status: 200, body: new Uint8Array(20_000) }, 65, [`tile_mismatch ${path}`]],
      [{ status: 301 }, 74, [`object_unreadable ${path}`]],
      [{ status: 500 }, 74, [`object_unreadable ${path}`]],
    ] as const
    for (const [response, code, expected] of answers) {
      const host = await serveFiles(files, (requested) => (requested === path ? response : undefined))
      const { code: actual, found } = await audit(host.url, temporaryFolder())
      expect([actual, found]).toEqual([code, expected])
    }
  })

  test('a static host whose checkpoint is longer than any, or names too many entries, is not audited', async () => {
    const [many, long] = [new Map(staticFiles(archive)), new Map(staticFiles(archive))]
    long.set('tlog/year/checkpoint', new Uint8Array(100_000))
    const huge = `${LOG_NAME}\n900000000\n${Buffer.alloc(32).toString('base64')}\n`
    many.set('tlog/year/checkpoint', encode(signNote(huge, HOST_KEY)))
    expect((await audit((await serveFiles(long)).url, temporaryFolder())).found).toEqual([
      'note_invalid tlog/year/checkpoint',
    ])
    const { code, report } = await audit((await serveFiles(many)).url, temporaryFolder())
    expect([code, report]).toMatchObject([69, { reason: expect.stringContaining('900000000 entries') }])
  })
})

describe('a damaged server', () => {
  const app = openSampleApp(archive, {}, logFilesOf(archive))

  test('a server whose ledger is not the signed one is forked, although its chain holds', async () => {
    const path = 'api/feed/history/ledger'
    const text = forked.contents.rows.map((row) => `${leafText(row)}\n`).join('')
    const { code, found } = await audit(
      (await serveInstead(app, new Map([[path, encode(text)]]))).url,
      temporaryFolder(),
    )
    expect([code, found]).toEqual([65, expect.arrayContaining([`log_forked ${path}`])])
  })

  test('a server whose note has an invalid signature is not sound, and its ledger is audited as before', async () => {
    const path = 'tlog/year/checkpoint'
    const files = new Map([[path, encode(noteOf(archive, size, OTHER_KEY))]])
    const { code, found, report } = await audit((await serveInstead(app, files)).url, temporaryFolder())
    expect([code, found, report]).toMatchObject([
      65,
      [`note_invalid ${path}`],
      { publications: 7, log: null },
    ])
  })

  test('a server that finds its log damaged is not sound', async () => {
    const broken = openSampleApp(rewritten(archive, 3, { attempts: 4 }), {}, logFilesOf(archive))
    const { code, found } = await audit((await listenLocally(broken)).url, temporaryFolder())
    expect([code, found]).toEqual([65, ['note_invalid tlog/year/checkpoint']])
  })
})

describe('checkpoints seen earlier', () => {
  test('a host that shows another history than before is forked, and both notes are written out and shown', async () => {
    const home = temporaryFolder()
    expect((await audit((await serveFiles(staticFiles(archive))).url, home)).code).toBe(0)
    for (const other of [staticFiles(forked), staticFiles(forked, size - 1)]) {
      const { url } = await serveFiles(other)
      const { code, found, report, stderr } = await audit(url, home)
      expect([code, found]).toEqual([65, ['log_forked tlog/year/checkpoint']])
      const notes = [noteOf(archive), Buffer.from(other.get('tlog/year/checkpoint') ?? []).toString()]
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
    const [newer, older] = [
      await serveFiles(staticFiles(archive)),
      await serveFiles(staticFiles(archive, size - 2)),
    ]
    expect((await audit(older.url, home)).code).toBe(0)
    expect((await audit(newer.url, home)).code).toBe(0)
    const { code, stderr, report } = await audit(older.url, home)
    expect([code, report.log?.behind]).toEqual([0, 2])
    expect(stderr).toBe(
      `${older.url} is 2 entries behind the newest checkpoint that was seen of ${LOG_NAME}\n${NOT_CHECKED.replace('URL', older.url)}`,
    )
    expect(keptNote(home)).toBe(noteOf(archive))
  })

  test('--state names the folder of seen checkpoints', async () => {
    const home = temporaryFolder()
    const { url } = await serveFiles(staticFiles(archive))
    expect((await audit(url, home, '--state', 'seen')).code).toBe(0)
    expect(readdirSync(home)).toEqual(['seen'])
  })

  test('a host with damage is not remembered', async () => {
    const home = temporaryFolder()
    const files = staticFiles(archive)
    files.delete('tlog/year/tile/0/000.p/7')
    await audit((await serveFiles(files)).url, home)
    expect(readdirSync(home)).toEqual([])
  })

  test('a host whose key differs from the one kept at first use is not sound', async () => {
    const home = temporaryFolder()
    await audit((await serveFiles(staticFiles(archive))).url, home)
    const files = staticFiles(archive)
    files.set('tlog/year/checkpoint', encode(noteOf(archive, size, OTHER_KEY)))
    files.set('tlog/year/policy', encode(OTHER_POLICY))
    const { url } = await serveFiles(files)
    expect((await audit(url, home)).found).toEqual(['note_invalid tlog/year/checkpoint'])
    writeFileSync(join(home, 'policy'), HOST_POLICY)
    expect((await audit(url, home, '--policy', 'policy')).found).toEqual([
      'note_invalid tlog/year/checkpoint',
    ])
  })

  test.each([[['--policy', 'policy']], [[]]])(
    'a host whose signed log vanishes or gets another name is not sound, with the flags %j after an earlier audit',
    async (flags) => {
      const home = temporaryFolder()
      writeFileSync(join(home, 'policy'), HOST_POLICY)
      const signed = openSampleApp(archive, {}, logFilesOf(archive))
      let app = signed
      const changing: Pick<typeof app, 'request'> = { request: (...args) => app.request(...args) }
      const files = new Map<string, Uint8Array>()
      const { url } = await serveInstead(changing, files)
      expect((await audit(url, home)).code).toBe(0)
      app = openSampleApp(archive)
      const vanished = await audit(url, home, ...flags)
      expect([vanished.code, vanished.found]).toEqual([65, ['note_invalid tlog/year/checkpoint']])
      expect(vanished.report.findings[0]?.actual).toBeNull()
      app = signed
      const other = signerKey('other.example/tlog/year', new Uint8Array(32).fill(9))
      files.set('tlog/year/checkpoint', encode(noteOf(archive, size, other)))
      files.set('tlog/year/policy', encode(formatPolicy([other], null)))
      expect((await audit(url, home, ...flags)).found).toEqual(['note_invalid tlog/year/checkpoint'])
    },
  )

  test('a checkpoint of another key that an earlier audit kept accuses no host of the given policy', async () => {
    const home = temporaryFolder()
    const files = staticFiles(forked)
    files.set('tlog/year/checkpoint', encode(noteOf(forked, size, OTHER_KEY)))
    files.set('tlog/year/policy', encode(OTHER_POLICY))
    expect((await audit((await serveFiles(files)).url, home)).code).toBe(0)
    writeFileSync(join(home, 'policy'), HOST_POLICY)
    const { url } = await serveFiles(staticFiles(archive))
    const { code, found, stderr } = await audit(url, home, '--policy', 'policy')
    expect([code, found, stderr]).toEqual([0, [], expect.stringContaining('proves nothing')])
    expect(keptNote(home)).toBe(noteOf(archive))
    expect((await audit(url, home)).stderr).toBe(NOT_CHECKED.replace('URL', url))
  })

  test('a damaged state file ends the audit with 74 and accuses no host', async () => {
    const home = temporaryFolder()
    const { url } = await serveFiles(staticFiles(archive))
    await audit(url, home)
    chmodSync(stateOf(home), 0o644)
    writeFileSync(stateOf(home), flipped(readFileSync(stateOf(home))))
    const { code, found, report } = await audit(url, home)
    expect([code, found]).toEqual([74, []])
    expect(report).toMatchObject({
      reason: expect.stringMatching(
        new RegExp(`^the state file ${stateOf(home)} is damaged: .* remove it to forget this log`),
      ),
    })
  })
})

test('--policy and --state are refused without --url', async () => {
  for (const flag of ['policy', 'state']) {
    const { code, stderr } = await run(['verify-archive', `--${flag}`, 'x'], { cwd: temporaryFolder() })
    expect([code, stderr]).toEqual([64, expect.stringContaining(`--${flag} is for the log of another host`)])
  }
})
