import { Worker } from 'node:worker_threads'
import type { ExamineTask, ExamineWorkerData, Examined } from './examine-worker.ts'

/** Threads at work; whoever starts them closes them. */
export interface ExamineThreads<Told> {
  /**
   * What the work came to, in batches, in no particular order. To be asked for once.
   *
   * @throws the signal's reason, or whatever ended a thread early
   */
  examined(signal: AbortSignal): AsyncGenerator<Examined<Told>>
  /** Ends the threads, done or not. */
  close(): Promise<void>
}

/**
 * Starts threads that read the files of a task, each into a buffer of its own that it uses again and again.
 *
 * @param batch how much of the work a thread takes at a time
 * @param jobs how many threads, if there is work for as many
 */
export function startExamining<Told>(task: ExamineTask, batch: number, jobs: number): ExamineThreads<Told> {
  const next = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const workerData: ExamineWorkerData = { task, batch, next }
  const script = new URL('./examine-worker.js', import.meta.url)
  const threads = Math.min(jobs, Math.ceil(task.work.length / batch))
  const workers = Array.from({ length: threads }, () => new Worker(script, { workerData }))
  const arrived: Examined<Told>[] = []
  let atWork = threads
  let failure: Error | null = null
  let wake = (): void => undefined
  for (const worker of workers) {
    worker.on('message', (examined: Examined<Told>) => {
      arrived.push(examined)
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
      let missing = task.work.length
      for (;;) {
        for (const examined of arrived.splice(0)) {
          signal.throwIfAborted()
          missing -= examined.end - examined.start
          yield examined
        }
        if (missing === 0) return
        if (arrived.length > 0) continue
        if (failure !== null) throw failure
        if (atWork === 0) throw new Error(`the audit threads left out ${missing} of ${task.work.length}`)
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}
