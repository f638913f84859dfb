import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Refusal, StorageFault, storageUnavailable } from '../../domain/refusal.ts'
import type { Answer, Question } from './search-engine.ts'
import type { SearchWorkerData, SearchWorkerReply } from './search-worker.ts'

/** A process that runs one query at a time; which one is next is decided elsewhere (`feed-search.ts`). */
export interface SearchProcess {
  /**
   * Runs a query. The one before must have ended.
   *
   * @throws Refusal `storage_unavailable` when the database stays locked; StorageFault when the process ended over the
   *   query, took too long or is closed. The next query starts another process
   */
  ask(question: Question): Promise<Answer>
  close(): Promise<void>
}

/** Of JavaScript alone, in MB; what the driver takes is bounded by its cache. */
const MEMORY = '--max-old-space-size=256'

/** How long a process may take to start. It is not part of the query's time: the query did not cause it. */
const START_TIMEOUT_MS = 10_000

interface InHand {
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/**
 * Describes a process without starting it; the first query does. A native call cannot be stopped, and to end a thread
 * inside one ends the whole program: so it is a process, which can be killed anywhere. A query that takes too long ends
 * it, and only that query fails.
 *
 * @param timeoutMs longest time of a query in a process that has started
 */
export function searchProcess(script: URL, workerData: SearchWorkerData, timeoutMs: number): SearchProcess {
  let child: ChildProcess | null = null
  let isReady = false
  let inHand: InHand | null = null
  let closed = false

  const settle = (how: (settled: InHand) => void): void => {
    if (!inHand) return
    const settled = inHand
    clearTimeout(settled.timer)
    inHand = null
    // An idle process does not keep its parent alive.
    child?.unref()
    child?.channel?.unref()
    how(settled)
  }

  /** The process has ended or must end; its query fails. */
  const lose = (lost: ChildProcess, why: string, cause?: unknown): void => {
    if (child !== lost) return
    child = null
    lost.kill('SIGKILL')
    settle(({ reject }) => reject(new StorageFault(why, { cause })))
  }

  const limit = (running: ChildProcess): NodeJS.Timeout => {
    const ms = isReady ? timeoutMs : START_TIMEOUT_MS
    const what = isReady ? 'the search gave no answer' : 'the search process did not start'
    return setTimeout(() => lose(running, `${what} within ${ms} ms`), ms)
  }

  const start = (): ChildProcess => {
    const started = startProcess(script, workerData)
    isReady = false
    started.on('message', (reply: SearchWorkerReply) => {
      if (child !== started || !inHand) return
      if (reply.outcome !== 'ready') {
        settle((asked) => conclude(asked, reply))
        return
      }
      isReady = true
      clearTimeout(inHand.timer)
      inHand.timer = limit(started)
    })
    started.on('error', (error) => lose(started, 'the search process failed', error))
    started.once('exit', (code, signal) => lose(started, `the search process ended with ${signal ?? code}`))
    return started
  }

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        if (closed || inHand) {
          reject(new StorageFault(closed ? 'the search is closed' : 'the search process has a query already'))
          return
        }
        const running = (child ??= start())
        inHand = { resolve, reject, timer: limit(running) }
        running.ref()
        running.channel?.ref()
        // A failed send needs no handling: the process's exit event follows.
        running.send(question, () => undefined)
      }),
    async close() {
      closed = true
      settle(({ reject }) => reject(new StorageFault('the search is closed')))
      const ending = child
      child = null
      if (ending) await end(ending)
    },
  }
}

function startProcess(script: URL, workerData: SearchWorkerData): ChildProcess {
  return fork(fileURLToPath(script), [JSON.stringify(workerData)], {
    execArgv: [MEMORY],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
}

async function end(ending: ChildProcess): Promise<void> {
  // Without a number it was never started.
  if (ending.pid === undefined || ending.exitCode !== null || ending.signalCode !== null) return
  ending.ref()
  const ended = once(ending, 'exit')
  ending.kill('SIGKILL')
  await ended
}

function conclude(
  { resolve, reject }: InHand,
  reply: Exclude<SearchWorkerReply, { outcome: 'ready' }>,
): void {
  switch (reply.outcome) {
    case 'answer':
      resolve(reply.value)
      return
    case 'refusal':
      reject(new Refusal(reply.code, reply.detail))
      return
    case 'busy':
      reject(storageUnavailable('the feed database is locked by another process'))
      return
    case 'fault':
      reject(new StorageFault(`the search failed: ${reply.message}`, { cause: reply.stack }))
  }
}
