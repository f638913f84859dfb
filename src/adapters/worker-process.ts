import { fork } from 'node:child_process'
import type { ChildProcess, ForkOptions, Serializable } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Thrown if a process did not respond to a request. */
export class ProcessFailure extends Error {
  override readonly name = 'ProcessFailure'
  /** True if a time limit was exceeded; otherwise the process ended. */
  readonly isLate: boolean
  readonly signal: string | null

  constructor(message: string, isLate: boolean, signal: string | null = null, cause?: unknown) {
    super(message, { cause })
    this.isLate = isLate
    this.signal = signal
  }
}

/** A process that responds to one message at a time. */
export interface WorkerProcess {
  /**
   * Sends a message and returns the response; the previous request must have ended. The process starts with the first
   * request. One that did not respond is killed, and the next request starts another.
   *
   * @throws ProcessFailure; another error if the process does not start
   */
  request(message: Serializable, timeoutMs: number): Promise<unknown>
  /** Kills the process, during a request too. The next request starts another. */
  end(): Promise<void>
}

export interface WorkerProcessOptions extends ForkOptions {
  /** Name in error messages. */
  name: string
  /** Arguments of the script. */
  args?: readonly string[]
  /** Time limit in milliseconds until its first message; it does not count against the request's time. */
  startMs: number
}

/**
 * Describes a process for work that cannot be stopped otherwise: it can be killed at any time. An idle one does not keep
 * its parent alive.
 *
 * @param script sends any message once it is ready, then one response for each message
 */
export function workerProcess(
  script: URL,
  { name, args = [], startMs, ...options }: WorkerProcessOptions,
): WorkerProcess {
  let child: ChildProcess | null = null

  const kill = (ended: ChildProcess): void => {
    if (child === ended) child = null
    ended.kill('SIGKILL')
  }

  const nextMessage = (from: ChildProcess, ms: number): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const stopListening = (): void => {
        clearTimeout(timer)
        from.off('message', onMessage).off('error', onError).off('exit', onExit)
      }
      const fail = (failure: ProcessFailure): void => {
        stopListening()
        kill(from)
        reject(failure)
      }
      const onMessage = (message: unknown): void => {
        stopListening()
        resolve(message)
      }
      const onError = (error: Error): void =>
        fail(new ProcessFailure(`the ${name} failed: ${error.message}`, false, null, error))
      const onExit = (code: number | null, signal: string | null): void =>
        fail(new ProcessFailure(`the ${name} ended with ${signal ?? code}`, false, signal))
      const onTimeout = (): void =>
        fail(new ProcessFailure(`the ${name} did not respond within ${ms} ms`, true))
      const timer = setTimeout(onTimeout, ms)
      from.on('message', onMessage).on('error', onError).on('exit', onExit)
    })

  const start = async (): Promise<ChildProcess> => {
    const started = fork(fileURLToPath(script), args, { serialization: 'advanced', ...options })
    child = started
    // An error during the kill would be thrown if nothing listened.
    started.on('error', () => kill(started)).once('exit', () => kill(started))
    await nextMessage(started, startMs).catch((cause: Error) => {
      throw new Error(`the ${name} did not start: ${cause.message}`, { cause })
    })
    return started
  }

  return {
    async request(message, timeoutMs) {
      const running = child ?? (await start())
      running.ref()
      running.channel?.ref()
      // A failed send needs no handling: the process's exit event follows.
      running.send(message, () => undefined)
      try {
        return await nextMessage(running, timeoutMs)
      } finally {
        // One that was killed keeps its parent alive until it ends, for `end`.
        if (child === running) {
          running.unref()
          running.channel?.unref()
        }
      }
    },
    async end() {
      const ending = child
      // Without a pid it was never started.
      if (ending?.pid === undefined || ending.exitCode !== null || ending.signalCode !== null) return
      ending.ref()
      const ended = once(ending, 'exit')
      kill(ending)
      await ended
    },
  }
}
