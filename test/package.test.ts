import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

interface LockedPackage {
  optionalDependencies?: Record<string, string>
  resolved?: string
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), 'utf8'))

const { packages } = read('package-lock.json') as { packages: Record<string, LockedPackage> }

test('the lock file has every package that an install on any platform may ask for', () => {
  const locked = new Set(Object.keys(packages).map((path) => path.split('node_modules/').at(-1)))
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).flatMap((name) => (locked.has(name) ? [] : [`${path} needs ${name}`])),
  )
  expect(locked.size).toBeGreaterThan(100)
  expect(missing).toEqual([])
})

test('the lock file names no place to download from', () => {
  expect(Object.values(packages).flatMap(({ resolved }) => resolved ?? [])).toEqual([])
})

test('every dependency is pinned to one version', () => {
  const { dependencies, devDependencies } = read('package.json') as Record<string, Record<string, string>>
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/)
  }
})

test('the package holds what the built program reads beside itself, and no test', () => {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [{ files }] = JSON.parse(packed) as [{ files: { path: string }[] }]
  const paths = files.map(({ path }) => path)
  expect(paths).toEqual(
    expect.arrayContaining([
      'dist/cli/main.js',
      'assets/page/page.css',
      'assets/page/page.js',
      'assets/demo/titles.json',
      'docs/page.md',
      'docs/decisions/README.md',
      'bench/README.md',
      'README.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'migrations/ledger/meta/_journal.json',
    ]),
  )
  expect(paths.filter((path) => /^(?:test|src|\.ci)\/|\.tsbuildinfo$/.test(path))).toEqual([])
})
