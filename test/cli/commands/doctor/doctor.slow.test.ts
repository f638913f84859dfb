import { chmodSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Check } from '../../../../src/cli/commands/doctor/check.ts'
import { rawClient } from '../../../adapters/sqlite/lock-holder.ts'
import { dash, filledFolder, PROGRAM, run, serve, temporaryFolder } from '../../../support/dash.ts'
import type { RunOptions } from '../../../support/dash.ts'
import { stateOfFolder } from '../../../support/temporary-folder.ts'
import { AS_OF, publishedWorkspace } from '../../../support/workspace.ts'
import { addDays } from '../../../../src/domain/time.ts'
import { localSource } from '../../../support/local-source.ts'

type Finding = Pick<Check, 'check' | 'verdict' | 'detail' | 'mend'>

/** Simulates all services at once, by the path; `requests` records what they receive. */
async function services(
  answers: Record<string, number | string> = {},
  headers: Record<string, string> = {},
): Promise<{ env: Record<string, string>; requests: string[] }> {
  const requests: string[] = []
  const { url } = await localSource(({ method, target, headers: { authorization } }, response) => {
    requests.push(`${method} ${target} ${authorization ?? '-'}`)
    const body = answers[target] ?? 200
    response.writeHead(typeof body === 'number' ? body : 200, headers)
    response.end(typeof body === 'string' && method !== 'HEAD' ? body : '')
  })
  const names = ['HN', 'HN_SEARCH', 'LOBSTERS', 'LESSWRONG', 'GITHUB', 'HUGGINGFACE', 'REPLICATE', 'REDDIT']
  const env = Object.fromEntries(names.map((name) => [`DASH_${name}_URL`, url]))
  return {
    env: { ...env, PORT: '1', OPENAI_BASE_URL: `${url}/v1`, OPENROUTER_BASE_URL: `${url}/router` },
    requests,
  }
}

/** Returns its findings. It runs in this process unless file modes must apply or the path of the program matters. */
async function doctor(
  options: RunOptions & { inProcess?: boolean; stdin?: never },
  args: string[] = [],
): Promise<{ code: number | null; findings: Finding[]; find: (check: string) => Finding | undefined }> {
  const { inProcess = options.boundByModes !== true } = options
  const { code, stdout, stderr } = await (inProcess ? run : dash)(['doctor', '--json', ...args], options)
  expect(stderr).toBe('')
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  return { code, findings, find: (check) => findings.find((finding) => finding.check === check) }
}

/** Matches a finding with this verdict whose texts contain these. */
const finding = (verdict: string, texts: Partial<Record<'detail' | 'mend', string>>): unknown => {
  const held = Object.entries(texts).map(([name, text]) => [name, expect.stringContaining(text)] as const)
  return expect.objectContaining({ verdict, ...Object.fromEntries(held) })
}

async function change(path: string, statement: string): Promise<void> {
  const client = rawClient(`file:${path}`)
  await client.execute(statement)
  client.close()
}

function damageRecommendation(data: string): void {
  const folder = join(data, 'objects/free-llm')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'current'), '{}')
}

