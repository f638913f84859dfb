import { parentPort, workerData } from 'node:worker_threads'
import { examineBytes, seeBytes } from '../../domain/year/identity.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { fileExaminer } from './examine-file.ts'

/** Files to examine with their manifests, or to look at before there are any. */
export type ExamineTask =
  | { examination: 'identity' | 'whole'; objects: readonly { path: string; manifest: Manifest }[] }
  | { examination: 'ahead'; objects: readonly { path: string }[] }

/** What the threads of one task are started with. */
export interface ExamineWorkerData {
  task: ExamineTask
  /** Objects a thread takes at a time. */
  batch: number
  /** Place of the first object that no thread has taken yet, in memory that all of them share. */
  next: Int32Array
}

/** What became of some objects of a task, from a place on. */
export interface Examined<Outcome> {
  start: number
  outcomes: Outcome[]
}

const { task, batch, next } = workerData as ExamineWorkerData
const examineFile = fileExaminer()
const examine = await examinerOf(task)

// Whoever is done takes the next: no thread waits for the one that started them, which has its own work meanwhile.
for (;;) {
  const start = Atomics.add(next, 0, batch)
  if (start >= task.objects.length) break
  parentPort?.postMessage({ start, outcomes: examine(start, start + batch) })
}

async function examinerOf(given: ExamineTask): Promise<(start: number, end: number) => unknown[]> {
  if (given.examination === 'ahead') {
    return (start, end) => given.objects.slice(start, end).map(({ path }) => examineFile(path, seeBytes))
  }
  // The schema of a whole payload takes longer to load than most audits have for a thread to start.
  const problemsOf =
    given.examination === 'identity' ? examineBytes : (await import('../../domain/year/envelope.ts')).examineWhole
  return (start, end) =>
    given.objects
      .slice(start, end)
      .map(({ path, manifest }) =>
        examineFile(path, (bytes) => ({ byteSize: bytes.byteLength, problems: problemsOf(manifest, bytes) })),
      )
}
