import { readdirSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { isSha256Hex } from '../../domain/digest.ts'
import { summarizeBytes } from '../../domain/year/examine.ts'
import type { ReadObject } from '../../domain/year/examine.ts'
import { fileReader, objectExaminer } from './examine-file.ts'
import type { Examination, StoredObject } from './examine-file.ts'

/** Objects to compare with their manifests, or folders of objects to read ahead of the manifests. */
export type ExamineTask =
  | { examination: Examination; work: readonly StoredObject[] }
  | { examination: 'ahead'; work: readonly ObjectFolder[] }

/** A folder of objects: its path, and the first two digits of the names of its objects. */
export interface ObjectFolder {
  path: string
  digits: string
}

/** Data passed to each thread of a task. */
export interface ExamineWorkerData {
  task: ExamineTask
  /** Number of work items a thread takes at a time. */
  batch: number
  /** Index of the next work item, in memory shared by all threads. */
  next: Int32Array
}

/** An object by its file name, which is the digest of an intact object. */
export interface SeenByName {
  name: string
  seen: ReadObject
}

/** Results of the work items from `start` to before `end`. */
export interface ExaminedBatch<Result> {
  start: number
  end: number
  results: Result[]
}

const { task, batch, next } = workerData as ExamineWorkerData
const examine = await createExaminer(task)

// Threads take the next batch themselves: none waits for the main thread, which has other work.
for (;;) {
  const start = Atomics.add(next, 0, batch)
  if (start >= task.work.length) break
  const end = Math.min(start + batch, task.work.length)
  parentPort?.postMessage({ start, end, results: examine(start, end) })
}

async function createExaminer(examineTask: ExamineTask): Promise<(start: number, end: number) => unknown[]> {
  if (examineTask.examination === 'ahead') {
    const seeFolder = folderReader()
    return (start, end) => examineTask.work.slice(start, end).flatMap(seeFolder)
  }
  const examineObject = await objectExaminer(examineTask.examination)
  return (start, end) => examineTask.work.slice(start, end).map(examineObject)
}

/** Returns a function that reads the objects in a folder. Files whose names cannot be objects are not opened. */
function folderReader(): (folder: ObjectFolder) => SeenByName[] {
  const readFile = fileReader()
  const inspectFile = (path: string): ReadObject => {
    const read = readFile(path)
    return read.found === 'bytes' ? { found: 'bytes', ...summarizeBytes(read.bytes) } : read
  }
  return ({ path, digits }) =>
    fileNames(path)
      .filter((name) => name.startsWith(digits) && isSha256Hex(name))
      .map((name) => ({ name, seen: inspectFile(`${path}/${name}`) }))
}

/**
 * Lists a folder; empty if it cannot be read. Its objects are then examined with their manifests, which reports the
 * reason.
 */
function fileNames(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
