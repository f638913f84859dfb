import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'rolldown/utils'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SOURCES = join(ROOT, 'src')
/** Beside `src`, so that a compiled module finds migrations, assets and packages where its source does. */
const COMPILED = join(ROOT, 'dist-test')

/**
 * Bundles the scripts of the pages, and compiles each source separately, without type checks, before the first suite runs. Only changed files are written, each
 * atomically, so that another run can use the folder at the same time.
 */
export async function setup(): Promise<void> {
  const { bundlePage } = (await import(new URL('../../scripts/build/page.mjs', import.meta.url).href)) as {
    bundlePage: () => Promise<unknown>
  }
  await bundlePage()
  for (const name of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const path = join(COMPILED, name.replace(/ts$/, 'js'))
    const compiled = compile(name)
    if (existsSync(path) && readFileSync(path, 'utf8') === compiled) continue
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}-${process.pid}`, compiled)
    renameSync(`${path}-${process.pid}`, path)
  }
}

function compile(name: string): string {
  const { code, errors } = transformSync(name, readFileSync(join(SOURCES, name), 'utf8'), {
    typescript: { rewriteImportExtensions: 'rewrite' },
  })
  const [error] = errors
  if (error) throw new Error(`${name}: ${error.message}`)
  return code
}

/** URL of a compiled source, for a thread or a process: it cannot read TypeScript. */
export function builtModule(path: string): string {
  const url = new URL(`../../dist-test/${path}`, import.meta.url)
  if (!existsSync(url)) throw new Error(`src/${path.replace(/js$/, 'ts')} is missing`)
  return url.href
}
