import { Worker } from 'node:worker_threads'
import type { FeedSearchRefusal } from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { StorageFault } from '../../domain/storage.ts'
import type { Answer, Question } from './search-questions.ts'
import type { SearchWorkerData, SearchWorkerReply } from './search-worker.ts'

/** A thread that answers questions one after the other. */
export interface SearchThread {
  /**
   * @throws Refusal `search_busy` when the question waits too long or finds the database locked; StorageFault when the
   *   thread ended over it or is closed. The next question finds a new thread
   */
  ask(question: Question): Promise<Answer>
  close(): Promise<void>
}

/** Of JavaScript alone; what the driver takes is bounded by its cache. */
const MEMORY = { maxOldGenerationSizeMb: 256 }

interface Waiting {
  question: Question
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/**
 * Describes a thread without starting it; the first question does. A question that is not answered in time ends the
 * thread, since a native call cannot be stopped, and only that question fails.
 *
 * @param timeoutMs longest from asking to the answer
 */
export function searchThread(script: URL, workerData: SearchWorkerData, timeoutMs: number): SearchThread {
  const queue: Waiting[] = []
  let worker: Worker | null = null
  let inHand: Waiting | null = null
  let closed = false

  const settle = (waiting: Waiting, how: () => void): void => {
    clearTimeout(waiting.timer)
    if (inHand === waiting) inHand = null
    how()
    next()
  }

  /** The thread is gone, or has to go; what it had in hand fails. */
  const lose = (lost: Worker, why: string, cause?: unknown): void => {
    if (worker !== lost) return
    worker = null
    void lost.terminate()
    const failed = inHand
    if (failed) settle(failed, () => failed.reject(new StorageFault(why, { cause })))
  }

  const start = (): Worker => {
    const started = new Worker(script, { workerData, execArgv: [], resourceLimits: MEMORY })
    started.on('message', (reply: SearchWorkerReply) => {
      const answered = inHand
      if (worker === started && answered) settle(answered, () => conclude(answered, reply))
    })
    started.once('error', (error) => lose(started, 'the search thread failed', error))
    started.once('exit', (code) => lose(started, `the search thread ended with ${code}`))
    return started
  }

  const next = (): void => {
    if (inHand || closed) return
    const waiting = queue.shift()
    if (!waiting) {
      // An idle thread keeps no process from ending.
      worker?.unref()
      return
    }
    inHand = waiting
    worker ??= start()
    worker.ref()
    worker.postMessage(waiting.question)
  }

  const expire = (waiting: Waiting): void => {
    if (inHand === waiting && worker) {
      lose(worker, `the search gave no answer within ${timeoutMs} ms`)
      return
    }
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
        const waiting: Waiting = {
          question,
          resolve,
          reject,
          timer: setTimeout(() => expire(waiting), timeoutMs),
        }
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
      const ending = worker
      worker = null
      await ending?.terminate()
    },
  }
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