describe('an installation', () => {
  test('a sound installation ends with 0 and is not changed', async () => {
    const cwd = temporaryFolder()
    const { env, requests } = await services({ '/v1/models': '{"data":[{"id":"m"}]}' })
    await run(['init', '--quiet'], { cwd })
    await run(['snapshot'], { cwd, env })
    await dash(['verify-archive'], { cwd, env })
    const before = stateOfFolder(cwd)
    const chat = { DASH_CHAT_MODEL: 'm', OPENAI_API_KEY: 'the-key', OPENROUTER_API_KEY: 'other-key' }
    const { code, find, findings } = await doctor({ cwd, env: { ...env, ...chat } })
    expect([code, findings.filter(({ verdict }) => verdict === 'problem')]).toEqual([0, []])
    const checks =
      'configuration chat data-folder feed.migrations objects snapshot router provider source.hn clock'
    for (const check of checks.split(' ')) expect(find(check), check).toMatchObject({ verdict: 'ok' })
    expect(stateOfFolder(cwd)).toEqual(before)
    // Keys are sent to their own services only, and nothing is posted.
    expect(requests.filter((each) => !each.endsWith(' -')).sort()).toEqual([
      'GET /router/key Bearer other-key',
      'GET /v1/models Bearer the-key',
    ])
    expect(requests.filter((each) => !/^(GET|HEAD) /.test(each))).toEqual([])
  })

  test('a missing installation is reported, and none is created', async () => {
    const cwd = temporaryFolder()
    const { code, find } = await doctor({ cwd, env: (await services()).env })
    expect([code, find('data-folder')]).toMatchObject([0, { verdict: 'note' }])
    expect(find('objects')?.detail).toContain('does not exist yet')
    expect(readdirSync(cwd)).toEqual([])
  })

  test.each([
    ['0', 'warning'],
    ['1', 'note'],
  ])(
    'a chat with auto needs a recommendation; with DASH_CHAT_DISABLED=%s a missing one is a %s',
    async (off, verdict) => {
      const env = { DASH_CHAT_MODEL: 'auto', DASH_CHAT_DISABLED: off }
      const { find } = await doctor({ cwd: temporaryFolder(), env }, ['--offline'])
      expect(find('recommendation')?.verdict).toBe(verdict)
    },
  )

  test('an installation can be checked while its server runs', async () => {
    const cwd = temporaryFolder()
    const { env } = await services()
    const { url } = await serve([], { cwd, env })
    // A server creates its databases at the first query.
    await (await fetch(`${url}/readyz`)).text()
    const before = readdirSync(join(cwd, 'dash-data')).sort()
    const { code, find } = await doctor({ cwd, env: { ...env, PORT: new URL(url).port } })
    const verdicts = ['server', 'state.migrations'].map((check) => find(check)?.verdict)
    expect([code, verdicts]).toEqual([0, ['ok', 'ok']])
    expect(readdirSync(join(cwd, 'dash-data')).sort()).toEqual(before)
  })
})

