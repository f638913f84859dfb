import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import pLimit from 'p-limit'
import type { Shell } from '../../domain/ports.ts'
import type { ShellRun } from '../../domain/models/lite/suite.ts'
import type { SandboxRequest } from './shell-process.ts'

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
    let isReusable = false
    try {
      const received = await sendRequest(await child(), request)
      const result = 'failure' in received ? received.failure : (received.message as ShellRun)
      isReusable =
        'message' in received && result.outcome !== 'timeout' && result.outcome !== 'too-much-output'
      return result
    } finally {
      if (!isReusable) end()
    }
  }
  return {
    run: (command, files, limits) => oneAtATime(() => run({ command, files, limits })),
    close: () => oneAtATime(end),
  }
}

async function start(): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL('./shell-process.js', import.meta.url)), {
    env: {},
    execArgv: [`--max-old-space-size=${HEAP_MEBIBYTES}`, ...permissionFlags()],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const ready = await nextMessage(child, START_MS)
  if ('failure' in ready) {
    stop(child)
    throw new Error(`the sandbox did not start: ${ready.failure.reason}`)
  }
  unrefProcess(child)
  return child
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

async function sendRequest(child: ChildProcess, request: SandboxRequest): Promise<ProcessMessage> {
  child.ref()
  child.channel?.ref()
  child.send(request, () => undefined)
  const received = await nextMessage(child, request.limits.timeMs + GRACE_MS)
  unrefProcess(child)
  return received
}

/** An idle sandbox does not keep its parent alive. */
function unrefProcess(child: ChildProcess): void {
  child.unref()
  child.channel?.unref()
}

function stop(child: ChildProcess): void {
  child.kill('SIGKILL')
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** A message of the process, or the failed run if the process ended without one. */
type ProcessMessage = { message: unknown } | { failure: ShellRun }

/** Waits for the next message of the process. */
function nextMessage(child: ChildProcess, timeoutMs: number): Promise<ProcessMessage> {
  return new Promise((resolve) => {
    const settle = (received: ProcessMessage): void => {
      clearTimeout(timer)
      child.off('message', onMessage).off('exit', onExit).off('error', onError)
      // An error during the kill has no other listener and would be thrown.
      if ('failure' in received) child.on('error', () => undefined)
      resolve(received)
    }
    const onMessage = (message: unknown): void => settle({ message })
    const onExit = (code: number | null, signal: string | null): void =>
      settle({ failure: crashedRun(`the sandbox ended with ${signal ?? code}`, signal) })
    const onError = ({ message }: Error): void =>
      settle({ failure: crashedRun(`the sandbox failed: ${message}`, null) })
    const timer = setTimeout(
      () => settle({ failure: failedRun('timeout', `still running after ${timeoutMs} ms`) }),
      timeoutMs,
    )
    child.on('message', onMessage).on('exit', onExit).on('error', onError)
    if (hasEnded(child)) onExit(child.exitCode, child.signalCode)
  })
}

/** Node ends with SIGABRT (134 behind a wrapper) when the heap is full. */
function crashedRun(why: string, signal: string | null): ShellRun {
  return signal === 'SIGABRT' ? failedRun('too-much-output', 'out of memory') : failedRun('unsupported', why)
}

function failedRun(outcome: ShellRun['outcome'], reason: string): ShellRun {
  return { outcome, stdout: '', stderr: '', exitCode: null, files: new Map(), reason, missingTools: [] }
}
