import { writeFileSync, cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { formatHead, lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { headAt } from '../domain/year/ledger-rows.ts'
import { dash, PROGRAM, serve, temporaryFolder } from '../support/dash.ts'
import { localSource } from '../support/local-source.ts'
import { openSampleApp, sampleArchive } from '../support/sample-archive.ts'
import { openWorkspace } from '../support/workspace.ts'
import { examplesOf, isRun } from './examples.ts'
import { SAMPLE_ARCHIVE } from '../support/legacy-archive.ts'
import { storiesOf } from '../support/signals.ts'
import { sealRun } from '../../src/domain/models/stored-run.ts'
import { sampleCandidates, sampleRun } from '../domain/models/free-models.ts'

/** Returns the flag with which a refused run of `publish-year` confirms its missed days; empty if none is asked for. */
function confirmationOf({ stderr }: { stderr: string }): string[] {
  return /--record-gaps \d+/.exec(stderr)?.[0].split(' ') ?? []
}

/** The script that the guide of auditing explains. */
const AUDIT = readFileSync(fileURLToPath(new URL('../../docs/audit.sh', import.meta.url)), 'utf8')

/** A stranger runs the script of the guide at one host. */
function audit(
  step: 'keep' | 'check',
  folder: string,
  base: string,
  env: Record<string, string> = {},
): Promise<ShellResult> {
  return shell(AUDIT, folder, { BASE: base, ...env }, [step])
}

test('the audit script never overwrites a kept head, keeps nothing else, and cannot compare without one', async () => {
  const head = '{"seq":1,"leaf":"0a","time":"2026-01-02T00:10:00.000Z"}'
  let moved = true
  const { url } = await localSource((_question, response) =>
    moved ? void response.writeHead(301).end('<html>moved</html>') : void response.end(`${head}\n`),
  )
  const folder = temporaryFolder()
  const unkept = await audit('check', folder, url)
  expect([unkept.code, unkept.lines]).toEqual([1, [expect.stringMatching(/kept-head\.json is missing/)]])
  const elsewhere = await audit('keep', folder, url)
  expect([elsewhere.code, elsewhere.lines]).toEqual([1, [expect.stringMatching(/^FAILED: .* sends no head/)]])
  moved = false
  expect(await audit('keep', folder, `${url}/`)).toMatchObject({ code: 0, lines: [head] })
  const again = await audit('keep', folder, url)
  expect([again.code, again.lines]).toEqual([1, [expect.stringMatching(/kept-head\.json exists/)]])
})

const BUSY = '{"error":"busy"}'

describe('the audit script, at an archive with legacy publications, a gap and two of one time,', () => {
  const archive = sampleArchive()
  const { rows } = archive.contents
  const last = rows.at(-1)
  const newestAt = new Date(last?.publishedAt ?? 0).toISOString()

  /**
   * The script's output for a host that changes some of its responses.
   *
   * @param kept the head that was kept; by default that of the seal
   */
  async function verdict(
    change: (body: string, target: string) => string = (body) => body,
    kept = headAt(rows, 2),
    env: Record<string, string> = {},
  ): Promise<ShellResult> {
    const app = openSampleApp(archive)
    const host = await localSource(async ({ target }, response) => {
      const published = await app.request(`http://dash.test${target}`)
      const body = change(await published.text(), target)
      response.writeHead(body === BUSY ? 429 : published.status).end(body)
    })
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'kept-head.json'), formatHead(kept))
    return audit('check', folder, host.url, env)
  }

  test('the audit script proves a sound host, or its newest publication alone', async () => {
    const { code, lines } = await verdict()
    expect([code, lines.at(-1)]).toEqual([0, 'OK: 6 entries hold, 5 publications are what they say'])
    const newest = await verdict(undefined, undefined, { NEWEST: '1' })
    expect([newest.code, newest.lines.at(-1)]).toEqual([0, expect.stringMatching(/^OK: .* 1 publ/)])
  })

  test('the audit script detects that the kept entry is gone or was changed', async () => {
    for (const changed of [{ leaf: '0'.repeat(64) }, { seq: 7 }]) {
      const { code, lines } = await verdict(undefined, { ...headAt(rows, 6), ...changed })
      expect([code, lines.at(-1)]).toEqual([1, expect.stringMatching(/^FAILED: the entry you kept is gone/)])
    }
  })

  const lie =
    (end: string, change: (body: string) => string) =>
    (body: string, target: string): string =>
      target.endsWith(end) ? change(body) : body

  test.each<[what: string, change: Parameters<typeof verdict>[0], line: RegExp]>([
    [
      'an edited entry',
      lie('/ledger', (body) => body.replace('"missed"', '"attempts_spent"')),
      /^FAILED: .*entry 4 does not continue/,
    ],
    [
      'an edited last entry',
      lie('/ledger', (body) => body.replace(`${last?.sha256}`, '0'.repeat(64))),
      /^FAILED: .*the head the host shows is not in its ledger/,
    ],
    [
      'a head that is two entries behind',
      lie('/head', () => formatHead(headAt(rows, 4))),
      /^FAILED: .*the newest head of the host is older/,
    ],
    [
      'an edited legacy ledger',
      lie('/legacy', (body) => body.replace('2026-01-01', '2026-01-02')),
      /^FAILED: .*the legacy ledger does not match its seal/,
    ],
    [
      'an answer that is none',
      lie(newestAt, () => BUSY),
      /^FAILED: no answer about the body at .*: status 429/,
    ],
    ['another body', lie(newestAt, (body) => `${body} `), /^FAILED: .*another body at/],
    [
      'another selection',
      lie('.999Z', (body) => (body.includes('2026-01-06') ? `${body} ` : body)),
      /^FAILED: .*another selection before/,
    ],
  ])('the audit script detects %s', async (_what, change, line) => {
    const { code, lines } = await verdict(change)
    expect([code, lines.at(-1)]).toEqual([1, expect.stringMatching(line)])
  })
})

