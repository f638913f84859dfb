import { once } from 'node:events'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { dash, startDash, temporaryFolder } from '../support/dash.ts'

const COMMANDS = [
  ['serve'],
  ['import', 'signals', 'x'],
  ['import', 'archive', 'x'],
  ['publish-year'],
  ['collect'],
  ['model'],
]

describe('a command line', () => {
  test('asking for help or the version is answered on stdout with exit 0', async () => {
    for (const args of [
      ['--help'],
      ['serve', '--help'],
      ['import', 'signals', '--help'],
      ['import', 'archive', '--help'],
      ['publish-year', '-h'],
    ]) {
      const { code, stdout, stderr } = await dash(args)
      expect([args, code, stderr]).toEqual([args, 0, ''])
      expect(stdout).toContain('Usage: dash')
    }
    const { code, stdout } = await dash(['--version'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)])
    for (const args of [
      ['--version', '--json'],
      ['--json', '--version'],
      ['serve', '--version', '--json'],
    ]) {
      const json = await dash(args)
      expect([json.code, JSON.parse(json.stdout)]).toEqual([0, { version: stdout.trim() }])
    }
  })

  test.each([
    [['serv'], 'Did you mean serve'],
    [['publish-year', '--onec'], 'Did you mean --once'],
    [['import', 'signals'], "missing required argument 'file'"],
    [['import', 'archive'], "missing required argument 'dir'"],
    [['import', 'archive', 'x', 'y'], 'too many arguments'],
    [['import', 'signals', 'x', '--on-error', 'maybe'], 'Allowed choices are abort, skip'],
    [['publish-year', '--retry-delay', 'soon'], '--retry-delay "soon"'],
    [['serve', 'extra'], 'too many arguments'],
    [['collect', '--source', 'digg'], 'Allowed choices are hn, lobsters'],
    [['collect', '--source', 'hn,digg'], 'Allowed choices are hn, lobsters'],
    [['collect', '--source', 'hn,'], 'Allowed choices are hn, lobsters'],
    [['collect', '--source'], 'argument missing'],
    [[], 'Usage: dash'],
    [['import', 'signals', 'x', '--data-dir', ''], "option '--data-dir <dir>' must not be empty"],
    [['serve', '--port', ''], "option '--port <port>' must not be empty"],
    [['--data-dir=', 'serve'], "option '--data-dir <dir>' must not be empty"],
    [['init', '--yes', '--base-url', ''], "option '--base-url <base>' must not be empty"],
    [['model', '--url', ''], "option '--url <base>' must not be empty"],
    [['doctor', '--dotenv', ''], "option '--dotenv <file>' must not be empty"],
  ])('%j that is wrong ends with 64 and says what', async (args, message) => {
    const { code, stdout, stderr } = await dash(args)
    expect([code, stdout]).toEqual([64, ''])
    expect(stderr).toContain(message)
    const json = await dash([...args, '--json'])
    expect([json.code, JSON.parse(json.stdout)]).toMatchObject([
      64,
      { error: expect.stringMatching(/^(?!error: )[^\n]+$/) as string, exitCode: 64 },
    ])
  })
})

