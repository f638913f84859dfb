import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'
import { dash, filledFolder, run, temporaryFolder } from '../../support/dash.ts'
import { addDays } from '../../../src/domain/time.ts'
import { lastCompleteDay } from '../../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../../src/jobs/publish-report.ts'
import { openCheckpoint, parseVerifierKey } from '../../../src/domain/year/log/signed-note.ts'
import type { VerifierKey } from '../../../src/domain/year/log/signed-note.ts'
import type { CheckpointReport } from '../../../src/jobs/sign-checkpoint.ts'

async function publish(data: string, args: string[] = [], env: Record<string, string> = {}) {
  const finished = await run(['publish-year', '--data-dir', data, '--json', '--once', ...args], { env })
  return { ...finished, report: JSON.parse(finished.stdout) as PublishReport }
}

describe('publish-year', () => {
  test('a day is rehearsed, published once with its items and covered days, and the next run says so', async () => {
    const data = await filledFolder()
    const args = ['publish-year', '--data-dir', data]
    const printed = `publish ${lastCompleteDay(Date.now())}: 5 items, 1 of 365 days`
    const rehearsed = `would ${printed}; nothing was written\n`
    expect(await run([...args, '--dry-run'])).toEqual({ code: 0, stdout: rehearsed, stderr: '' })
    const first = await publish(data)
    expect(first).toMatchObject({
      code: 0,
      stderr: '',
      report: { outcome: 'published', attempt: 1, items: { hackerNews: 5 } },
    })
    expect(Object.keys(first.report).join(' ')).toBe(
      'job outcome asOfDay attempt publicationId sha256 byteSize publishedAt items distinctItems coverage gapsRecorded durationMs reason',
    )
    expect(await publish(data)).toMatchObject({ code: 0, report: { outcome: 'already-published' } })
    expect(await run([...args, '--quiet'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('the gaps of a run are in its result, and more than a few need a flag', async () => {
    const last = lastCompleteDay(Date.now())
    const workspace = await openWorkspace()
    for (const day of [addDays(last, -9), last]) await workspace.feed.importSignals(sampleSignals(day))
    await publishDays(workspace, [addDays(last, -9)])
    workspace.close()
    const args = ['publish-year', '--once', '--data-dir', workspace.folder]
    const refused = await run(args)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^error: 8 missed days /)])
    const confirmed = [...args, '--record-gaps', '8']
    const rehearsed = await run([...confirmed, '--dry-run'])
    expect(rehearsed.stdout).toMatch(/; 8 gaps would be recorded; nothing was written\n$/)
    const stdout = `published ${last}: 9 items, 4 of 365 days; 8 gaps recorded\n`
    expect(await run(confirmed)).toEqual({ code: 0, stdout, stderr: '' })
  })

  test('a dry run leaves no file, whether it is refused or not', async () => {
    const [cwd, empty] = [temporaryFolder(), temporaryFolder()]
    for (const [code, ...flags] of [[1], [0, '--allow-empty']] as const) {
      expect(await run(['publish-year', '--dry-run', ...flags], { cwd })).toMatchObject({ code })
      expect(await run(['publish-year', '--dry-run', '--data-dir', empty, ...flags])).toMatchObject({ code })
    }
    expect([readdirSync(cwd), readdirSync(empty)]).toEqual([[], []])
  })

  test('an unavailable source ends an attempt with 69, and the third one and all later ones with 3', async () => {
    const data = await filledFolder({ titleProvenance: undefined })
    const ends: unknown[] = []
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const { code, report } = await publish(data, [], { DASH_HN_URL: 'http://127.0.0.1:1/v0' })
      ends.push(`${code} ${report.outcome}`)
    }
    expect(ends).toEqual(['69 failed', '69 failed', '3 gap', '3 gap'])
  })

  test('a publication whose head could not be written is reported, and ends with 74', async () => {
    const data = await filledFolder()
    const heads = join(data, 'objects', 'heads')
    mkdirSync(heads, { mode: 0o555, recursive: true })
    const { code, stdout, stderr } = await dash(['publish-year', '--json', '--data-dir', data], {
      boundByModes: true,
    })
    const reason: unknown = expect.stringContaining('its head could not be written')
    expect([code, JSON.parse(stdout)]).toMatchObject([74, { outcome: 'published', attempt: 1, reason }])
    expect(stderr).toContain('the next run writes it')
  })
})

const BASE = { DASH_BASE_URL: 'https://dash.example' }
const ORIGIN = 'dash.example/tlog/year'

interface NewKey {
  path: string
  vkey: string
  env: Record<string, string>
}

/** Creates a key in a new folder and returns it with the settings that name it. */
async function newKey(): Promise<NewKey> {
  const path = join(temporaryFolder(), 'log.key')
  const { code, stdout } = await run(['log-key', 'new', path, '--json'], { env: BASE })
  expect(code).toBe(0)
  const { vkey } = JSON.parse(stdout) as NewKey
  return { path, vkey, env: { ...BASE, DASH_LOG_KEY_FILE: path } }
}

describe('log-key new', () => {
  test('log-key new uses DASH_LOG_KEY_FILE and DASH_LOG_ORIGIN, and refuses to overwrite a key', async () => {
    const path = join(temporaryFolder(), 'other.key')
    const env = { DASH_LOG_KEY_FILE: path, DASH_LOG_ORIGIN: 'log.example/2' }
    const { code, stdout } = await run(['log-key', 'new'], { env })
    const created = `created ${path}; its verifier key is log.example/2+`
    expect([code, stdout]).toEqual([0, expect.stringContaining(created)])
    const again = await run(['log-key', 'new'], { env })
    expect([again.code, again.stderr]).toEqual([64, expect.stringContaining('already exists')])
  })

  test.each([
    [64, BASE, [], 'no key file given'],
    [64, BASE, ['missing/x.key'], 'missing does not exist; create it, or choose another path'],
    [78, {}, ['x.key'], 'set DASH_BASE_URL or DASH_LOG_ORIGIN'],
    [78, { DASH_LOG_ORIGIN: 'https://dash.example' }, ['x.key'], 'without scheme'],
  ])('log-key new ends with %i for the settings %j and the arguments %j', async (code, env, args, says) => {
    const finished = await run(['log-key', 'new', ...args], { env, cwd: temporaryFolder() })
    expect([finished.code, finished.stderr]).toEqual([code, expect.stringContaining(says)])
  })
})

describe('checkpoint', () => {
  test('checkpoint signs a ledger that was published without a key, and a second run changes nothing', async () => {
    const data = await filledFolder()
    expect((await run(['publish-year', '--data-dir', data])).code).toBe(0)
    const { env, vkey } = await newKey()
    const first = await run(['checkpoint', '--data-dir', data, '--json'], { env })
    expect(first).toMatchObject({ code: 0, stderr: '' })
    const report = JSON.parse(first.stdout) as CheckpointReport
    expect(report).toMatchObject({ signed: true, reason: null, origin: ORIGIN, size: 1 })
    const stored = (name: string): string => readFileSync(join(data, 'objects/tlog/year', name), 'utf8')
    expect(openCheckpoint(stored('1'), [parseVerifierKey(vkey) as VerifierKey]).problem).toBeNull()
    expect(stored('policy.1')).toBe(`log ${vkey} https://dash.example/tlog/year\nquorum none\n`)
    const stdout = `already signed: ${ORIGIN}, 1 entry, root ${report.root.slice(0, 16)}\n`
    expect(await run(['checkpoint', '--data-dir', data], { env })).toMatchObject({ code: 0, stdout })
  })

  test.each([
    ['without a key', {}, 'no log key is set'],
    ['with a missing key file', { ...BASE, DASH_LOG_KEY_FILE: '/nowhere/log.key' }, 'cannot be read'],
  ])(
    'checkpoint ends with 78 %s, and publish-year ends with 78 if the set key cannot be read',
    async (_what, env, says) => {
      const data = await filledFolder()
      const finished = await run(['checkpoint', '--data-dir', data], { env })
      expect([finished.code, finished.stderr]).toEqual([78, expect.stringContaining(says)])
      const published = await run(['publish-year', '--data-dir', data], { env })
      expect(published.code).toBe('DASH_LOG_KEY_FILE' in env ? 78 : 0)
    },
  )
})

test('doctor reports the size that the key signed last, a missing record, and a second history', async () => {
  const data = await filledFolder()
  const { env } = await newKey()
  const checkOf = async (folder: string): Promise<unknown> => {
    const { stdout } = await run(['doctor', '--offline', '--json', '--data-dir', folder], { env })
    const { findings } = JSON.parse(stdout) as { findings: { check: string }[] }
    return findings.find(({ check }) => check === 'log')
  }
  const detail = (size: number) => `the key of ${ORIGIN} last signed a checkpoint of size ${size}`
  expect(await checkOf(data)).toMatchObject({ verdict: 'ok', detail: detail(0) })
  expect((await run(['publish-year', '--data-dir', data], { env })).code).toBe(0)
  expect(await checkOf(data)).toMatchObject({ verdict: 'ok', detail: detail(1) })
  expect(await checkOf(await filledFolder())).toMatchObject({
    verdict: 'problem',
    detail: expect.stringContaining('the checkpoint has 1 entries, the ledger only 0') as unknown,
    mend: expect.stringContaining('docs/signed-log.md#a-second-history') as unknown,
  })
  rmSync(`${env['DASH_LOG_KEY_FILE']}.signed`)
  const mend: unknown = expect.stringContaining('docs/signed-log.md#keeping-the-key')
  expect(await checkOf(data)).toMatchObject({ verdict: 'problem', mend })
  const audited = await run(['verify-archive', '--data-dir', data], { env })
  expect([audited.code, audited.stderr]).toEqual([
    0,
    expect.stringMatching(/^the ledger was not compared with the record of the log key \(/),
  ])
})
