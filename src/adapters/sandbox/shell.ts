import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import pLimit from 'p-limit'
import type { Shell } from '../../domain/ports.ts'
import type { ShellRun } from '../../domain/models/lite/suite.ts'
import type { SandboxRequest } from './shell-process.ts'

/** Loading the sandbox takes a quarter of a second; a machine that needs longer than this cannot run it. */
const START_MS = 60_000

/** The sandbox ends a command by itself at its limit; past this much more, its process is ended. */
const GRACE_MS = 2000

/** Heap of the process: many times what any command within the other limits needs. */
const HEAP_MEBIBYTES = 128

/**
 * A shell in memory: just-bash in a Node process of its own, without environment and streams, that may read the program's
 * own modules and otherwise neither files nor processes nor threads (docs/decisions/0023-command-sandbox.md).
 * It starts with the first command, serves one at a time, and is replaced after any command that reached a limit.
 */
export function memoryShell(): Shell {
  const inTurn = pLimit(1)
  let started: Promise<ChildProcess> | null = null
  const end = (): void => {
    started?.then(stop, () => undefined)
    started = null
  }
  const child = async (): Promise<ChildProcess> => {
    started ??= start()
    if (hasEnded(await started)) started = start()
    return started
  }
  const run = async (request: SandboxRequest): Promise<ShellRun> => {
    let isSound = false
    try {
      const answer = await ask(await child(), request)
      const found = 'lost' in answer ? answer.lost : (answer.said as ShellRun)
      isSound = 'said' in answer && found.outcome !== 'timeout' && found.outcome !== 'too-much-output'
      return found
    } finally {
      if (!isSound) end()
    }
  }
  return {
    run: (command, files, limits) => inTurn(() => run({ command, files, limits })),
    close: () => inTurn(end),
  }
}

async function start(): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL('./shell-process.js', import.meta.url)), {
    env: {},
    execArgv: [`--max-old-space-size=${HEAP_MEBIBYTES}`, ...permissions()],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const ready = await answerOf(child, START_MS)
  if ('lost' in ready) {
    stop(child)
    throw new Error(`the sandbox did not start: ${ready.lost.reason}`)
  }
  rest(child)
  return child
}

const PACKAGES = `${sep}node_modules${sep}`

/** What Node itself allows the process: to read this program and the packages it stands on, nothing else. */
function permissions(): string[] {
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

async function ask(child: ChildProcess, request: SandboxRequest): Promise<Answer> {
  child.ref()
  child.channel?.ref()
  child.send(request, () => undefined)
  const answer = await answerOf(child, request.limits.timeMs + GRACE_MS)
  rest(child)
  return answer
}

/** A sandbox that has nothing to do keeps nobody from ending. */
function rest(child: ChildProcess): void {
  child.unref()
  child.channel?.unref()
}

function stop(child: ChildProcess): void {
  child.kill('SIGKILL')
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** A message, or how the run ended for a process that will send none. */
type Answer = { said: unknown } | { lost: ShellRun }

/** The next message of the process. */
function answerOf(child: ChildProcess, withinMs: number): Promise<Answer> {
  return new Promise((resolve) => {
    const settle = (answer: Answer): void => {
      clearTimeout(timer)
      child.off('message', said).off('exit', exited).off('error', failed)
      // An error that comes while the process is being ended has nobody else to hear it.
      if ('lost' in answer) child.on('error', () => undefined)
      resolve(answer)
    }
    const said = (message: unknown): void => settle({ said: message })
    const exited = (code: number | null, signal: string | null): void =>
      settle({ lost: crashed(`the sandbox ended with ${signal ?? code}`, signal) })
    const failed = ({ message }: Error): void =>
      settle({ lost: crashed(`the sandbox failed: ${message}`, null) })
    const timer = setTimeout(
      () => settle({ lost: lost('timeout', `still running after ${withinMs} ms`) }),
      withinMs,
    )
    child.on('message', said).on('exit', exited).on('error', failed)
    if (hasEnded(child)) exited(child.exitCode, child.signalCode)
  })
}

/** Node ends itself with SIGABRT (134 behind a wrapper) when the heap is full. */
function crashed(why: string, signal: string | null): ShellRun {
  return signal === 'SIGABRT' ? lost('too-much-output', 'out of memory') : lost('unsupported', why)
}

function lost(outcome: ShellRun['outcome'], reason: string): ShellRun {
  return { outcome, stdout: '', stderr: '', exitCode: null, files: new Map(), reason, missingTools: [] }
}
