import { Worker } from 'node:worker_threads'
import type { ExamineTask, ExamineWorkerData, Examined } from './examine-worker.ts'

/** Objects a thread takes at a time. */
const BATCH = 32

/** Threads at work; whoever starts them closes them. */
export interface ExamineThreads<Outcome> {
  /**
   * What became of the objects, in batches, in no particular order. To be asked for once.
   *
   * @throws the signal's reason, or whatever ended a thread early
   */
  examined(signal: AbortSignal): AsyncGenerator<Examined<Outcome>>
  /** Ends the threads, done or not. */
  close(): Promise<void>
}

/**
 * Starts threads that examine the files of a task, each with a buffer of its own that it uses again and again.
 *
 * @param jobs how many threads, if there is work for as many
 */
export function startExamining<Outcome>(task: ExamineTask, jobs: number): ExamineThreads<Outcome> {
  const next = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const workerData: ExamineWorkerData = { task, batch: BATCH, next }
  const script = new URL('./examine-worker.js', import.meta.url)
  const threads = Math.min(jobs, Math.ceil(task.objects.length / BATCH))
  const workers = Array.from({ length: threads }, () => new Worker(script, { workerData }))
  const arrived: Examined<Outcome>[] = []
  let atWork = threads
  let failure: Error | null = null
  let wake = (): void => undefined
  for (const worker of workers) {
    worker.on('message', (batch: Examined<Outcome>) => {
      arrived.push(batch)
      wake()
    })
    worker.once('error', (error) => {
      failure ??= error
      wake()
    })
    worker.once('exit', (code) => {
      atWork -= 1
      if (code !== 0) failure ??= new Error(`an audit thread ended with ${code}`)
      wake()
    })
  }
  return {
    async *examined(signal) {
      let missing = task.objects.length
      for (;;) {
        for (const batch of arrived.splice(0)) {
          signal.throwIfAborted()
          missing -= batch.outcomes.length
          yield batch
        }
        if (missing === 0) return
        if (arrived.length > 0) continue
        if (failure !== null) throw failure
        if (atWork === 0) throw new Error(`the audit threads left out ${missing} objects`)
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}
