import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Refusal, StorageFault } from '../../domain/refusal.ts'
import type { FeedQuery, FeedResult } from './search-queries.ts'
import type { SearchWorkerData, SearchWorkerMessage } from './search-worker.ts'

/** A process that runs one query at a time; the queue in `feed-search.ts` decides their order. */
export interface SearchProcess {
  /**
   * Runs a query. The previous one must have ended.
   *
   * @throws Refusal `storage_unavailable` if the database stays locked; StorageFault if the process ended during
   *   the query, exceeded the time limit or is closed. The next query starts a new process
   */
  run(query: FeedQuery): Promise<FeedResult>
  close(): Promise<void>
}

/** Memory limit of JavaScript in MB; the driver's memory is limited by its cache. */
const MEMORY = '--max-old-space-size=256'

/** Time limit for starting the process in milliseconds. It does not count against the query's time. */
const START_TIMEOUT_MS = 10_000

/**
 * Creates the search process, which starts with the first query. A native call cannot be stopped, and ending a
 * thread inside one ends the whole program, so it is a process that can be killed at any time. A query over the
 * time limit kills the process; only that query fails.
 *
 * @param timeoutMs time limit of a query in a started process
 */
export function searchProcess(script: URL, workerData: SearchWorkerData, timeoutMs: number): SearchProcess {
  let child: ChildProcess | null = null
  let isBusy = false
  let closed = false

  const start = async (): Promise<ChildProcess> => {
    const newChild = fork(fileURLToPath(script), [JSON.stringify(workerData)], {
      execArgv: [MEMORY],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child = newChild
    const clearChild = (): void => {
      if (child === newChild) child = null
      newChild.kill('SIGKILL')
    }
    newChild.on('error', clearChild).once('exit', clearChild)
    await nextMessage(newChild, START_TIMEOUT_MS, 'the search process did not start')
    return newChild
  }

  const sendQuery = async (query: FeedQuery): Promise<SearchWorkerMessage> => {
    const running = child ?? (await start())
    running.ref()
    running.channel?.ref()
    // A failed send needs no handling: the process's exit event follows.
    running.send(query, () => undefined)
    return nextMessage(running, timeoutMs, 'the search did not respond')
  }

  return {
    async run(query) {
      if (closed || isBusy)
        throw new StorageFault(closed ? 'the search is closed' : 'the search process already has a query')
      isBusy = true
      try {
        return toResult(await sendQuery(query))
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
      const closingChild = child
      child = null
      // Without a pid it was never started.
      if (
        closingChild?.pid === undefined ||
        closingChild.exitCode !== null ||
        closingChild.signalCode !== null
      )
        return
      closingChild.ref()
      const ended = once(closingChild, 'exit')
      closingChild.kill('SIGKILL')
      await ended
    },
  }
}

/** Waits for the next message of a process, and kills it after the time limit. */
function nextMessage(child: ChildProcess, ms: number, timeoutMessage: string): Promise<SearchWorkerMessage> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void): void => {
      clearTimeout(timer)
      child.off('message', onMessage).off('error', onError).off('exit', onExit)
      finish()
    }
    const fail = (reason: string, cause?: unknown): void =>
      settle(() => {
        child.kill('SIGKILL')
        reject(new StorageFault(reason, { cause }))
      })
    const onMessage = (message: unknown): void => settle(() => resolve(message as SearchWorkerMessage))
    const onError = (error: Error): void => fail('the search process failed', error)
    const onExit = (code: number | null, signal: string | null): void =>
      fail(`the search process ended with ${signal ?? code}`)
    const timer = setTimeout(() => fail(`${timeoutMessage} within ${ms} ms`), ms)
    child.on('message', onMessage).on('error', onError).on('exit', onExit)
  })
}

function toResult(message: SearchWorkerMessage): FeedResult {
  switch (message.outcome) {
    case 'answer':
      return message.value
    case 'refusal':
      throw new Refusal(message.code, message.detail)
    case 'fault':
      throw new StorageFault(`the search failed: ${message.message}`, { cause: message.stack })
    case 'ready':
      throw new StorageFault('the search process started twice')
  }
}