describe('the configuration', () => {
  const bad = {
    PORT: 'eighty',
    DASH_LOG_LEVEL: 'loud',
    DASH_HN_URL: 'ftp://x',
    DASH_STORE_URL: 'ftp://bucket',
    DASH_DATABASE_URL: 'file:one.db',
    DASH_LEDGER_URL: 'postgres://x',
    DASH_ARTICLE_MIN_POINTS: 'hn=many',
    DASH_ARTICLE_MAX_PER_RUN: '10001',
    DASH_ARTICLE_ALLOW_PRIVATE: '10.0.0.1/8',
  }

  test.each(COMMANDS)(
    'of %s names every bad variable at once, with its value, and ends with 78',
    async (...args) => {
      const { code, stderr, stdout } = await dash(args, { env: bad })
      expect([code, stdout]).toEqual([78, ''])
      for (const [name, value] of Object.entries(bad)) expect(stderr).toContain(`${name}="${value}"`)
      expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    },
  )

  test.each([
    ['file://nas/x'],
    ['file:%zz'],
    ['file:/a%2Fb'],
    ['file:/tmp/a%00b'],
    ['file:'],
    ['s3://B'],
    ['s3://bucket/../x'],
    ['s3://bucket/a b'],
    ['s3://bucket?endpoint=nowhere'],
    ['s3://bucket?region=a_b'],
    ['s3://bucket?acl=public', 's3://bucket?acl=(not shown)'],
  ])('refuses the store URL %s', async (url, shown = url) => {
    const { code, stderr } = await dash(['publish-year'], {
      env: { DASH_STORE_URL: url },
      cwd: temporaryFolder(),
    })
    expect([code, stderr]).toEqual([78, expect.stringContaining(JSON.stringify(shown))])
  })

  test('asks for the keys of an S3 store', async () => {
    const { code, stderr } = await dash(['publish-year'], { env: { DASH_STORE_URL: 's3://bucket/dash' } })
    expect(code).toBe(78)
    expect(stderr).toContain('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
  })

  test('takes a secret from a file, and refuses one that is given twice or cannot be read', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'token'), 'secret\n')
    const run = (env: Record<string, string>) => dash(['publish-year'], { env, cwd: folder })
    const twice = await run({ DASH_DATABASE_AUTH_TOKEN: 'x', DASH_DATABASE_AUTH_TOKEN_FILE: 'token' })
    expect([twice.code, twice.stderr]).toEqual([78, expect.stringContaining('both set')])
    const missing = await run({ DASH_DATABASE_AUTH_TOKEN_FILE: 'nowhere' })
    expect([missing.code, missing.stderr]).toEqual([78, expect.stringContaining('nowhere')])
  })

  test('prefers flags to the environment, that to the env file, and that to the default', async () => {
    const folder = temporaryFolder()
    const dirs = ['flag', 'env', 'file'].map((name) => join(folder, name))
    const [flag = '', env = '', file = ''] = dirs
    writeFileSync(join(folder, '.env'), `DASH_DATA_DIR=${file}\n`)
    const missing = async (args: string[], variables: Record<string, string>): Promise<string> =>
      (await dash(['publish-year', ...args], { cwd: folder, env: variables })).stderr
    expect(await missing(['--data-dir', flag], { DASH_DATA_DIR: env })).toContain(flag)
    expect(await missing([], { DASH_DATA_DIR: env })).toContain(env)
    expect(await missing([], {})).toContain(file)
  })

  test('refuses an env file that was named and is not there', async () => {
    const { code, stderr } = await dash(['publish-year', '--dotenv', 'nowhere.env'])
    expect(code).toBe(64)
    expect(stderr).toContain('--dotenv "nowhere.env" cannot be read')
  })

  test.each([['serve'], ['publish-year']])(
    '%s does not create a data folder that was named',
    async (command) => {
      const missing = join(temporaryFolder(), 'unmounted')
      const { code, stderr } = await dash(
        [command, '--data-dir', missing, '--port', '0'].slice(0, command === 'serve' ? 5 : 3),
      )
      expect(code).toBe(64)
      expect(stderr).toContain(missing)
      expect(stderr).toMatch(/correct --data-dir\n$/)
      const named = await dash([command], { env: { DASH_DATA_DIR: missing, PORT: '0' } })
      expect([named.code, named.stderr]).toEqual([78, expect.stringMatching(/correct DASH_DATA_DIR\n$/)])
      expect(existsSync(missing)).toBe(false)
    },
  )

  test.each([
    [['serve', '--port', '70000'], '--port "70000" must be a port from 0 to 65535'],
    [['serve', '--host', '203.0.113.9'], 'choose an address of this machine with --host'],
    [['init', '--yes', '--port', '70000'], '--port "70000" must be a port from 0 to 65535'],
    [['init', '--yes', '--base-url', 'dash.example'], '--base-url "dash.example" must be'],
    [['copy-archive', '--to', 'x', 's3://B'], '--to "s3://B" names no bucket'],
    [['healthcheck', '--url', 'nowhere'], '--url "nowhere" must be'],
    [['verify-archive', '--url', 'nowhere'], '--url "nowhere" must be'],
    [['chat', '--url', 'nowhere', 'hello'], '--url "nowhere" must be'],
    [['model', '--url', 'nowhere'], '--url "nowhere" must be'],
  ])('%j is a mistake of the command line, named by its flag, and makes no folder', async (args, message) => {
    const cwd = temporaryFolder()
    // The flag wins over the variable, and is the one that is named.
    const { code, stdout, stderr } = await dash(args, { cwd, env: { PORT: '3001' } })
    expect([code, stdout]).toEqual([64, ''])
    expect(stderr).toContain(message)
    const json = await dash([...args, '--json'])
    expect([json.code, JSON.parse(json.stdout)]).toMatchObject([
      64,
      { error: expect.stringMatching(/^(?!error: )[^\n]+$/) as string, exitCode: 64 },
    ])
    expect(stderr).not.toMatch(/PORT=|HOST=|_URL=/)
    expect(readdirSync(cwd)).toEqual([])
  })

  test('a port that browsers refuse is named by its flag, or its variable and the env file it stands in', async () => {
    const data = temporaryFolder()
    const flag = await dash(['serve', '--data-dir', data, '--port', '6000'])
    expect([flag.code, flag.stderr]).toEqual([64, expect.stringMatching(/choose another with --port\n$/)])
    const variable = await dash(['serve', '--data-dir', data], { env: { PORT: '6000' } })
    expect([variable.code, variable.stderr]).toEqual([
      78,
      expect.stringMatching(/choose another with PORT\n$/),
    ])
    const path = join(data, 'server.env')
    writeFileSync(path, 'PORT=6000\n')
    const file = await dash(['serve', '--data-dir', data, '--dotenv', path])
    expect(file.code).toBe(78)
    expect(file.stderr).toContain(`choose another with PORT in ${path}\n`)
  })

  test.each([
    ['PORT', '70000', 'PORT="70000" must be a port from 0 to 65535'],
    ['HOST', '203.0.113.9', 'choose an address of this machine with HOST'],
  ])('%s=%s from the environment or the env file ends with 78 and is named', async (name, value, message) => {
    const cwd = temporaryFolder()
    const fromEnvironment = await dash(['serve'], { cwd, env: { [name]: value } })
    expect([fromEnvironment.code, fromEnvironment.stderr]).toEqual([78, expect.stringContaining(message)])
    writeFileSync(join(cwd, 'server.env'), `${name}=${value}\n`)
    const fromFile = await dash(['serve', '--dotenv', 'server.env'], { cwd })
    expect(fromFile.code).toBe(78)
    expect(fromFile.stderr).toContain(message.replace(/(?= must|$)/, ` in ${join(cwd, 'server.env')}`))
    expect(readdirSync(cwd)).toEqual(['server.env'])
  })

  test('creates the default data folder', async () => {
    const folder = temporaryFolder()
    const { code } = await dash(['publish-year', '--once', '--allow-empty', '--json'], { cwd: folder })
    expect(code).toBe(0)
    const again = ['publish-year', '--dry-run', '--allow-empty', '--data-dir', join(folder, 'dash-data')]
    expect(await dash(again)).toMatchObject({ code: 0 })
  })
})

