import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { dash, metricsUrlOf, serve, temporaryFolder } from '../support/dash.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Runs a tool that reads the operators' files, and returns its exit code and output. */
function run(
  command: string,
  args: readonly string[],
  { cwd = ROOT, input = '', env = {} }: { cwd?: string; input?: string; env?: Record<string, string> } = {},
): { code: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    input,
    env: { PATH: process.env['PATH'] ?? '', HOME: temporaryFolder(), ...env },
    encoding: 'utf8',
  })
  if (error) throw error
  return { code: status, output: `${stdout}${stderr}` }
}

describe('Prometheus', () => {
  test('Prometheus accepts the rules and the example configuration, and the alerts pass their tests', () => {
    const prometheus = join(ROOT, 'ops/prometheus')
    const config = run('promtool', ['check', 'config', '--lint=all', 'prometheus.yml'], { cwd: prometheus })
    expect(config, config.output).toMatchObject({ code: 0 })
    const tests = run('promtool', ['test', 'rules', 'alerts.yml'], { cwd: join(ROOT, 'test/ops') })
    expect(tests, tests.output).toMatchObject({ code: 0 })
  })

  test('promtool accepts the metrics of a server, with those of a job, without a warning', async () => {
    const env = { DASH_METRICS_ADDRESS: '127.0.0.1:0', DASH_DATA_DIR: temporaryFolder() }
    const server = await serve([], { env })
    await (await fetch(`${server.url}/api/feed`)).text()
    const collectEnv = { ...env, DASH_LOBSTERS_URL: 'http://127.0.0.1:1' }
    expect((await dash(['collect', '--source', 'lobsters'], { env: collectEnv })).code).toBe(69)
    const scraped = await (await fetch(await metricsUrlOf(server))).text()
    expect(scraped).toContain('dash_job_last_exit_code{command="collect"} 69')
    expect(run('promtool', ['check', 'metrics'], { input: scraped })).toEqual({ code: 0, output: '' })
  })
})

describe('Caddy', () => {
  test.each(['ops/caddy/Caddyfile', 'ops/scale/Caddyfile', 'ops/static/Caddyfile'])(
    'Caddy accepts %s',
    (name) => {
      const env = { DASH_DOMAIN: 'dash.example.org' }
      const { code, output } = run('caddy', ['validate', '--adapter', 'caddyfile', '--config', name], { env })
      expect(code, output).toBe(0)
      expect(output).toContain('Valid configuration')
    },
  )
})

describe('docker-compose', () => {
  /** Creates a folder with the compose files and the files they name, and the env files of an operator. */
  function operatorsFolder(): string {
    const folder = temporaryFolder()
    for (const name of ['compose.yaml', 'ops'])
      cpSync(join(ROOT, name), join(folder, name), { recursive: true })
    copyFileSync(join(folder, 'ops/container/env.example'), join(folder, '.env'))
    copyFileSync(join(folder, 'ops/scale/env.example'), join(folder, 'ops/scale/.env'))
    return folder
  }

  test('docker-compose accepts the file of one machine', () => {
    const { code, output } = run('docker-compose', ['config', '--quiet'], { cwd: operatorsFolder() })
    expect([code, output]).toEqual([0, ''])
  })

  const SCALE = ['--project-directory', '.', '-f', 'ops/scale/compose.yaml', '--env-file', 'ops/scale/.env']

  test('docker-compose accepts the file of several servers only with a secret', () => {
    const cwd = operatorsFolder()
    const without = run('docker-compose', [...SCALE, 'config', '--quiet'], { cwd })
    expect(without.code).not.toBe(0)
    expect(without.output).toContain('set it to one secret for all servers')
    const env = { DASH_SESSION_SECRET: 'a secret of thirty-two bytes, or more' }
    expect(run('docker-compose', [...SCALE, 'config', '--quiet'], { cwd, env })).toEqual({
      code: 0,
      output: '',
    })
    const { output } = run('docker-compose', [...SCALE, 'config', '--services'], { cwd, env })
    expect(output.split('\n').filter(Boolean).sort()).toEqual([
      'caddy',
      'libsql',
      'server1',
      'server2',
      'server3',
      'timer',
    ])
  })
})

test.each(['ops/container/timer.sh', 'docs/audit.sh', 'docs/verify-proof.sh'])(
  'shellcheck reports nothing about %s',
  (script) => {
    expect(run('shellcheck', [script])).toMatchObject({ output: '' })
  },
)
