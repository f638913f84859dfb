import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A Node process that runs a script and writes lines. */
export interface ScriptProcess {
  /** The next line of its standard output, or null after the last. */
  line(): Promise<string | null>
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
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script, ...args], { cwd: ROOT })
  onTestFinished(() => void child.kill('SIGKILL'))
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString('utf8')))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async line() {
      const next = await lines.next()
      return next.done === true ? null : next.value
    },
    kill: () => void child.kill('SIGKILL'),
    ended: once(child, 'close').then(([code, signal]) => ({ code, signal, errors })),
  }
}
