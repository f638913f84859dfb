import { readdirSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { seeBytes } from '../../domain/year/examine.ts'
import type { SeenObject } from '../../domain/year/examine.ts'
import { fileReader, objectExaminer } from './examine-file.ts'
import type { Examination, StoredObject } from './examine-file.ts'

/** Objects to examine with their manifests, or folders of objects to look at before there are any. */
export type ExamineTask =
  | { examination: Examination; work: readonly StoredObject[] }
  | { examination: 'ahead'; work: readonly ObjectFolder[] }

/** A folder of objects: its path, and the first two digits that the names of all objects in it share. */
export interface ObjectFolder {
  path: string
  digits: string
}

/** What the threads of one task are started with. */
export interface ExamineWorkerData {
  task: ExamineTask
  /** How much of the work a thread takes at a time. */
  batch: number
  /** Place of the first that no thread has taken yet, in memory that all of them share. */
  next: Int32Array
}

/** One object as it was seen; its name is its digest, when it is sound. */
export interface SeenByName {
  name: string
  seen: SeenObject
}

/** What a batch of the work came to. */
export interface ExaminedBatch<Result> {
  start: number
  end: number
  results: Result[]
}

const { task, batch, next } = workerData as ExamineWorkerData
const examine = await createExaminer(task)

// Whoever is done takes the next: no thread waits for the one that started them, which has its own work meanwhile.
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

/** Looks at the objects in folders, one after the other. What cannot be an object by its name is not opened. */
function folderReader(): (folder: ObjectFolder) => SeenByName[] {
  const readFile = fileReader()
  const inspectFile = (path: string): SeenObject => {
    const read = readFile(path)
    return read.found === 'bytes' ? { found: 'bytes', ...seeBytes(read.bytes) } : read
  }
  return ({ path, digits }) =>
    fileNames(path)
      .filter((name) => name.startsWith(digits) && /^[0-9a-f]{64}$/.test(name))
      .map((name) => ({ name, seen: inspectFile(`${path}/${name}`) }))
}

/** None of a folder that cannot be read: its objects are examined with their manifests, which tells why. */
function fileNames(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
