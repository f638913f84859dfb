import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { COMMANDS } from '../../src/cli/command-table.ts'
import { LIVE_SOURCES } from '../../src/domain/feed/live-source.ts'
import { run, temporaryFolder } from '../support/dash.ts'
import { takenPort } from '../support/local-source.ts'

describe('the help', () => {
  test('the root help lists commands in groups and global options once, and ends with the address of the documentation', async () => {
    const { stdout } = await run(['--help'])
    const headings = [...stdout.matchAll(/^([A-Z]\w+):$/gm)].map(([, heading]) => heading)
    const groups = ['Start', 'Data', 'Publish', 'Prove', 'Models', 'Chat', 'Operate']
    expect(headings).toEqual([...groups, 'Examples'])
    expect(stdout).not.toMatch(/^Commands:/m)
    for (const flag of ['data-dir', 'dotenv', 'json', 'quiet', 'verbose', 'no-color', 'version', 'help'])
      expect(stdout.match(new RegExp(`^ .*--${flag}\\b`, 'gm'))).toHaveLength(flag === 'json' ? 2 : 1)
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^Documentation: .*\/docs/)
  })

  test.each(COMMANDS.map(({ name, example }) => [name, example]))(
    'of %s shows an example and its own options, and leads to the global ones',
    async (name, example) => {
      const { code, stdout, stderr } = await run([...name.split(' '), '--help'])
      expect([code, stderr]).toEqual([0, ''])
      expect(example).toContain(`dash ${name}`)
      expect(stdout).toContain(`\nExample:\n  ${example}\n\nGlobal options: dash --help\n`)
      expect(stdout).not.toMatch(/default: false|--data-dir <|--help +/)
    },
  )
})

