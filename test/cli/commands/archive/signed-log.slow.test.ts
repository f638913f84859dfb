import { readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openCheckpoint, parseVerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import type { VerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import type { CheckpointReport } from '../../../../src/jobs/sign-checkpoint.ts'
import { preparedFolder } from '../../../support/attack.ts'
import { logSettings } from '../../../support/signed-log.ts'
import { dash, filledFolder, run, temporaryFolder } from '../../../support/dash.ts'

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
  const { code, stdout } = await dash(['log-key', 'new', path, '--json'], { env: BASE })
  expect(code).toBe(0)
  const { vkey } = JSON.parse(stdout) as NewKey
  return { path, vkey, env: { ...BASE, DASH_LOG_KEY_FILE: path } }
}

/** Names of the stored notes: their sizes. */
const notesIn = (data: string): string[] =>
  readdirSync(join(data, 'objects', 'tlog', 'year')).filter((name) => /^\d+$/.test(name))

describe('log-key new', () => {
  test('log-key new creates a key that only its owner can read, and prints its verifier key', async () => {
    const { path, vkey } = await newKey()
    const key = parseVerifierKey(vkey)
    expect(key).toMatchObject({ name: ORIGIN })
    for (const file of [path, `${path}.signed`]) expect(statSync(file).mode & 0o777).toBe(0o400)
    expect(readFileSync(path, 'utf8')).toMatch(
      /^PRIVATE\+KEY\+dash\.example\/tlog\/year\+[0-9a-f]{8}\+[\w+/=]+\n$/,
    )
  })

  test('log-key new uses DASH_LOG_KEY_FILE and DASH_LOG_ORIGIN, and refuses to overwrite a key', async () => {
    const path = join(temporaryFolder(), 'other.key')
    const env = { DASH_LOG_KEY_FILE: path, DASH_LOG_ORIGIN: 'log.example/2' }
    const { code, stdout } = await run(['log-key', 'new'], { env })
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`created ${path}; its verifier key is log.example/2+`),
    ])
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
    const note = readFileSync(join(data, 'objects', 'tlog', 'year', '1'), 'utf8')
    const opened = openCheckpoint(note, [parseVerifierKey(vkey) as VerifierKey])
    expect(opened).toMatchObject({ problem: null, checkpoint: { origin: ORIGIN, size: 1 } })
    expect(report).toMatchObject({
      signed: true,
      reason: null,
      origin: ORIGIN,
      size: 1,
      root: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    })
    const policy = readFileSync(join(data, 'objects', 'tlog', 'year', 'policy.1'), 'utf8')
    expect(policy).toBe(`log ${vkey} https://dash.example/tlog/year\nquorum none\n`)
    const again = await run(['checkpoint', '--data-dir', data], { env })
    expect(again).toMatchObject({
      code: 0,
      stdout: `already signed: ${ORIGIN}, 1 entry, root ${report.root.slice(0, 16)}\n`,
    })
    expect(notesIn(data)).toEqual(['1'])
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

test('doctor reports the size that the key signed last, and a missing record', async () => {
  const { data, env } = { data: await filledFolder(), env: (await newKey()).env }
  const checkOf = async (): Promise<unknown> => {
    const { stdout } = await run(['doctor', '--offline', '--json', '--data-dir', data], { env })
    const { findings } = JSON.parse(stdout) as { findings: { check: string }[] }
    return findings.find(({ check }) => check === 'log')
  }
  expect(await checkOf()).toMatchObject({
    verdict: 'ok',
    detail: `the key of ${ORIGIN} last signed a checkpoint of size 0`,
  })
  rmSync(`${env['DASH_LOG_KEY_FILE']}.signed`)
  const mend: unknown = expect.stringContaining('docs/signed-log.md#keeping-the-key')
  expect(await checkOf()).toMatchObject({ verdict: 'problem', mend })
})

test('publish-year and checkpoint refuse a restored backup that lacks a signed entry, until the entry is recovered', async () => {
  const { folder, day } = await preparedFolder(2)
  const env = logSettings(folder)
  const recordOf = (): string => readFileSync(`${env['DASH_LOG_KEY_FILE']}.signed`, 'utf8')
  const backup = join(temporaryFolder(), 'archive')
  expect((await dash(['copy-archive', '--data-dir', folder, '--to', backup], { env })).code).toBe(0)
  expect(notesIn(backup).sort()).toEqual(['1', '2'])
  expect((await dash(['publish-year', '--once', '--data-dir', folder], { env })).code).toBe(0)
  const record = recordOf()
  expect(record).toContain('\n3\n')

  const restored = join(temporaryFolder(), 'restored')
  expect((await dash(['copy-archive', '--data-dir', backup, '--to', restored], { env })).code).toBe(0)
  const contradiction = 'the checkpoint has 3 entries, the ledger only 2'
  for (const command of [['publish-year', '--once'], ['publish-year', '--dry-run'], ['checkpoint']]) {
    const { code, stderr } = await dash([...command, '--data-dir', restored], { env })
    expect([code, stderr]).toEqual([74, expect.stringContaining(contradiction)])
  }
  const audited = await dash(['verify-archive', '--json', '--data-dir', restored], { env })
  expect([audited.code, JSON.parse(audited.stdout)]).toMatchObject([
    65,
    { findings: [{ code: 'log_forked', path: 'the record of the log key', actual: contradiction }] },
  ])
  const { stdout } = await dash(['doctor', '--offline', '--json', '--data-dir', restored], { env })
  const { findings } = JSON.parse(stdout) as { findings: { check: string }[] }
  expect(findings.find(({ check }) => check === 'log')).toMatchObject({
    verdict: 'problem',
    detail: `the ledger does not continue the tree in the record of the log key: ${contradiction}`,
    mend: expect.stringContaining('docs/signed-log.md#a-second-history') as unknown,
  })
  const otherKey = { ...env, DASH_LOG_KEY_FILE: join(folder, 'no-such.key') }
  const unnamed = await dash(['verify-archive', '--data-dir', restored], { env: otherKey })
  expect([unnamed.code, unnamed.stderr]).toEqual([
    0,
    expect.stringMatching(/^the ledger was not compared with the record of the log key \(/),
  ])
  expect(notesIn(restored).sort()).toEqual(['1', '2'])
  expect(recordOf()).toBe(record)

  // Recover the missing entry from the original archive.
  expect((await dash(['copy-archive', '--data-dir', folder, '--to', restored], { env })).code).toBe(0)
  const recovered = await dash(['publish-year', '--once', '--json', '--data-dir', restored], { env })
  expect([recovered.code, JSON.parse(recovered.stdout)]).toMatchObject([
    0,
    { outcome: 'already-published', asOfDay: day },
  ])
  expect(notesIn(restored).sort()).toEqual(['1', '2', '3'])
})
