import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { waitUntilListening } from '../support/dash.ts'
import type { RunningProgram } from '../support/dash.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const WITHOUT_SCRIPTS = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']

interface Lock {
  packages: Record<string, { version: string }>
}

const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

const { version } = read(join(ROOT, 'package.json')) as { version: string }

/** Runs a program in a folder, with an environment that does not refer to the repository. */
function run(cwd: string, command: string, args: readonly string[]): string {
  const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' }
  return execFileSync(command, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'dash-installed-'))
const tarball = join(folder, `dash-${version}.tgz`)

beforeAll(() => run(ROOT, 'npm', ['pack', '--pack-destination', folder]))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Starts the demo of an installed program from another folder, and waits until it listens. */
function startDemo(command: string): Promise<RunningProgram> {
  const child = spawn(command, ['serve', '--demo', '--port', '0'], {
    cwd: tmpdir(),
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return waitUntilListening(child)
}

/** Checks the first pages of a running demo, each with its files beside the program. */
async function checkDemo(url: string): Promise<void> {
  for (const [path, contains] of [
    ['/readyz', 'ok'],
    ['/', 'DEMO'],
    ['/docs/operations', 'Operations'],
    ['/docs/changelog', 'Changelog'],
    ['/llms.txt', '# dash'],
    ['/docs/api/search/openapi.json', '/api/trend'],
    ['/api/feed?sort=week', 'hackerNews'],
    ['/api/feed/history/index', 'top-year-v3'],
    ['/api/search?q=rust', 'Rust'],
    ['/api/free-llm/recommendation', 'primary'],
  ] as const) {
    const response = await fetch(`${url}${path}`)
    const text = await response.text()
    expect([path, response.status]).toEqual([path, 200])
    expect(text, path).toContain(contains)
    for (const [, asset = ''] of text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g))
      expect([asset, (await fetch(`${url}${asset}`)).status]).toEqual([asset, 200])
  }
}

describe('the package, installed into an empty folder', () => {
  const home = join(folder, 'installed')
  const bin = join(home, 'node_modules/.bin')

  beforeAll(() => {
    mkdirSync(home)
    run(home, 'npm', ['init', '--yes'])
    run(home, 'npm', ['install', ...WITHOUT_SCRIPTS, tarball])
  })

  test('an installed package runs by either name, through npx, and by its absolute path', () => {
    for (const name of ['dash', 'dashctl']) {
      expect(run(tmpdir(), join(bin, name), ['--version'])).toBe(`${version}\n`)
      expect(run(home, 'npx', ['--no-install', name, '--version'])).toBe(`${version}\n`)
    }
    const program = join(home, 'node_modules/dash/dist/cli/main.js')
    expect(run(tmpdir(), process.execPath, [program, '--version'])).toBe(`${version}\n`)
  })

  test('an installed package serves the demo with all it needs, and stops', async () => {
    const { url, end } = await startDemo(join(bin, 'dashctl'))
    await checkDemo(url)
    expect(await end('SIGTERM')).toBe(0)
  })

  test('an installed package gives its tools to an MCP client that starts it', async () => {
    const client = new Client({ name: 'test', version: '1' })
    const args = ['mcp', '--demo', '--quiet']
    onTestFinished(() => client.close())
    // The demo imports its sample first, which takes time on a busy machine.
    const timeout = 300_000
    const transport = new StdioClientTransport({ command: join(bin, 'dashctl'), args, stderr: 'ignore' })
    await client.connect(transport, { timeout })
    expect(client.getServerVersion()).toMatchObject({ name: 'dash', version })
    expect((await client.listTools()).tools).toHaveLength(6)
  })
})

test('an unpacked package gets the versions of the lock file, without development dependencies', () => {
  const home = join(folder, 'unpacked')
  mkdirSync(home)
  run(home, 'tar', ['xzf', tarball, '--strip-components', '1'])
  run(home, 'npm', ['ci', '--omit=dev', ...WITHOUT_SCRIPTS])
  const { packages: locked } = read(join(ROOT, 'package-lock.json')) as Lock
  const { packages } = read(join(home, 'node_modules/.package-lock.json')) as Lock
  const versions = Object.entries(packages).map(([path, { version: installed }]) => [path, installed])
  expect(versions.length).toBeGreaterThan(100)
  expect(versions).toEqual(Object.keys(packages).map((path) => [path, locked[path]?.version]))
  expect(existsSync(join(home, 'node_modules/vitest'))).toBe(false)
  // Packing leaves no file behind.
  expect(existsSync(join(ROOT, 'npm-shrinkwrap.json'))).toBe(false)
})