describe('a command line', () => {
  test('the version is printed on stdout with exit code 0, by itself or as JSON', async () => {
    const { code, stdout } = await run(['--version'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)])
    for (const flags of ['--version --json', '--json --version', 'serve --version --json']) {
      const json = await run(flags.split(' '))
      expect([json.code, JSON.parse(json.stdout)]).toEqual([0, { version: stdout.trim() }])
    }
  })

  test.each([
    [['serv'], 'Did you mean serve'],
    [['nonsense'], "unknown command 'nonsense'; dash --help lists all commands"],
    [['publish-year', '--onec'], 'Did you mean --once'],
    [['import', 'signals'], "missing required argument 'file'"],
    [['import', 'signals', 'x', '--on-error', 'maybe'], '--on-error "maybe" must be one of abort, skip'],
    [['import', 'signals', 'x', '--title-provenance', 'foo'], '--title-provenance "foo"'],
    [['publish-year', '--data-dir', '/dev/null'], 'the data folder /dev/null is not a folder; mount it'],
    [['collect', '--data-dir', '/dev/null/data'], 'choose another with --data-dir'],
    [['publish-year', '--retry-delay', 'soon'], '--retry-delay "soon"'],
    [['publish-year', '--record-gaps=-1'], '--record-gaps "-1"'],
    [['serve', 'extra'], 'unexpected argument "extra"; see dash help'],
    [['top', 'year', '2026-01-01'], 'unexpected argument "2026-01-01"'],
    [['collect', '--source', 'digg'], `--source "digg" must be one of ${LIVE_SOURCES.join(', ')}`],
    [['collect', '--source', 'hn,digg'], '--source "hn,digg" must be one of hn, lobsters'],
    [['collect', '--source'], 'argument missing'],
    [[], 'Usage: dash'],
    [['import', 'signals', 'x', '--data-dir', ''], "option '--data-dir <dir>' must not be empty"],
    [['publish-year', '--dotenv', 'nowhere.env'], '--dotenv "nowhere.env" cannot be read'],
    [['serve', '--port', '70000'], '--port "70000" must be a port from 0 to 65535'],
    [['serve', '--host', '203.0.113.9'], 'choose an address of this machine with --host'],
    [['help', 'publsh'], 'the command is missing or unknown'],
    [['init', '--user', 'a b'], '--user "a b" must be the name or the number of a user'],
    [['init', '--data-dir', '/dev/null/data'], 'cannot be created'],
    [
      ['init', '--data-dir', '/dev/null'],
      'cannot be created (a file, or a link that leads to no folder, is there)',
    ],
    [['init', '--data-dir', `/tmp/${'x'.repeat(256)}`], 'cannot be created (ENAMETOOLONG: name too long'],
    [
      ['publish-year', '--data-dir', `/tmp/${'x'.repeat(256)}`],
      'does not exist; mount it, create it, or correct',
    ],
    [['init', '--data-dir', '/proc/none/data'], '/proc/none/data cannot be created'],
    [['init', '--data-dir', 'both\'and"and`'], 'the value of DASH_DATA_DIR does not fit into an env file'],
    [['init', '--write-units', 'nowhere'], 'is not a folder'],
    [['init', '--print', 'podman'], '--print "podman" must be one of systemd, cron, containers, nothing'],
    [['init', '--no-env', '--dotenv', 'none'], 'cannot be read'],
    [['init', '--no-env'], 'does not exist; run dash init without --no-env'],
    [['copy-archive', '--to', 'x', 's3://B'], '--to "s3://B" must contain a bucket name'],
    [['export', 's3://B'], 'the target "s3://B" must contain a bucket name'],
    [['export', 'http://x/'], 'is neither a folder nor a bucket'],
    [['export', ''], "argument 'target' must not be empty"],
    [['copy-archive', '--to', ''], "option '--to <target...>' must not be empty"],
    [['import', 'signals', ''], "argument 'file' must not be empty"],
    [['verify', '', 'x'], "argument 'files' must not be empty"],
    [
      ['init', '--yes', '--base-url', 'https://a.example/b'],
      '--base-url "https://a.example/b" must be an address without a path',
    ],
    [['verify-archive', '--url', 'nowhere'], '--url "nowhere" must be'],
    [['verify-archive', '--url', 'http://host?x=1'], 'without user, query or fragment'],
    [['verify-archive', '--sample', '0%'], '--sample "0%" must be '],
    [['verify-archive', '--policy', 'x'], '--policy is for the log of another host'],
    [['verify-archive', '--state', 'x'], '--state is for the log of another host'],
    [['verify-archive', '--since', '2026-02-30'], '--since "2026-02-30" must be '],
    [['verify-archive', '--jobs', '65'], '--jobs "65" must be '],
    [['verify-archive', '--expect-head', 'nowhere'], '--expect-head "nowhere"'],
    [['top', '--at', '2026-03-02'], '--at needs the Year'],
    [['top', 'year', '--at', '2999-01-01'], '--at "2999-01-01" must be'],
    [['top', 'year2'], 'sort "year2" must be one of trending'],
    [['top', '--limit', '101'], '--limit "101" must be'],
    [['chat', '--url', 'http://me@host', 'x'], 'without user'],
    [['chat', '--demo', '--url', 'http://127.0.0.1:1', 'x'], '--demo starts a private server'],
    [['chat', '--item', 'no key', 'x'], 'must be a save key'],
    [['chat', '--sort', 'year', 'x'], 'trending, day, week, month'],
    [['model', '--url', 'localhost:3000'], '--url "localhost:3000" must be'],
    [['model', '--needs', 'vision'], '--needs "vision" must be one or more of tools, toolChoice'],
    [['model', '--id', '--env'], 'choose one'],
    [['search', 'rust', '--source', 'hn', 'lobsters'], '--source hn,lobsters'],
    [['search', 'rust', 'lobsters', '--source', 'hn'], `'"lobsters"'`],
    [['search', 'rust', '--from', '2026-02-30'], '--from "2026-02-30" must be an existing day'],
    [['search', 'rust', '--limit', '0'], '--limit "0" must be'],
  ])('the invalid arguments %j end with 64 and a reason, and create no folder', async (args, message) => {
    const cwd = temporaryFolder()
    // A flag overrides the variable, and is the one that is named.
    const { code, stdout, stderr } = await run(args, { cwd, env: { PORT: '3001' } })
    expect([code, stdout]).toEqual([64, ''])
    expect(stderr).toContain(message)
    expect(stderr).not.toMatch(/PORT=|HOST=|_URL=/)
    const json = await run([...args, '--json'], { cwd })
    const error: unknown = expect.stringMatching(/^(?!error: )[^\n]+$/)
    expect([json.code, JSON.parse(json.stdout)]).toMatchObject([64, { error, exitCode: 64 }])
    expect(readdirSync(cwd)).toEqual([])
  })

  test('shared flags may stand before or after the name of a command, `--no-color` too', async () => {
    const folder = temporaryFolder()
    for (const args of [
      ['--data-dir', folder, '--json', '--no-color', 'publish-year', '--dry-run'],
      ['publish-year', '--dry-run', '--data-dir', folder, '--json', '--no-color'],
      ['--json', 'publish-year', '--no-color', '--dry-run', '--data-dir', folder],
    ]) {
      const { code, stdout, stderr } = await run([...args, '--allow-empty'])
      expect([args, code, stderr]).toEqual([args, 0, ''])
      expect(JSON.parse(stdout)).toMatchObject({ outcome: 'dry-run' })
    }
    const missing = join(folder, 'missing.ndjson')
    const imported = await run(['--json', 'import', '--data-dir', folder, 'signals', missing])
    expect([imported.code, JSON.parse(imported.stdout)]).toMatchObject([1, { files: 1, errorCount: 1 }])
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

  test.each(['serve', 'publish-year', 'model'])(
    'every bad variable of %s is named at once, with its value, and the exit code is 78',
    async (command) => {
      const { code, stderr, stdout } = await run([command], { env: bad })
      expect([code, stdout]).toEqual([78, ''])
      for (const [name, value] of Object.entries(bad)) expect(stderr).toContain(`${name}="${value}"`)
      expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    },
  )

  const keys = 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
  const twice = { DASH_DATABASE_AUTH_TOKEN: 'x', DASH_DATABASE_AUTH_TOKEN_FILE: 'token' }
  const address = 'must be HOST:PORT, such as 127.0.0.1:9464'

  test.each<[Record<string, string>, says: string]>([
    ...['file://nas/x', 'file:%zz', 'file:/a%2Fb', 'file:/tmp/a%00b', 'file:', 's3://B'].map(shownStore),
    ...['s3://bucket/../x', 's3://bucket/a b', 's3://bucket?endpoint=nowhere'].map(shownStore),
    shownStore('s3://bucket?region=a_b'),
    [{ DASH_STORE_URL: 's3://bucket?acl=public' }, '"s3://bucket?acl=(not shown)"'],
    [{ DASH_STORE_URL: 's3://bucket/dash' }, keys],
    [twice, 'both set'],
    [{ DASH_DATABASE_URL: 'libsql://x?sslmode=require' }, 'no parameters but authToken and tls'],
    [{ DASH_DATABASE_AUTH_TOKEN_FILE: 'nowhere' }, 'nowhere'],
    [{ DASH_BASE_URL: 'ftp://x/' }, 'DASH_BASE_URL="ftp://x/"'],
    [{ DASH_BASE_URL: 'dash.example' }, 'DASH_BASE_URL="dash.example"'],
    [{ DASH_BASE_URL: 'https://x/?a' }, 'DASH_BASE_URL="https://x/?(not shown)"'],
    [{ DASH_BASE_URL: 'https://x/#a' }, 'DASH_BASE_URL="https://x/#a"'],
    [{ DASH_BASE_URL: 'https://a@x/' }, 'DASH_BASE_URL="https://(not shown)@x/"'],
    ...['9464', '::1:9464', '127.0.0.1:70000', 'http://127.0.0.1:9464'].map(
      (value): [Record<string, string>, string] => [{ DASH_METRICS_ADDRESS: value }, address],
    ),
    [
      { DASH_HEALTHCHECK_PING_URL: 'hc-ping.example/secret-key' },
      'DASH_HEALTHCHECK_PING_URL=(not shown) must be',
    ],
    [{ DASH_MODEL_WEBHOOK_URL: 'https://hooks.example/secret-key' }, 'need each other'],
    [{ GITHUB_TOKEN: 'two words' }, 'GITHUB_TOKEN=(not shown) must be'],
    [{ HF_TOKEN: 'new\nline' }, 'HF_TOKEN=(not shown) must be'],
    [{ OPENROUTER_API_KEY: 'two words' }, 'OPENROUTER_API_KEY=(not shown) must be'],
  ])('the setting %j is refused before a job begins, and its secrets are not shown', async (env, says) => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'token'), 'secret\n')
    const { code, stderr } = await run(['publish-year'], { env, cwd })
    expect([code, stderr]).toEqual([78, expect.stringContaining(says)])
    expect(stderr).not.toMatch(/secret-key|two words|new/)
  })

  test('flags override the environment, which overrides the env file, which overrides defaults', async () => {
    const cwd = temporaryFolder()
    const [flag = '', env = '', file = ''] = ['flag', 'env', 'file'].map((name) => join(cwd, name))
    writeFileSync(join(cwd, '.env'), `DASH_DATA_DIR=${file}\n`)
    const missing = async (args: string[], variables: Record<string, string>): Promise<string> =>
      (await run(['publish-year', ...args], { cwd, env: variables })).stderr
    expect(await missing(['--data-dir', flag], { DASH_DATA_DIR: env })).toContain(flag)
    expect(await missing([], { DASH_DATA_DIR: env })).toContain(env)
    expect(await missing([], {})).toContain(file)
  })

  const creating = 'serve publish-year snapshot evaluate-models verify-archive model reindex mcp'

  test.each(creating.split(' '))('the command %s does not create a named data folder', async (command) => {
    const missing = join(temporaryFolder(), 'unmounted')
    const flag = await run([command, '--data-dir', missing], { env: { PORT: '0' } })
    expect([flag.code, flag.stderr]).toEqual([64, expect.stringMatching(/correct --data-dir\n$/)])
    expect(flag.stderr).toContain(missing)
    const named = await run([command], { env: { DASH_DATA_DIR: missing, PORT: '0' } })
    expect([named.code, named.stderr]).toEqual([78, expect.stringMatching(/correct DASH_DATA_DIR\n$/)])
    expect(existsSync(missing)).toBe(false)
  })

  test.each([
    ['PORT', '70000', 'PORT="70000" must be a port from 0 to 65535'],
    [
      'HOST',
      'fe80::1%eth0',
      'HOST="fe80::1%eth0" must be a host name or an IP address, without brackets or zone',
    ],
    ['HOST', '203.0.113.9', 'choose an address of this machine with HOST'],
  ])(
    'the value %s=%s from the environment or the env file ends with 78 and is named',
    async (name, value, message) => {
      const cwd = temporaryFolder()
      const fromEnvironment = await run(['serve'], { cwd, env: { [name]: value } })
      expect([fromEnvironment.code, fromEnvironment.stderr]).toEqual([78, expect.stringContaining(message)])
      writeFileSync(join(cwd, 'server.env'), `${name}=${value}\n`)
      const fromFile = await run(['serve', '--dotenv', 'server.env'], { cwd })
      expect(fromFile.code).toBe(78)
      expect(fromFile.stderr).toContain(message.replace(/(?= must|$)/, ` in ${join(cwd, 'server.env')}`))
      expect(readdirSync(cwd)).toEqual(['server.env'])
    },
  )

  test.each(['serve', 'config', 'top', 'init --no-env', 'verify a b'])(
    'dash %s ends with 78 and the number of a line of the env file that cannot be read',
    async (line) => {
      const cwd = temporaryFolder()
      writeFileSync(join(cwd, '.env'), 'PORT=1\nOPENAI_API_KEY\nDASH_DATA_DIR=data\n')
      const { code, stderr } = await run(line.split(' '), { cwd })
      const reason = `${join(cwd, '.env')} cannot be read: line 2 is`
      expect([code, stderr]).toEqual([78, expect.stringContaining(reason)])
      expect(readdirSync(cwd)).toEqual(['.env'])
    },
  )

  test.each(['config PORT', 'init --no-env', 'top', 'search x', 'verify a b'])(
    'dash %s names unknown DASH_ variables on standard error, but not with --quiet',
    async (line) => {
      const cwd = temporaryFolder()
      writeFileSync(join(cwd, '.env'), 'DASH_LOGLEVEL=warn\ndash_port=1\n')
      const env = { DASH_DATADIR: 'x' }
      const { stdout, stderr } = await run([...line.split(' '), '--json'], { cwd, env })
      const told = 'is set, but dash has no such variable; dash config lists all names\n'
      expect(stderr).toContain(`DASH_DATADIR ${told}`)
      if (line === 'config PORT') expect(stderr).toContain(`DASH_LOGLEVEL ${told}dash_port ${told}`)
      expect(stdout).not.toContain('DASH_DATADIR')
      const quiet = await run([...line.split(' '), '--quiet'], { cwd, env })
      expect(quiet.stderr).not.toContain('DASH_DATADIR')
    },
  )

  test('the default data folder is created if none is named', async () => {
    const cwd = temporaryFolder()
    expect((await run(['publish-year', '--once', '--allow-empty'], { cwd })).code).toBe(0)
    expect(existsSync(join(cwd, 'dash-data', 'ledger.db'))).toBe(true)
    const audited = temporaryFolder()
    const audit = await run(['verify-archive'], { cwd: audited })
    expect(audit).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^sound, but nothing is published/),
    })
    const elsewhere = { cwd: temporaryFolder(), env: { DASH_LEDGER_URL: `file:${audited}/ledger.db` } }
    expect((await run(['verify-archive'], elsewhere)).stderr).not.toContain('is new')
    expect(audit.stderr).toContain(`${join(audited, 'dash-data')} is new; name an existing data folder`)
    expect(readdirSync(audited)).toEqual(['dash-data'])
  })
})

