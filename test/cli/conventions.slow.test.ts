import { writeFileSync } from 'node:fs'
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
    expect(await dash(['--version'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    })
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
  ])('%j that is wrong ends with 64 and says what', async (args, message) => {
    const { code, stdout, stderr } = await dash(args)
    expect([code, stdout]).toEqual([64, ''])
    expect(stderr).toContain(message)
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
    expect(code).toBe(78)
    expect(stderr).toContain('nowhere.env')
  })

  test.each([['serve'], ['publish-year']])(
    '%s does not create a data folder that was named',
    async (command) => {
      const missing = join(temporaryFolder(), 'unmounted')
      const { code, stderr } = await dash(
        [command, '--data-dir', missing, '--port', '0'].slice(0, command === 'serve' ? 5 : 3),
      )
      expect(code).toBe(78)
      expect(stderr).toContain(missing)
    },
  )

  test('creates the default data folder', async () => {
    const folder = temporaryFolder()
    const { code } = await dash(['publish-year', '--dry-run', '--allow-empty', '--json'], { cwd: folder })
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
  for (const command of [['publish-year'], ['serve', '--port', '0']]) {
    const { code, stdout } = await dash([...command, '--json', '--data-dir', missing])
    expect([code, JSON.parse(stdout)]).toEqual([
      78,
      { error: expect.stringContaining(missing) as string, exitCode: 78 },
    ])
  }
})

test('a title provenance that could vouch for nothing is a slip of the command line', async () => {
  const { code, stderr } = await dash(['import', 'signals', 'x', '--title-provenance', 'foo'], {
    cwd: temporaryFolder(),
  })
  expect([code, stderr]).toEqual([64, expect.stringContaining('--title-provenance "foo"')])
})
