import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ValidationSeverity, validate } from 'dockerfile-utils'
import { describe, expect, test } from 'vitest'
import { isInRange, parseIpAddress, parseIpRange } from '../src/domain/address.ts'
import { namedVariables, unknownNames } from '../src/cli/settings/variables.ts'
import { localSource, unreachableUrl } from './support/local-source.ts'

const fileOf = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))
const read = (name: string): string => readFileSync(fileOf(name), 'utf8')

/** Returns the instructions of a Dockerfile, each on one line. */
const instructions = read('Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, ' ')
  .split('\n')
  .filter(Boolean)

const argumentsOf = (name: string): string[] =>
  instructions.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1))

/** Returns the paths that are copied from the project's folder. */
const copied = argumentsOf('COPY')
  .filter((line) => !line.startsWith('--from='))
  .flatMap((line) => line.split(/\s+/).slice(0, -1))

describe('the Dockerfile', () => {
  test('the linter accepts the Dockerfile', () => {
    const { ERROR } = ValidationSeverity
    const found = validate(read('Dockerfile'), {
      deprecatedMaintainer: ERROR,
      directiveCasing: ERROR,
      emptyContinuationLine: ERROR,
      instructionCasing: ERROR,
      instructionCmdMultiple: ERROR,
      instructionEntrypointMultiple: ERROR,
      instructionHealthcheckMultiple: ERROR,
      instructionJSONInSingleQuotes: ERROR,
      instructionWorkdirRelative: ERROR,
    })
    expect(found.map(({ message }) => message)).toEqual([])
  })

  test('every copied path exists, and .dockerignore does not exclude it', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1))
    expect(copied.length).toBeGreaterThan(10)
    for (const name of copied.map((each) => each.replace('./', ''))) {
      expect(existsSync(fileOf(name)), name).toBe(true)
      expect(allowed).toContain(name)
    }
    for (const name of allowed) expect(copied.map((each) => each.replace('./', ''))).toContain(name)
  })

  test('the Dockerfile copies all files of the package', () => {
    const { files } = JSON.parse(read('package.json')) as { files: string[] }
    const brought = [
      ...copied,
      ...argumentsOf('COPY').flatMap((line) => /^--from=build \/build\/(\S+)/.exec(line)?.[1] ?? []),
    ]
    // An image needs neither the package's copy of the lock file nor the files it excludes.
    const held = files.filter((name) => !name.startsWith('!') && name !== 'npm-shrinkwrap.json')
    for (const name of [...held, 'package.json', 'README.md', 'LICENSE']) expect(brought).toContain(name)
  })

  test('the image runs as an unprivileged user, from absolute paths, with existing settings', () => {
    const user = instructions.indexOf('USER node')
    expect(user).toBeGreaterThan(0)
    expect(instructions.slice(user).filter((line) => /^(?:RUN|COPY|ADD|USER) /.test(line))).toEqual([
      'USER node',
    ])
    const program = ['/usr/local/bin/node', '/opt/dash/dist/cli/main.js']
    expect(argumentsOf('ENTRYPOINT').map((line) => JSON.parse(line) as unknown)).toEqual([program])
    const set = argumentsOf('ENV').flatMap((line) =>
      [...line.matchAll(/([A-Z_]+)=/g)].map(([, name]) => name),
    )
    const known = new Set<string | undefined>(namedVariables.map(({ name }) => name))
    expect(set.filter((name) => !known.has(name))).toEqual(['NODE_ENV'])
  })

  test('the health check of the image succeeds exactly while the server is ready', async () => {
    const [line = ''] = argumentsOf('HEALTHCHECK')
    const [node, ...args] = JSON.parse(line.replace(/^.* CMD /, '')) as string[]
    expect(node).toBe('/usr/local/bin/node')
    expect(args.join(' ')).toContain('http://127.0.0.1:3000/readyz')
    const check = async (base: string): Promise<number> => {
      const here = args.map((each) => each.replace('http://127.0.0.1:3000', base))
      const child = spawn(process.execPath, here, { stdio: 'ignore' })
      return (await once(child, 'exit'))[0] as number
    }
    const { url: ready } = await localSource(({ target }, response) =>
      response.writeHead(target === '/readyz' ? 200 : 404).end('{"status":"ready"}'),
    )
    const { url: draining } = await localSource((_request, response) => response.writeHead(503).end())
    expect(await Promise.all([ready, draining, await unreachableUrl()].map(check))).toEqual([0, 1, 1])
  })
})

describe.each(['compose.yaml', 'ops/scale/compose.yaml'])('%s', (name) => {
  test('only the address of the proxy is trusted, which no other container can get', () => {
    const [, trusted = ''] = /DASH_TRUSTED_PROXIES: (\S+)/.exec(read(name)) ?? []
    const [, fixed] = /ipv4_address: (\S+)/.exec(read(name)) ?? []
    expect(trusted).toBe(fixed)
    const [, subnet = ''] = /subnet: (\S+)/.exec(read(name)) ?? []
    const [, given = ''] = /ip_range: (\S+)/.exec(read(name)) ?? []
    const isIn = (range: string): boolean => {
      const [address, parsed] = [parseIpAddress(trusted), parseIpRange(range)]
      if (address === null || parsed === null) throw new Error(`${trusted} or ${range} cannot be read`)
      return isInRange(address, parsed)
    }
    expect([isIn(subnet), isIn(given)]).toEqual([true, false])
    // The first address of a network is its gateway: the host.
    expect(trusted).not.toMatch(/\.1$/)
  })
})

test.each([
  ['compose.yaml', /^ +(DASH_[A-Z_]+|HOST|PORT):/gm],
  ['ops/scale/compose.yaml', /^ +(DASH_[A-Z_]+|HOST|PORT):/gm],
  ['ops/container/env.example', /^([A-Z_]+)=/gm],
  ['ops/scale/env.example', /^([A-Z_]+)=/gm],
])('the file %s names variables of dash, and of the Caddyfile', (name, pattern) => {
  const known = new Set<string>(namedVariables.map((variable) => variable.name))
  const set = [...read(name).matchAll(pattern)].map(([, variable = '']) => variable)
  expect(set.length).toBeGreaterThan(0)
  const others = set.filter((variable) => !known.has(variable))
  expect(others.filter((variable) => variable !== 'DASH_DOMAIN' && variable !== 'DASH_UPSTREAM')).toEqual([])
  // Servers and jobs read the env file too, and must not name what it holds for Caddy.
  if (name.endsWith('env.example'))
    expect(unknownNames(Object.fromEntries(set.map((variable) => [variable, 'x'])))).toEqual([])
})
