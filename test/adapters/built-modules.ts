import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** URL of a module of the build, for a child process: it cannot read TypeScript. `npm test` builds first. */
export function builtModule(path: string): string {
  const url = new URL(`../../dist/${path}`, import.meta.url)
  if (!existsSync(fileURLToPath(url)))
    throw new Error(`${fileURLToPath(url)} is missing: run "npm run build"`)
  return url.href
}

/** A Node process that runs a script and talks in lines. */
export interface ScriptProcess {
  /** The next line of its standard output, or null after the last. */
  line(): Promise<string | null>
  /** Writes a line to its standard input. */
  tell(text: string): void
  kill(): void
  /** Resolves when it has ended. */
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; errors: string }>
}

/**
 * Starts `script`, an ES module, in another process, which is killed when the test ends.
 *
 * @param args what the script finds from `process.argv[1]` on
 */
export function runScript(script: string, args: readonly string[]): ScriptProcess {
  const started = startScript(script, args)
  onTestFinished(() => started.kill())
  return started
}

/** As {@link runScript}, but whoever starts it must kill it. */
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
    tell: (text) => child.stdin.write(`${text}\n`),
    kill() {
      child.kill('SIGKILL')
    },
    ended: exitOf(child).then((exit) => ({ ...exit, errors })),
  }
}

function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
}