describe('a problem', () => {
  test('all problems of the configuration and unknown names are reported, and the exit code is 78', async () => {
    const env = { PORT: 'many', DASH_SESSION_SECRET: 'short', DASH_PROT: '1' }
    const { code, findings, find } = await doctor({ cwd: temporaryFolder(), env })
    expect(code).toBe(78)
    expect(findings.filter(({ verdict }) => verdict === 'problem')).toHaveLength(2)
    expect(JSON.stringify(findings)).not.toContain('short"')
    expect(find('configuration.names')?.detail).toContain('DASH_PROT')
  })

  test('a missing env file is reported, and the other checks run without it', async () => {
    const { code, find } = await doctor({ cwd: temporaryFolder() }, ['--offline', '--dotenv', 'missing'])
    expect([code, find('configuration.file')]).toEqual([
      78,
      finding('problem', { detail: 'the other checks run without it', mend: '--dotenv' }),
    ])
  })

  test('wrong permissions are reported with their remedy', async () => {
    const cwd = temporaryFolder()
    mkdirSync(join(cwd, 'dash-data'))
    chmodSync(join(cwd, 'dash-data'), 0o777)
    writeFileSync(join(cwd, '.env'), 'HF_TOKEN_FILE=token\n', { mode: 0o644 })
    writeFileSync(join(cwd, 'token'), 'a-token\n', { mode: 0o640 })
    const env = { DASH_LOG_KEY_FILE: 'log.key', DASH_LOG_ORIGIN: 'dash.example/tlog/year' }
    await run(['log-key', 'new'], { cwd, env })
    chmodSync(join(cwd, 'log.key'), 0o644)
    const { code, findings } = await doctor({ cwd, env }, ['--offline'])
    expect(code).toBe(0)
    const mends = findings.filter(({ verdict }) => verdict === 'warning').map(({ mend }) => mend)
    expect(mends).toEqual([
      `chmod 600 ${join(cwd, '.env')}`,
      `chmod 600 ${join(cwd, 'token')}`,
      `chmod 600 ${join(cwd, 'log.key')}`,
      `chmod o-w ${join(cwd, 'dash-data')}`,
    ])
  })

  test('files that the next job could not write end with 74, and nothing is written for the check', async () => {
    const cwd = temporaryFolder()
    await run(['init', '--quiet'], { cwd })
    await run(['publish-year', '--once', '--allow-empty'], { cwd })
    const data = join(cwd, 'dash-data')
    const well = await doctor({ cwd, boundByModes: true }, ['--offline'])
    expect(well.find('ledger.files')).toMatchObject({ verdict: 'ok' })
    const folder = join(data, 'objects', readdirSync(join(data, 'objects'))[0]!)
    chmodSync(join(data, 'ledger.db'), 0o444)
    chmodSync(folder, 0o555)
    const before = stateOfFolder(cwd)
    const { code, find } = await doctor({ cwd, boundByModes: true }, ['--offline'])
    expect(code).toBe(74)
    expect(find('ledger.files')).toEqual(
      finding('problem', { mend: `chmod u+rw ${join(data, 'ledger.db')}` }),
    )
    expect(find('objects.folders')).toEqual(finding('problem', { detail: folder }))
    expect(stateOfFolder(cwd)).toEqual(before)
  })

  test('a record of the log key that cannot be written ends with 74, and the check leaves no file', async () => {
    const cwd = temporaryFolder()
    const keys = join(cwd, 'keys')
    for (const folder of [keys, join(cwd, 'dash-data')]) mkdirSync(folder)
    const env = { DASH_LOG_KEY_FILE: join(keys, 'log.key'), DASH_BASE_URL: 'https://dash.example' }
    await run(['log-key', 'new'], { cwd, env })
    const report = async (): Promise<unknown> => {
      const { code, find } = await doctor({ cwd, env, boundByModes: true }, ['--offline'])
      return [code, find('log')?.verdict, find('log.record')]
    }
    expect(await report()).toEqual([0, 'ok', finding('ok', { detail: keys })])
    chmodSync(keys, 0o555)
    expect(await report()).toEqual([74, 'ok', finding('problem', { mend: `ReadWritePaths=${keys}` })])
    const other = await dash(['log-key', 'new', join(keys, 'other')], { cwd, env, boundByModes: true })
    const reason: unknown = expect.stringContaining(`this user cannot write in ${keys}; choose another path`)
    expect([other.code, other.stderr]).toEqual([64, reason])
    expect(readdirSync(keys).sort()).toEqual(['log.key', 'log.key.signed'])
  })

  test('a database that is damaged or of a newer release ends with 74', async () => {
    const cwd = temporaryFolder()
    await run(['init', '--quiet'], { cwd })
    await run(['snapshot'], { cwd })
    const feed = join(cwd, 'dash-data', 'feed.db')
    await change(feed, "INSERT INTO migrations_feed (hash) VALUES ('of a later release')")
    const newer = await doctor({ cwd }, ['--offline'])
    expect(newer.code).toBe(74)
    expect(newer.find('feed.migrations')?.detail).toContain('written by a newer release')
    writeFileSync(feed, 'no database at all, but long enough to be taken for one'.repeat(100))
    const damaged = await doctor({ cwd }, ['--offline'])
    expect(damaged.code).toBe(74)
    expect(damaged.find('feed')).toEqual(finding('problem', { mend: 'restore' }))
    expect((await run(['top'], { cwd })).stderr).toMatch(
      /feed\.db is damaged: .*; dash doctor says what to do\n$/,
    )
    const ledger = join(cwd, 'dash-data', 'ledger.db')
    await run(['publish-year', '--allow-empty', '--quiet'], { cwd })
    await change(ledger, 'DROP TABLE legacy_publications')
    expect((await run(['publish-year'], { cwd })).stderr).toMatch(
      /ledger\.db has no complete schema: SQLITE_ERROR: no such table: legacy_publications; dash doctor/,
    )
  })

  test.each<[what: string, damage: (data: string) => void, check: string, texts: [string, string]]>([
    ['a missing ledger', (data) => rmSync(join(data, 'ledger.db')), 'archive', ['heads/2', 'verify-archive']],
    [
      'missing heads',
      (data) => rmSync(join(data, 'objects/heads'), { recursive: true }),
      'archive',
      ['heads/1', 'restore'],
    ],
    [
      'missing objects',
      (data) => rmSync(join(data, 'objects/sha256'), { recursive: true }),
      'archive',
      ['is missing', 'restore'],
    ],
    [
      'a damaged state database',
      (data) => writeFileSync(join(data, 'state.db'), 'x'.repeat(9_000)),
      'state',
      ['NOTADB', 'no backup'],
    ],
    ['a damaged recommendation', damageRecommendation, 'recommendation', ['its digest', 'evaluate-models']],
  ])('%s ends with 74 and its own remedy', async (_what, damage, check, [detail, mend]) => {
    const { folder: data } = await publishedWorkspace([AS_OF, addDays(AS_OF, 1)])
    const flags = ['--offline', '--data-dir', data]
    const well = await doctor({}, flags)
    expect([well.code, well.find('archive')?.verdict]).toEqual([0, 'ok'])
    damage(data)
    const { code, find } = await doctor({}, flags)
    expect([code, find(check)]).toEqual([74, finding('problem', { detail, mend })])
  })

  test('an incomplete index is reported, and a stored row too long to be published is named and ends with 1', async () => {
    const data = await filledFolder()
    const flags = ['--offline', '--data-dir', data]
    const well = await doctor({}, flags)
    expect([well.find('feed.rows')?.verdict, well.find('search')?.verdict]).toEqual(['ok', 'ok'])
    await change(join(data, 'feed.db'), 'UPDATE search_state SET complete = 0')
    expect((await doctor({}, flags)).find('search')).toEqual(finding('warning', { mend: 'dash reindex' }))
    const long = `UPDATE signals SET title = '${'x'.repeat(1_001)}' WHERE source_id = '2'`
    await change(join(data, 'feed.db'), long)
    const { code, find } = await doctor({}, flags)
    expect([code, find('feed.rows')]).toEqual([1, finding('problem', { mend: 'import' })])
    expect(find('feed.rows')?.detail).toMatch(/hn 2 of [\d-]{10}: its title has more than 1000/)
  })

  test('a failing service ends with 69 or 78, a failing source with 0', async () => {
    const cwd = temporaryFolder()
    const { env } = await services({ '/v1/models': 401 })
    const down = 'http://127.0.0.1:1'
    const reported = async (changes: Record<string, string>, check: string): Promise<unknown> => {
      const { code, find } = await doctor({ cwd, env: { ...env, ...changes } })
      return [code, find(check)]
    }
    expect(await reported({ DASH_CHAT_MODEL: 'm', OPENAI_API_KEY: 'k' }, 'provider')).toEqual([
      78,
      finding('problem', { mend: 'correct OPENAI_API_KEY' }),
    ])
    expect(await reported({ OPENROUTER_BASE_URL: down, OPENROUTER_API_KEY: 'k' }, 'router')).toEqual([
      69,
      finding('problem', { detail: 'ECONNREFUSED' }),
    ])
    expect(await reported({ DASH_STORE_URL: 'file:/not/there' }, 'objects')).toEqual([
      78,
      finding('problem', { detail: '/not/there' }),
    ])
    expect(await reported({ DASH_LOBSTERS_URL: down }, 'source.lobsters')).toEqual([
      0,
      finding('warning', { detail: 'ECONNREFUSED' }),
    ])
  })

  test('a service that fails itself, or does not list the model of the chat, is a warning', async () => {
    const { env } = await services({ '/router/key': 500, '/v1/models': '{"data":[]}' })
    const chat = { DASH_CHAT_MODEL: 'm', OPENAI_API_KEY: 'k', OPENROUTER_API_KEY: 'k' }
    const { code, find } = await doctor({ cwd: temporaryFolder(), env: { ...env, ...chat } })
    expect([code, find('router'), find('provider')]).toEqual([
      0,
      finding('warning', { mend: 'try again later' }),
      finding('warning', { mend: 'it lists none' }),
    ])
  })

  test('a problem of a server is reported by its status, and another program is not a server', async () => {
    for (const [body, verdict, mend] of [
      ['<!doctype html>', 'problem', expect.stringContaining('another program')],
      ['{"status":"draining"}', 'problem', 'check the server log'],
      ['{"status":"ready"}', 'ok', null],
    ] as const) {
      const { env } = await services({ '/readyz': body })
      const PORT = new URL(env['DASH_HN_URL'] ?? '').port
      const { find } = await doctor({ cwd: temporaryFolder(), env: { ...env, PORT } })
      expect(find('server')).toMatchObject({ verdict, mend })
    }
  })

  test('a wrong clock is reported by the clocks of the services', async () => {
    const { env } = await services({}, { date: 'Sun, 01 Jan 2040 00:00:00 GMT' })
    const { code, find } = await doctor({ cwd: temporaryFolder(), env })
    expect(code).toBe(1)
    expect(find('clock')).toEqual(finding('problem', { mend: 'set-ntp' }))
  })
})

