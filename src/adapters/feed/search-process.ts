import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Refusal, StorageFault } from '../../domain/refusal.ts'
import type { FeedQuery, FeedResult } from './search-queries.ts'
import type { SearchWorkerData, SearchWorkerReply } from './search-worker.ts'

/** A process that runs one query at a time; which one is next is decided elsewhere (`feed-search.ts`). */
export interface SearchProcess {
  /**
   * Runs a query. The one before must have ended.
   *
   * @throws Refusal `storage_unavailable` when the database stays locked; StorageFault when the process ended over the
   *   query, took too long or is closed. The next query starts another process
   */
  ask(query: FeedQuery): Promise<FeedResult>
  close(): Promise<void>
}

/** Of JavaScript alone, in MB; what the driver takes is bounded by its cache. */
const MEMORY = '--max-old-space-size=256'

/** How long a process may take to start. It is not part of the query's time: the query did not cause it. */
const START_TIMEOUT_MS = 10_000

/**
 * Describes a process without starting it; the first query does. A native call cannot be stopped, and to end a thread
 * inside one ends the whole program: so it is a process, which can be killed anywhere. A query that takes too long ends
 * it, and only that query fails.
 *
 * @param timeoutMs longest time of a query in a process that has started
 */
export function searchProcess(script: URL, workerData: SearchWorkerData, timeoutMs: number): SearchProcess {
  let child: ChildProcess | null = null
  let isBusy = false
  let closed = false

  const start = async (): Promise<ChildProcess> => {
    const started = fork(fileURLToPath(script), [JSON.stringify(workerData)], {
      execArgv: [MEMORY],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child = started
    const forget = (): void => {
      if (child === started) child = null
      started.kill('SIGKILL')
    }
    started.on('error', forget).once('exit', forget)
    await nextReply(started, START_TIMEOUT_MS, 'the search process did not start')
    return started
  }

  const run = async (query: FeedQuery): Promise<SearchWorkerReply> => {
    const running = child ?? (await start())
    running.ref()
    running.channel?.ref()
    // A failed send needs no handling: the process's exit event follows.
    running.send(query, () => undefined)
    return nextReply(running, timeoutMs, 'the search did not respond')
  }

  return {
    async ask(query) {
      if (closed || isBusy)
        throw new StorageFault(closed ? 'the search is closed' : 'the search process already has a query')
      isBusy = true
      try {
        return conclude(await run(query))
      } finally {
        isBusy = false
        // A process that failed a query is killed and forgotten; an idle one does not keep its parent alive.
        if (child?.killed === true) child = null
        child?.unref()
        child?.channel?.unref()
      }
    },
    async close() {
      closed = true
      const ending = child
      child = null
      // Without a number it was never started.
      if (ending?.pid === undefined || ending.exitCode !== null || ending.signalCode !== null) return
      ending.ref()
      const ended = once(ending, 'exit')
      ending.kill('SIGKILL')
      await ended
    },
  }
}

/** The next message of a process, which is killed when it gives none in time. */
function nextReply(child: ChildProcess, ms: number, late: string): Promise<SearchWorkerReply> {
  return new Promise((resolve, reject) => {
    const settle = (how: () => void): void => {
      clearTimeout(timer)
      child.off('message', reply).off('error', failed).off('exit', ended)
      how()
    }
    const fail = (why: string, cause?: unknown): void =>
      settle(() => {
        child.kill('SIGKILL')
        reject(new StorageFault(why, { cause }))
      })
    const reply = (message: unknown): void => settle(() => resolve(message as SearchWorkerReply))
    const failed = (error: Error): void => fail('the search process failed', error)
    const ended = (code: number | null, signal: string | null): void =>
      fail(`the search process ended with ${signal ?? code}`)
    const timer = setTimeout(() => fail(`${late} within ${ms} ms`), ms)
    child.on('message', reply).on('error', failed).on('exit', ended)
  })
}

function conclude(reply: SearchWorkerReply): FeedResult {
  switch (reply.outcome) {
    case 'answer':
      return reply.value
    case 'refusal':
      throw new Refusal(reply.code, reply.detail)
    case 'fault':
      throw new StorageFault(`the search failed: ${reply.message}`, { cause: reply.stack })
    case 'ready':
      throw new StorageFault('the search process started twice')
  }
}
