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
  const env = { PORT: '5000', DASH_LOG_LEVEL: '', OPENAI_API_KEY_FILE: 'key' }
  const settings = await settingsOf(['--data-dir', '/from/the/flag'], { cwd, env })
  expect([...settings.keys()]).toEqual(namedVariables.map(({ name }) => name))
  expect(settings.get('DASH_DATA_DIR')).toMatchObject({
    value: '/from/the/flag',
    source: 'flag',
    from: '--data-dir',
  })
  expect(settings.get('PORT')).toMatchObject({ value: '5000', source: 'environment', from: null })
  expect(settings.get('HOST')).toMatchObject({ value: '::1', source: 'env-file', from: join(cwd, '.env') })
  expect(settings.get('OPENAI_API_KEY')).toMatchObject({
    value: '(not shown)',
    source: 'secret-file',
    from: 'key',
  })
  // An empty variable overrides the value of the file.
  expect(settings.get('DASH_LOG_LEVEL')).toMatchObject({ value: 'info', source: 'default' })
  expect(settings.get('DASH_LEDGER_URL')).toMatchObject({
    value: 'file:///from/the/flag/ledger.db',
    source: 'default',
  })
  expect(settings.get('DASH_CHAT_MODEL')).toMatchObject({ value: null, source: 'default' })
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
      const env = {
        ...Object.fromEntries(
          secrets.map((name) => [
            name,
            /_(URL|WEBHOOK)$/.test(name) ? `https://check.example/${secret}` : secret,
          ]),
        ),
        DASH_MODEL_WEBHOOK_SECRET: `whsec_${secret}`,
        DASH_VERIFICATION_SITE_KEY: 'site-key',
        DASH_DATABASE_URL: `libsql://user:${secret}@db.example/?authToken=${secret}`,
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
  const env = { PORT: 'many', HOST: 'here', DASH_SESSION_SECRET: 'short-secret' }
  const { code, stdout, stderr } = await dash(['config', '--json'], { env })
  expect(code).toBe(78)
  const { problems, settings } = JSON.parse(stdout) as { problems: string[]; settings: Shown[] }
  expect(problems).toHaveLength(2)
  expect(stderr).toContain('PORT="many" must be a port')
  expect(stderr + stdout).not.toContain('short-secret')
  expect(settings.find(({ name }) => name === 'HOST')?.value).toBe('here')
})

test('settings can be selected by name, and an unknown name is refused', async () => {
  expect((await dash(['config', 'PORT'])).stdout).toBe('Server\n  PORT  3000  default\n')
  const { code, stderr } = await dash(['config', 'DASH_PROT'])
  expect(code).toBe(64)
  expect(stderr).toContain('unknown setting "DASH_PROT"')
})