test('the flags of every command may stand before its name or after, `--no-color` too', async () => {
  const folder = temporaryFolder()
  for (const args of [
    ['--data-dir', folder, '--json', '--no-color', 'publish-year', '--dry-run'],
    ['publish-year', '--dry-run', '--data-dir', folder, '--json', '--no-color'],
    ['--json', 'publish-year', '--no-color', '--dry-run', '--data-dir', folder],
  ]) {
    const { code, stdout, stderr } = await dash([...args, '--allow-empty'])
    expect([args, code, stderr]).toEqual([args, 0, ''])
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'dry-run' })
  }
  const missing = join(folder, 'missing.ndjson')
  const imported = await dash(['--json', 'import', '--data-dir', folder, 'signals', missing])
  expect([imported.code, JSON.parse(imported.stdout)]).toMatchObject([1, { files: 1, errorCount: 1 }])
})

test('a reader that goes away ends the program quietly', async () => {
  const child = startDash(['--help'])
  child.stdout?.destroy()
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const code = await new Promise((resolve) => child.once('close', resolve))
  expect([code, stderr]).toEqual([0, ''])
})

test('a command that fails before it has a result still prints one JSON document under --json', async () => {
  const missing = join(temporaryFolder(), 'unmounted')
  const error = expect.stringContaining(missing) as string
  for (const [command, failed] of [
    [['publish-year'], { job: 'publish-year', outcome: 'failed', reason: error }],
    [['serve', '--port', '0'], {}],
  ] as const) {
    const { code, stdout } = await dash([...command, '--json', '--data-dir', missing])
    expect([code, JSON.parse(stdout)]).toEqual([64, { ...failed, error, exitCode: 64 }])
  }
})

test('a command that fails before it does anything makes no folder', async () => {
  const cwd = temporaryFolder()
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  for (const [wanted, args] of [
    [69, ['serve', '--port', `${port}`]],
    [64, ['copy-archive', '--to', 'copy']],
    [64, ['publish-year', '--retry-delay', 'soon']],
    [64, ['verify-archive', '--expect-head', 'nowhere']],
    [69, ['chat', '--url', 'http://127.0.0.1:9', 'hello']],
    [74, ['reindex']],
    [74, ['search', 'rust']],
    [74, ['mcp']],
    [69, ['healthcheck', '--url', 'http://127.0.0.1:9']],
    [69, ['model', '--url', 'http://127.0.0.1:9']],
  ] as const) {
    const { code } = await dash(args, { cwd })
    expect([args, code, readdirSync(cwd)]).toEqual([args, wanted, []])
  }
  taken.close()
})

test('a job that fails under --json prints a failed result with its reason', async () => {
  const cwd = temporaryFolder()
  for (const [job, args] of [
    ['reindex', ['reindex']],
    ['copy-archive', ['copy-archive', '--to', 'copy']],
    ['snapshot', ['snapshot', '--data-dir', 'missing']],
    ['evaluate-models', ['evaluate-models']],
  ] as const) {
    const env = { OPENROUTER_BASE_URL: 'http://127.0.0.1:9' }
    const { code, stdout, stderr } = await dash([...args, '--json'], { cwd, env })
    const result = JSON.parse(stdout) as { reason: string }
    expect(result).toMatchObject({ job, outcome: 'failed' })
    expect(code).toBeGreaterThan(0)
    expect(stderr).toContain(`error: ${result.reason}\n`)
  }
})

test('a title provenance that could vouch for nothing is a slip of the command line', async () => {
  const { code, stderr } = await dash(['import', 'signals', 'x', '--title-provenance', 'foo'], {
    cwd: temporaryFolder(),
  })
  expect([code, stderr]).toEqual([64, expect.stringContaining('--title-provenance "foo"')])
})
