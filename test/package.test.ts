import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './support/temporary-folder.ts'

interface LockedPackage {
  optionalDependencies?: Record<string, string>
  resolved?: string
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), 'utf8'))

const { packages } = read('package-lock.json') as { packages: Record<string, LockedPackage> }

test('the lock file has every package that an installation on any platform may need', () => {
  const locked = new Set(Object.keys(packages).map((path) => path.split('node_modules/').at(-1)))
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).flatMap((name) => (locked.has(name) ? [] : [`${path} needs ${name}`])),
  )
  expect(locked.size).toBeGreaterThan(100)
  expect(missing).toEqual([])
})

test('the lock file names no download address', () => {
  expect(Object.values(packages).flatMap(({ resolved }) => resolved ?? [])).toEqual([])
})

test('every dependency is pinned to one version', () => {
  const { dependencies, devDependencies } = read('package.json') as Record<string, Record<string, string>>
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/)
  }
})

test('the package is not published by accident', () => {
  expect(read('package.json')).toMatchObject({ private: true })
})

describe('the check of dependencies', () => {
  const root = new URL('..', import.meta.url)
  const check = (path: string): { status: number | null; stderr: string } =>
    spawnSync(process.execPath, ['scripts/check-dependencies.mjs', path], { cwd: root, encoding: 'utf8' })

  test('the check accepts the lock file', () => {
    expect(check('package-lock.json')).toMatchObject({ status: 0, stderr: '' })
  })

  test('the check names forbidden licences and known bad versions', async () => {
    const path = join(temporaryFolder(), 'package-lock.json')
    const changed = {
      ...packages,
      'node_modules/strict': { version: '1.0.0', license: 'AGPL-3.0' },
      'node_modules/either': { version: '1.0.0', license: '(AGPL-3.0 OR MIT)' },
      'node_modules/both': { version: '1.0.0', license: 'AGPL-3.0 AND MIT' },
      'node_modules/silent': { version: '1.0.0' },
      'node_modules/tool': { version: '1.0.0', license: 'AGPL-3.0', dev: true },
      'node_modules/a/node_modules/debug': { version: '4.4.2', license: 'MIT' },
      'node_modules/b/node_modules/ws': { version: '8.17.0', license: 'MIT', dev: true },
      'node_modules/c/node_modules/cross-spawn': { version: '6.0.99', license: 'MIT' },
      'node_modules/d/node_modules/cross-spawn': { version: '7.0.5', license: 'MIT' },
    }
    await writeFile(path, JSON.stringify({ packages: changed }))
    const { status, stderr } = check(path)
    expect(status).toBe(1)
    expect(
      stderr
        .trim()
        .split('\n')
        .map((line) => line.split(':')[0]),
    ).toEqual([
      'strict 1.0.0',
      'both 1.0.0',
      'silent 1.0.0',
      'debug 4.4.2',
      'ws 8.17.0',
      'cross-spawn 6.0.99',
    ])
  })
})
