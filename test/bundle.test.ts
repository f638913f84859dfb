import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CHUNKS = join(ROOT, 'dist', 'chunks')

/** Of every file of the bundle (docs/decisions/0042-a-bundled-program.md) its path and text. */
const bundle = [join(ROOT, 'dist/cli/main.js'), ...readdirSync(CHUNKS).map((name) => join(CHUNKS, name))]
  .filter((path) => path.endsWith('.js'))
  .map((path) => ({ path, text: readFileSync(path, 'utf8') }))

const found = (pattern: RegExp): { path: string; what: string }[] =>
  bundle.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map(([, what = '']) => ({ path, what: resolve(dirname(path), what) })),
  )

describe('the bundled program', () => {
  test('can be executed: else `npx dash` falls through to the shell of that name', () => {
    expect(() => accessSync(join(ROOT, 'dist/cli/main.js'), constants.X_OK)).not.toThrow()
  })

  test('starts with what every command needs, in one file', () => {
    const { text = '' } = bundle[0] ?? {}
    const imported = [...text.matchAll(/(?:from|import) "([^"]+)"/g)].map(([, name]) => name)
    expect(imported.filter((name = '') => !name.startsWith('node:'))).toEqual(['../chunks/program.js'])
  })

  test('loads nothing that waits for its first module, which waits for all of them', () => {
    const imports = found(/(?:from |import |import\()"(\.[^"]+)"/g)
    expect(imports.length).toBeGreaterThan(100)
    expect(imports.filter(({ what }) => what === join(ROOT, 'dist/cli/main.js'))).toEqual([])
  })

  test('finds workers, migrations and assets beside the compiled modules', () => {
    const addresses = found(/new URL\("(\.\.\/(?:adapters|cli|server)\/[^"]+)", import\.meta\.url\)/g)
    expect(addresses.length).toBeGreaterThan(8)
    expect(addresses.filter(({ what }) => !existsSync(what))).toEqual([])
    const others = bundle.flatMap(({ text }) =>
      [...text.matchAll(/.*import\.meta\.url.*/g)].filter(
        ([line]) => !/new URL\("\.\.\/.*, import\.meta/.test(line),
      ),
    )
    expect(others.map(([line]) => line.trim())).toEqual([
      'var __require = /* #__PURE__ */ (() => createRequire(import.meta.url))();',
    ])
  })

  test('has no package in it but those whose licences stand beside it', () => {
    const sources = readdirSync(CHUNKS)
      .filter((name) => name.endsWith('.map'))
      .flatMap(
        (name) => (JSON.parse(readFileSync(join(CHUNKS, name), 'utf8')) as { sources: string[] }).sources,
      )
    const packages = sources.flatMap((source) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? [])
    const licences = readFileSync(join(CHUNKS, 'LICENSES.txt'), 'utf8')
    expect([...new Set(packages)].sort()).toEqual(['aws4fetch', 'commander', 'destr', 'unstorage', 'zod'])
    for (const name of new Set(packages)) expect(licences).toMatch(new RegExp(`^${name} \\d+\\.`, 'm'))
  })
})
