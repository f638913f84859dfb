import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { namedVariables } from '../../../src/cli/settings/variables.ts'
import { dash, temporaryFolder } from '../../support/dash.ts'

interface Shown {
  name: string
  value: string | null
  source: string
  from: string | null
}

async function settingsOf(args: string[], options: Parameters<typeof dash>[1]): Promise<Map<string, Shown>> {
  const { code, stdout } = await dash(['config', '--json', ...args], options)
  expect(code).toBe(0)
  const { settings } = JSON.parse(stdout) as { settings: Shown[] }
  return new Map(settings.map((setting) => [setting.name, setting]))
}

test('every setting is shown with its value and origin', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, '.env'), 'PORT=4000\nHOST=::1\nDASH_LOG_LEVEL=warn\nDASH_DATA_DIR=/from/the/file\n')
  writeFileSync(join(cwd, 'key'), 'the key of the provider\n'.replaceAll(' ', '-'))
  const env = {
    PORT: '5000',
    DASH_LOG_LEVEL: '',
    OPENAI_API_KEY_FILE: 'key',
    DASH_BASE_URL: 'https://dash.example',
  }
  const settings = await settingsOf(['--data-dir', '/from/the/flag'], { cwd, env })
  expect([...settings.keys()]).toEqual(namedVariables.map(({ name }) => name))
  for (const [name, value, source, from] of [
    ['DASH_DATA_DIR', '/from/the/flag', 'flag', '--data-dir'],
    ['PORT', '5000', 'environment', null],
    ['HOST', '::1', 'env-file', join(cwd, '.env')],
    ['OPENAI_API_KEY', '(not shown)', 'secret-file', 'key'],
    // An empty variable overrides the value of the file.
    ['DASH_LOG_LEVEL', 'info', 'default', null],
    ['DASH_LEDGER_URL', 'file:///from/the/flag/ledger.db', 'default', null],
    ['DASH_LOG_ORIGIN', 'dash.example/tlog/year', 'default', null],
    ['DASH_CHAT_MODEL', null, 'default', null],
  ] as const)
    expect(settings.get(name)).toMatchObject({ value, source, from })
})

test('config and doctor read a secret from a pipe only once', async () => {
  const cwd = temporaryFolder()
  execFileSync('mkfifo', ['key'], { cwd })
  for (const command of ['config', 'doctor --offline']) {
    const writer = spawn('sh', ['-c', 'echo the-key > key'], { cwd })
    const { stdout } = await dash([...command.split(' '), '--json'], {
      cwd,
      env: { OPENAI_API_KEY_FILE: 'key' },
    })
    expect(stdout, command).not.toContain('OPENAI_API_KEY_FILE')
    expect(JSON.parse(stdout), command).toBeTypeOf('object')
    writer.kill()
  }
})

test('no secret and no length of a secret is shown, whatever its origin', async () => {
  const secrets = namedVariables.filter(({ secret }) => secret).map(({ name }) => name)
  const outputs = await Promise.all(
    [40, 80].map(async (length) => {
      const secret = 'x'.repeat(length)
      const valueOf = (name: string): string =>
        /_(URL|WEBHOOK)$/.test(name) ? `https://check.example/${secret}` : secret
      const env = {
        ...Object.fromEntries(secrets.map((name) => [name, valueOf(name)])),
        DASH_MODEL_WEBHOOK_SECRET: `whsec_${secret}`,
        DASH_VERIFICATION_SITE_KEY: 'site-key',
        DASH_DATABASE_URL: `libsql://db.example/?authToken=${secret}`,
      }
      return Promise.all([dash(['config'], { env }), dash(['config', '--json'], { env })])
    }),
  )
  expect(secrets.length).toBeGreaterThan(10)
  expect(outputs.flat().map(({ code }) => code)).toEqual([0, 0, 0, 0])
  expect(JSON.stringify(outputs)).not.toContain('xx')
  expect(outputs[0]).toEqual(outputs[1])
})

test('an invalid configuration is shown with all problems, and ends with 78', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, '.env'), 'PORT=many\n')
  const env = { HOST: 'here', DASH_SESSION_SECRET: 'short-secret' }
  const { code, stdout, stderr } = await dash(['config', '--json'], { cwd, env })
  expect(code).toBe(78)
  const { problems, settings } = JSON.parse(stdout) as { problems: string[]; settings: Shown[] }
  expect(problems).toHaveLength(2)
  expect(stderr).toContain(`PORT="many" in ${join(cwd, '.env')} must be a port`)
  expect(stderr + stdout).not.toContain('short-secret')
  expect(settings.find(({ name }) => name === 'HOST')?.value).toBe('here')
})

test('settings can be selected by name, and an unknown name is refused', async () => {
  expect((await dash(['config', 'PORT'])).stdout).toBe('Server\n  PORT  3000  default\n')
  const { code, stderr } = await dash(['config', 'DASH_PROT'])
  expect(code).toBe(64)
  expect(stderr).toContain('unknown setting "DASH_PROT"')
})
