import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { once } from 'node:events'
import { afterAll } from 'vitest'
import type { memoryShell } from '../../../src/adapters/sandbox/shell.ts'
import type { Shell } from '../../../src/domain/ports.ts'
import type { ShellFiles, ShellLimits, ShellRun } from '../../../src/domain/models/lite/suite.ts'
import { builtModule } from '../../support/compiled-sources.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** The compiled sandbox, because its thread cannot read TypeScript; closed after the file's tests. */
export async function sandbox(): Promise<Shell> {
  const built = (await import(builtModule('adapters/sandbox/shell.js'))) as {
    memoryShell: typeof memoryShell
  }
  const shell = built.memoryShell()
  afterAll(() => shell.close())
  return shell
}

/** Runs a command as the suite does, on files by path. */
export function runIn(
  shell: Shell,
  command: string,
  files: Readonly<Record<string, string>> = {},
  limits: ShellLimits = { timeMs: 5000, outputBytes: 65_536 },
): Promise<ShellRun> {
  const held: ShellFiles = new Map(Object.entries(files))
  return shell.run(command, held, limits)
}

/** One command and its files. */
interface BashCase {
  command: string
  files: ShellFiles
}

/**
 * Runs commands in the machine's bash, each in its own folder. Only for commands written in the tests: a model's command
 * never leaves the sandbox.
 */
export async function inRealBash(cases: readonly BashCase[]): Promise<ShellRun[]> {
  const folder = temporaryFolder()
  const script: string[] = []
  for (const [index, { command, files }] of cases.entries()) {
    const home = join(folder, String(index), 'work')
    await mkdir(home, { recursive: true })
    await writeFile(join(folder, String(index), 'command'), command)
    for (const [path, content] of files) {
      await mkdir(dirname(join(home, path)), { recursive: true })
      await writeFile(join(home, path), content)
    }
    script.push(`cd ${home} && bash --norc ../command > ../stdout 2> ../stderr < /dev/null`)
  }
  const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }
  const bash = spawn('bash', ['--norc', '-s'], { cwd: folder, env, stdio: ['pipe', 'ignore', 'ignore'] })
  bash.stdin.end(`${script.join('\n')}\n`)
  await once(bash, 'close')
  return Promise.all(cases.map((_, index) => resultOf(join(folder, String(index)))))
}

async function resultOf(folder: string): Promise<ShellRun> {
  const work = join(folder, 'work')
  const entries = await readdir(work, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const files = await Promise.all(
    paths.map(async (path): Promise<[string, string]> => [
      path.slice(work.length + 1),
      await readFile(path, 'utf8'),
    ]),
  )
  return {
    outcome: 'ran',
    stdout: await readFile(join(folder, 'stdout'), 'utf8'),
    stderr: await readFile(join(folder, 'stderr'), 'utf8'),
    files: new Map(files),
    reason: null,
    missingTools: [],
  }
}
