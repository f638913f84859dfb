import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const HOLD = `import Database from 'libsql'
new Database(process.argv[1]).exec('BEGIN EXCLUSIVE')
console.log('held')
setInterval(() => undefined, 1000)`

/**
 * Another process that keeps a database locked against readers and writers.
 *
 * @returns what ends the process and so the lock
 */
export async function holdExclusively(databasePath: string): Promise<() => Promise<void>> {
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const holder = spawn(process.execPath, ['--input-type=module', '-e', HOLD, databasePath], { cwd })
  onTestFinished(() => void holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  return async () => {
    holder.kill('SIGKILL')
    await once(holder, 'exit')
  }
}
