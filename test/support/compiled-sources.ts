import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'rolldown/utils'
import { onTestFinished } from 'vitest'

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

/** A Node process that runs a script and exchanges lines. */
export interface ScriptProcess {
  /** The next line of its standard output, or null after the last. */
  line(): Promise<string | null>
  /** Writes a line to its standard input. */
  writeLine(text: string): void
  kill(): void
  /** Resolves when it has ended. */
  ended: Promise<Ended>
}

type Ended = { code: number | null; signal: NodeJS.Signals | null; errors: string }

/**
 * Starts `script`, an ES module, in another process, which is killed when the test ends.
 *
 * @param args arguments of the script, from `process.argv[1]` on
 */
export function runScript(script: string, args: readonly string[]): ScriptProcess {
  const started = startScript(script, args)
  onTestFinished(() => started.kill())
  return started
}

/** As {@link runScript}, but the caller must kill it. */
export function startScript(script: string, args: readonly string[]): ScriptProcess {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script, ...args], { cwd: ROOT })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString('utf8')))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async line() {
      const next = await lines.next()
      return next.done === true ? null : next.value
    },
    writeLine: (text) => child.stdin.write(`${text}\n`),
    kill() {
      child.kill('SIGKILL')
    },
    ended: once(child, 'close').then(([code, signal]) => ({ code, signal, errors })),
  }
}