interface ShellResult {
  code: number | null
  /** Standard output and standard error, as they came. */
  lines: string[]
}

/** The shell blocks of a page of the documents that a test can run, in their order. */
function shellBlocks(page: string): string[] {
  return examplesOf(page)
    .filter((example) => example.language === 'sh' && isRun(example))
    .map(({ text }) => text)
}

/** Runs the script in a shell with its own folder and the usual tools only. */
async function shell(
  script: string,
  folder: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
): Promise<ShellResult> {
  const child = spawn('/bin/sh', ['-s', ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  child.stdin.end(script)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, lines: output.trimEnd().split('\n') }
}

/** The program that the guide calls `dash`. */
const DASH = `dash() { "${process.execPath}" "${PROGRAM}" "$@"; }\nset -e\n`

const [backUp = '', copyFeed = '', keepHead = '', restore = '', ...others] = shellBlocks('docs/backup.md')

/** A folder with a data folder in it that holds an older archive and yesterday's publication. */
async function archiveFolder(): Promise<string> {
  const folder = temporaryFolder()
  const data = ['--data-dir', join(folder, 'dash-data')]
  const stdin = storiesOf(lastCompleteDay(Date.now()), 5)
  for (const [args, input] of [
    [['import', 'archive', SAMPLE_ARCHIVE, ...data], ''],
    [['import', 'signals', '-', ...data], stdin],
  ] as const) {
    expect(await dash(args, { stdin: input })).toMatchObject({ code: 0 })
  }
  return folder
}

/** Publishes, and confirms the days since the older archive as gaps, by the number that the refusal names. */
async function publish(folder: string): Promise<void> {
  const args = ['publish-year', '--once', '--data-dir', join(folder, 'dash-data')]
  const confirmed = [...args, ...confirmationOf(await dash(args))]
  expect(await dash(confirmed)).toMatchObject({ code: 0 })
}

async function answerOf(dataDir: string): Promise<Buffer> {
  const { url } = await serve(['--data-dir', dataDir])
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}

test('the drill restores a sound archive that responds with the same bytes', async () => {
  expect(others).toEqual([])
  const folder = await archiveFolder()
  await publish(folder)
  const result = await shell([DASH, backUp, copyFeed, keepHead, restore].join('\n'), folder)
  expect(result.lines.at(-1)).toMatch(/^sound: 7 publications, 7 objects/)
  expect(result.code).toBe(0)
  expect(await answerOf(join(folder, 'dash-restored'))).toEqual(await answerOf(join(folder, 'dash-data')))

  const again = await shell([DASH, backUp].join('\n'), folder)
  expect(again).toMatchObject({ code: 0, lines: [expect.stringContaining('0 objects, 0 ledger rows')] })
})

test('the drill detects a backup older than the kept head', async () => {
  const folder = await archiveFolder()
  expect(await shell([DASH, backUp].join('\n'), folder)).toMatchObject({ code: 0 })
  const older = join(folder, 'older')
  cpSync(join(folder, 'dash-backup'), older, { recursive: true })
  await publish(folder)
  expect(await shell([DASH, backUp, copyFeed, keepHead].join('\n'), folder)).toMatchObject({ code: 0 })
  cpSync(join(folder, 'dash-backup', 'feed.db'), join(older, 'feed.db'))
  const result = await shell([DASH, restore].join('\n'), folder, { BACKUP: older })
  expect(result.code).toBe(65)
  expect(result.lines.join('\n')).toMatch(/head_mismatch \.\/kept-head\.json: .*the ledger ends at entry/)
})

/** The shell blocks of the guide: the questions, the poll. */
const [questions = '', poll = ''] = shellBlocks('docs/free-models.md')

const hasTools = ['jq', 'curl'].every((tool) => spawnSync(tool, ['--version']).status === 0)

test.skipIf(!hasTools)('the requests of the guide get the responses it shows', async () => {
  const workspace = await openWorkspace()
  const now = Date.now()
  const run = sampleRun({ now, candidates: sampleCandidates(now).slice(0, 2) })
  await workspace.recommendations.put(run.rankingVersion, sealRun(run))
  const { url } = await serve(['--data-dir', workspace.folder])
  const folder = temporaryFolder()
  const ask = (script: string) => shell(`base=${url}\n${script.replace(/^base=.*$/m, '')}`, folder, {})
  const { code, lines } = await ask(`${questions}\necho done`)
  expect(code).toBe(0)
  expect(lines).toEqual([
    'maker/good:free',
    expect.stringMatching(/^1\t\d+\tmaker\/good:free$/),
    ...run.notes,
    'done',
  ])

  expect((await ask(poll)).code).toBe(0)
  const kept = join(folder, 'top-models.json')
  expect(JSON.parse(readFileSync(kept, 'utf8'))).toMatchObject({ count: 2, seed: false })
  // Without a change, nothing is downloaded and the kept files stay; so they do if a download breaks off.
  const again = await ask(`${poll}\nls`)
  expect(again.lines).toEqual(['new-tag', 'tag', 'top-models.json'])
  const broken = await ask(`curl() { command curl "$@"; return 18; }\nrm tag\n${poll}\nls`)
  expect(broken.lines).toEqual(['new-tag', 'new.json', 'top-models.json'])
  expect(existsSync(kept)).toBe(true)
})
