import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import pLimit from 'p-limit'
import type { Shell } from '../../domain/ports.ts'
import { failedRun } from '../../domain/models/lite/suite.ts'
import type { ShellFiles, ShellLimits, ShellRun } from '../../domain/models/lite/suite.ts'
import { ProcessFailure, workerProcess } from '../worker-process.ts'

/** A command for the process to run. */
export interface SandboxRequest {
  command: string
  files: ShellFiles
  limits: ShellLimits
}

/** Time limit for starting the process; loading the sandbox takes a quarter of a second. */
const START_MS = 60_000

/** The sandbox ends a command at its time limit. The process is killed this much later. */
const GRACE_MS = 2000

/** Heap of the process, many times the need of a command within the other limits. */
const HEAP_MEBIBYTES = 128

/**
 * Creates a shell in memory: just-bash in a separate Node process without environment and streams. The process can
 * read the program's own modules but no other files, and can start neither processes nor threads
 * (docs/decisions/0023-command-sandbox.md). It starts with the first command, runs one command at a time, and is
 * replaced after a command that reached a limit.
 */
export function memoryShell(): Shell {
  const oneAtATime = pLimit(1)
  const sandbox = workerProcess(new URL('./shell-process.js', import.meta.url), {
    name: 'sandbox',
    startMs: START_MS,
    env: {},
    execArgv: [`--max-old-space-size=${HEAP_MEBIBYTES}`, ...permissionFlags()],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const run = async (request: SandboxRequest): Promise<ShellRun> => {
    try {
      const result = (await sandbox.request(request, request.limits.timeMs + GRACE_MS)) as ShellRun
      if (result.outcome === 'limit') await sandbox.end()
      return result
    } catch (error) {
      if (error instanceof ProcessFailure) return runOf(error)
      throw error
    }
  }
  return {
    run: (command, files, limits) => oneAtATime(() => run({ command, files, limits })),
    close: () => oneAtATime(() => sandbox.end()),
  }
}

const PACKAGES = `${sep}node_modules${sep}`

/** Node's permission flags: the process may read this program and its packages, nothing else. */
function permissionFlags(): string[] {
  const flag = process.allowedNodeEnvironmentFlags.has('--permission')
    ? '--permission'
    : '--experimental-permission'
  const packages = fileURLToPath(import.meta.resolve('just-bash'))
  const readable = [
    fileURLToPath(new URL('../../', import.meta.url)),
    fileURLToPath(new URL('../../../package.json', import.meta.url)),
    packages.slice(0, packages.indexOf(PACKAGES) + PACKAGES.length),
  ]
  return [flag, ...readable.map((path) => `--allow-fs-read=${path.endsWith(sep) ? `${path}*` : path}`)]
}

/** A crash is not the command's failure, but full memory and an endless step are. */
function runOf({ message, isLate, signal }: ProcessFailure): ShellRun {
  // Node ends with SIGABRT (134 behind a wrapper) when the heap is full.
  const limit = isLate ? message : signal === 'SIGABRT' ? 'out of memory' : null
  return limit === null ? failedRun('unsupported', message) : failedRun('limit', limit)
}