describe('unreadable paths', () => {
  /** A folder without any permissions, with a file in it. */
  function closedFolder(): { cwd: string; closed: string } {
    const cwd = temporaryFolder()
    const closed = join(cwd, 'closed')
    mkdirSync(closed)
    writeFileSync(join(closed, 'token'), 'a-token\n', { mode: 0o600 })
    chmodSync(closed, 0)
    onTestFinished(() => chmodSync(closed, 0o700))
    return { cwd, closed }
  }

  const PATH = process.env['PATH'] ?? ''

  test.each([
    ['a folder of PATH', 0, 'name.path', 'note', 'PATH', `:${PATH}`],
    ['the data folder', 74, 'data-folder', 'problem', 'DASH_DATA_DIR', '/data'],
    ['a secret', 78, 'secrets.files', 'problem', 'HF_TOKEN_FILE', '/token'],
  ])('%s that is unreadable is a finding', async (_what, code, check, verdict, name, rest) => {
    const { cwd, closed } = closedFolder()
    const env = { [name]: closed + rest }
    const report = await doctor({ cwd, env, boundByModes: true }, ['--offline'])
    expect(report.code).toBe(code)
    expect(report.find(check)).toEqual(finding(verdict, { detail: 'EACCES' }))
    expect(report.find(check)?.mend).not.toBeNull()
    expect(report.find('name')).toBeDefined()
  })
})

