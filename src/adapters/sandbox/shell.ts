import { Worker } from 'node:worker_threads'
import type { Shell, ShellRun } from '../../domain/models/lite/shell.ts'
import type { SandboxRequest } from './shell-worker.ts'

/** Loading the sandbox takes a quarter of a second; a machine that needs longer than this cannot run it. */
const START_MS = 60_000

/** The sandbox ends a command by itself at its limit; past this much more, the thread is ended. */
const GRACE_MS = 2000

/** Heap of the thread: many times what any command within the other limits needs. */
const HEAP_MEBIBYTES = 128

/**
 * A shell in memory, just-bash in a worker thread of its own: without environment and streams, with a heap of its own,
 * and ended from outside when a command does not end. The thread starts with the first command, serves one command
 * at a time, and is replaced after any command that did not simply run.
 */
export function memoryShell(): Shell {
  let thread: Promise<Worker> | null = null
  let last: Promise<unknown> = Promise.resolve()
  const end = async (): Promise<void> => {
    const ending = thread
    thread = null
    await ending?.then(
      (worker) => worker.terminate(),
      () => undefined,
    )
  }
  const runNow = async (request: SandboxRequest): Promise<ShellRun> => {
    thread ??= startThread()
    const answer = await ask(await thread, request)
    const run = 'lost' in answer ? answer.lost : (answer.said as ShellRun)
    if ('lost' in answer || run.outcome === 'timeout' || run.outcome === 'too-much-output') await end()
    return run
  }
  return {
    run(command, files, limits) {
      const run = last.then(() => runNow({ command, files, limits }))
      last = run.catch(end)
      return run
    },
    async close() {
      await last
      await end()
    },
  }
}

async function startThread(): Promise<Worker> {
  const worker = new Worker(new URL('./shell-worker.js', import.meta.url), {
    env: {},
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
  })
  worker.stdout.resume()
  worker.stderr.resume()
  const ready = await answerOf(worker, START_MS)
  if ('lost' in ready) {
    await worker.terminate()
    throw new Error(`the sandbox did not start: ${ready.lost.why}`)
  }
  worker.unref()
  return worker
}

async function ask(worker: Worker, request: SandboxRequest): Promise<Answer> {
  worker.ref()
  worker.postMessage(request)
  const answer = await answerOf(worker, request.limits.timeMs + GRACE_MS)
  worker.unref()
  return answer
}

/** A message, or how the run ended for a thread that will send none. */
type Answer = { said: unknown } | { lost: ShellRun }

/** The next message of the thread. */
function answerOf(worker: Worker, withinMs: number): Promise<Answer> {
  return new Promise((resolve) => {
    const settle = (answer: Answer): void => {
      clearTimeout(timer)
      worker.off('message', said).off('error', failed).off('exit', exited)
      // An error that comes while the thread is being ended has nobody else to hear it.
      if ('lost' in answer) worker.on('error', () => undefined)
      resolve(answer)
    }
    const said = (message: unknown): void => settle({ said: message })
    const failed = (error: unknown): void => settle({ lost: crashed(error) })
    const exited = (code: number): void =>
      settle({ lost: lost('unsupported', `the sandbox ended with ${code}`) })
    const timer = setTimeout(
      () => settle({ lost: lost('timeout', `no end within ${withinMs} ms`) }),
      withinMs,
    )
    worker.on('message', said).on('error', failed).on('exit', exited)
  })
}

function crashed(error: unknown): ShellRun {
  const { code, message } = error as { code?: string; message?: string }
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return lost('too-much-output', 'out of memory')
  return lost('unsupported', `the sandbox failed: ${message ?? String(error)}`)
}

function lost(outcome: ShellRun['outcome'], why: string): ShellRun {
  return { outcome, stdout: '', stderr: '', exitCode: null, files: new Map(), why, missingTools: [] }
}