function shownStore(url: string): [Record<string, string>, string] {
  return [{ DASH_STORE_URL: url }, JSON.stringify(url)]
}

const NO_FEED = 'create one with dash import signals'

test('a command that fails before it does anything creates no folder', async () => {
  const cwd = temporaryFolder()
  const port = await takenPort()
  for (const [wanted, args, message = ''] of [
    [69, ['serve', '--port', `${port}`], `port ${port} on 127.0.0.1 is taken`],
    [69, ['chat', '--url', 'http://127.0.0.1:9', 'hello']],
    [64, ['copy-archive', '--to', 'copy']],
    [64, ['copy-archive', '--data-dir', temporaryFolder(), '--to', 'copy'], 'the archive to copy is empty'],
    [78, ['export', 'site'], 'run dash checkpoint, after dash publish-year if nothing is published'],
    [74, ['reindex'], NO_FEED],
    [74, ['search', 'rust'], NO_FEED],
    [74, ['mcp'], NO_FEED],
    [69, ['model', '--url', 'http://127.0.0.1:9']],
  ] as const) {
    const { code, stderr } = await run(args, { cwd })
    expect([args, code, readdirSync(cwd)]).toEqual([args, wanted, []])
    expect(stderr).toContain(message)
  }
})

test('the stack of a refusal is printed under --verbose alone', async () => {
  const cwd = temporaryFolder()
  const stackLine = /^ {4}at /m
  expect((await run(['search', 'rust', '--verbose'], { cwd })).stderr).toMatch(stackLine)
  expect((await run(['search', 'rust'], { cwd })).stderr).not.toMatch(stackLine)
})

test('a job that fails under --json prints a failed result with its reason', async () => {
  const cwd = temporaryFolder()
  for (const [wanted, job, ...flags] of [
    [74, 'reindex'],
    [64, 'copy-archive', '--to', 'copy'],
    [64, 'snapshot', '--data-dir', 'missing'],
    [69, 'evaluate-models'],
  ] as const) {
    const env = { OPENROUTER_BASE_URL: 'http://127.0.0.1:9' }
    const { code, stdout, stderr } = await run([job, ...flags, '--json'], { cwd, env })
    const result = JSON.parse(stdout) as { reason: string }
    expect([code, result]).toMatchObject([wanted, { job, outcome: 'failed' }])
    expect(stderr).toContain(`error: ${result.reason}\n`)
  }
})
