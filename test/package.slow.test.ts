import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Files of the package beside the built program. A new kind of file must be added here on purpose. */
const BELONGS = [
  /^ops\/(?:caddy|container|grafana|prometheus|scale|static|systemd)\/(?!\.)/,
  /^(?:LICENSE|package\.json|(?:README|CHANGELOG|CONTRIBUTING|bench\/README)\.md)$/,
  /^assets\/demo\/[\w-]+\.(?:ndjson\.gz|json|md|txt)$/,
  /^assets\/embed\/[\w-]+\.js$/,
  /^assets\/page\/[\w-]+\.(?:css|svg)$/,
  /^dist-page\/[\w-]+\.js$/,
  /^docs\/pictures\/[\w-]+\.(?:png|gif)$/,
  /^docs\/(?:(?:audit|verify-proof)\.sh|check-log\.go|(?:decisions\/)?[\w-]+\.md|diagrams\/[\w-]+\.svg)$/,
  /^migrations\/(?:feed|ledger|state)\/(?:\d{4}_\w+\.sql|meta\/_journal\.json)$/,
]

test('the package has the built program, the files that it reads, and nothing else', () => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const listed = JSON.parse(packed) as { files: { path: string }[] }[]
  const paths = listed.flatMap(({ files }) => files).map(({ path }) => path)
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  const built = sources
    .filter((name) => name.endsWith('.ts') && !name.startsWith(join('server', 'page', 'browser')))
    .map((name) => `dist/${name.replaceAll('\\', '/').replace(/ts$/, 'js')}`)
  const [program, others] = [
    paths.filter((path) => path.startsWith('dist/') && !/^dist\/chunks\/[\w-]+\.(?:js|txt)$/.test(path)),
    paths.filter((path) => !path.startsWith('dist/')),
  ]
  expect(program.sort()).toEqual(built.sort())
  expect(others.filter((path) => !BELONGS.some((kind) => kind.test(path)))).toEqual([])
  expect(paths).toEqual(
    expect.arrayContaining([
      'dist/chunks/LICENSES.txt',
      'assets/page/page.css',
      'dist-page/page.js',
      'assets/demo/recommendation.json',
      'docs/verify-proof.sh',
      'ops/grafana/dash.json',
      'ops/container/timer.sh',
      'docs/decisions/README.md',
      'bench/README.md',
      'README.md',
      'migrations/state/meta/_journal.json',
    ]),
  )
})

/** Returns the files of the built program with their modification times. */
const built = (): Map<string, number> =>
  new Map(
    readdirSync(join(ROOT, 'dist'), { recursive: true, encoding: 'utf8' }).map((name) => [
      name,
      statSync(join(ROOT, 'dist', name)).mtimeMs,
    ]),
  )

test('a build of unchanged sources does not change a running program', () => {
  const before = built()
  expect(before.has('cli/main.js')).toBe(true)
  execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: 'ignore' })
  expect(built()).toEqual(before)
})

const CHUNKS = join(ROOT, 'dist', 'chunks')

/** Path and text of every file of the bundle (docs/decisions/0042-program-bundle.md). */
const bundle = [join(ROOT, 'dist/cli/main.js'), ...readdirSync(CHUNKS).map((name) => join(CHUNKS, name))]
  .filter((path) => path.endsWith('.js'))
  .map((path) => ({ path, text: readFileSync(path, 'utf8') }))

const found = (pattern: RegExp): { path: string; what: string }[] =>
  bundle.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map(([, what = '']) => ({ path, what: resolve(dirname(path), what) })),
  )

describe('the bundled program', () => {
  test('the program is executable: else `npx dash` starts the shell of that name', () => {
    expect(() => accessSync(join(ROOT, 'dist/cli/main.js'), constants.X_OK)).not.toThrow()
  })

  test('one file has the code that every command needs', () => {
    const { text = '' } = bundle[0] ?? {}
    const imported = [...text.matchAll(/(?:from|import) "([^"]+)"/g)].map(([, name]) => name)
    expect(imported.filter((name = '') => !name.startsWith('node:'))).toEqual(['../chunks/program.js'])
  })

  test('no module imports the first module, which waits for all others', () => {
    const imports = found(/(?:from |import |import\()"(\.[^"]+)"/g)
    expect(imports.length).toBeGreaterThan(100)
    expect(imports.filter(({ what }) => what === join(ROOT, 'dist/cli/main.js'))).toEqual([])
  })

  test('workers, migrations and assets are beside the compiled modules', () => {
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

  test('every bundled package has its licence beside the bundle', () => {
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