test('another program with the name dash is reported', async () => {
  const cwd = temporaryFolder()
  const checkName = async (PATH: string): Promise<unknown> =>
    (await doctor({ cwd, inProcess: false, env: { PATH } }, ['--offline'])).find('name')
  writeFileSync(join(cwd, 'dash'), '#!/bin/sh\n', { mode: 0o755 })
  const other = finding('note', { detail: join(cwd, 'dash') })
  expect(await checkName(cwd)).toEqual(other)
  // npx adds its own folder before the folders in which scripts of the host look.
  const own = join(cwd, 'node_modules', '.bin')
  mkdirSync(own, { recursive: true })
  symlinkSync(PROGRAM, join(own, 'dash'))
  expect(await checkName(`${own}:${cwd}`)).toEqual(other)
  expect(await checkName('/nowhere')).toMatchObject({ verdict: 'ok' })
})

test('the text has a line for each finding, and its remedy below', async () => {
  const { stdout, code } = await run(['doctor', '--offline', '--data-dir', '/not/there'])
  expect(code).toBe(78)
  expect(stdout).toMatch(
    /^problem data-folder: \/not\/there does not exist\n {8}-> mount it, create it, or correct --data-dir$/m,
  )
  expect(stdout).toMatch(/\d+ problems?, \d+ warnings?, \d+ notes?, \d+ ok\n$/)
})
