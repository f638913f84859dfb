import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { FeedSearchRefusal } from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { StorageFault } from '../../domain/storage.ts'
import type { Answer, Question } from './search-questions.ts'
import type { SearchWorkerData, SearchWorkerReply } from './search-worker.ts'

/** A process that answers questions one after the other. */
export interface SearchProcess {
  /**
   * @throws Refusal `search_busy` when the question waits too long or finds the database locked; StorageFault when the
   *   process ended over it, took too long or is closed. The next question finds a new process
   */
  ask(question: Question): Promise<Answer>
  close(): Promise<void>
}

/** Of JavaScript alone, in MB; what the driver takes is bounded by its cache. */
const MEMORY = '--max-old-space-size=256'

interface Waiting {
  question: Question
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/**
 * Describes a process without starting it; the first question does. A native call cannot be stopped, and to end a thread
 * inside one ends the whole program: so it is a process, which can be killed anywhere. A question that takes too long
 * ends it, and only that question fails.
 *
 * @param timeoutMs longest that a question waits for others, and longest from its turn to its answer
 */
export function searchProcess(script: URL, workerData: SearchWorkerData, timeoutMs: number): SearchProcess {
  const queue: Waiting[] = []
  let child: ChildProcess | null = null
  let inHand: Waiting | null = null
  let closed = false

  const settle = (waiting: Waiting, how: () => void): void => {
    clearTimeout(waiting.timer)
    if (inHand === waiting) inHand = null
    how()
    next()
  }

  /** The process is gone, or has to go; what it had in hand fails. */
  const lose = (lost: ChildProcess, why: string, cause?: unknown): void => {
    if (child !== lost) return
    child = null
    lost.kill('SIGKILL')
    const failed = inHand
    if (failed) settle(failed, () => failed.reject(new StorageFault(why, { cause })))
  }

  const start = (): ChildProcess => {
    const started = startProcess(script, workerData)
    started.on('message', (reply: SearchWorkerReply) => {
      const answered = inHand
      if (child !== started || !answered) return
      // Each of them would wait for the same lock in vain, one after the other.
      const stuck = reply.outcome === 'busy' ? queue.splice(0) : []
      for (const waiting of stuck) settle(waiting, () => conclude(waiting, reply))
      settle(answered, () => conclude(answered, reply))
    })
    started.on('error', (error) => lose(started, 'the search process failed', error))
    started.once('exit', (code, signal) => lose(started, `the search process ended with ${signal ?? code}`))
    return started
  }

  const next = (): void => {
    if (inHand || closed) return
    const waiting = queue.shift()
    if (!waiting) {
      // An idle process keeps the one that started it from nothing.
      child?.unref()
      child?.channel?.unref()
      return
    }
    inHand = waiting
    clearTimeout(waiting.timer)
    const asked = (child ??= start())
    asked.ref()
    asked.channel?.ref()
    waiting.timer = setTimeout(
      () => lose(asked, `the search gave no answer within ${timeoutMs} ms`),
      timeoutMs,
    )
    // A process that is gone says so itself, by its end.
    asked.send(waiting.question, () => undefined)
  }

  const expire = (waiting: Waiting): void => {
    queue.splice(queue.indexOf(waiting), 1)
    waiting.reject(busy(`the question waited ${timeoutMs} ms for others`))
  }

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(new StorageFault('the search is closed'))
          return
        }
        const timer = setTimeout(() => expire(waiting), timeoutMs)
        const waiting: Waiting = { question, resolve, reject, timer }
        queue.push(waiting)
        next()
      }),
    async close() {
      closed = true
      for (const waiting of [...(inHand ? [inHand] : []), ...queue.splice(0)]) {
        clearTimeout(waiting.timer)
        waiting.reject(new StorageFault('the search is closed'))
      }
      inHand = null
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

function conclude({ resolve, reject }: Waiting, reply: SearchWorkerReply): void {
  switch (reply.outcome) {
    case 'answer':
      resolve(reply.value)
      return
    case 'refusal':
      reject(new Refusal(reply.code, reply.detail))
      return
    case 'busy':
      reject(busy('the feed database is locked by another process'))
      return
    case 'fault':
      reject(new StorageFault(`the search failed: ${reply.message}`, { cause: reply.stack }))
  }
}

function busy(detail: string): Refusal {
  return new Refusal<FeedSearchRefusal>('search_busy', detail)
}
