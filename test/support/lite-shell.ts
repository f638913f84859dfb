import { afterAll } from 'vitest'
import type { memoryShell } from '../../src/adapters/sandbox/shell.ts'
import type { Shell, ShellFiles, ShellLimits, ShellRun } from '../../src/domain/models/lite/shell.ts'
import { builtModule } from './compiled-sources.ts'

/** The sandbox of the build, since its thread cannot read TypeScript; closed when the file's tests have ended. */
export async function sandbox(): Promise<Shell> {
  const built = (await import(builtModule('adapters/sandbox/shell.js'))) as {
    memoryShell: typeof memoryShell
  }
  const shell = built.memoryShell()
  afterAll(() => shell.close())
  return shell
}

/** As the suite runs a command, on files given by path. */
export function runIn(
  shell: Shell,
  command: string,
  files: Readonly<Record<string, string>> = {},
  limits: ShellLimits = { timeMs: 5000, outputBytes: 65_536 },
): Promise<ShellRun> {
  const held: ShellFiles = new Map(Object.entries(files))
  return shell.run(command, held, limits)
}
