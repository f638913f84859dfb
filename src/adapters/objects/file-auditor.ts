import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Objects, Auditors } from '../../domain/ports.ts'
import type { AuditedHead } from '../../domain/year/check.ts'
import { isReadError } from '../../domain/year/finding.ts'
import { objectPath } from '../../domain/year/examine.ts'
import type { ObjectOutcome } from '../../domain/year/examine.ts'
import { auditedHead } from './auditor.ts'
import { fileReader, objectExaminer } from './examine-file.ts'
import type { Examination, StoredObject } from './examine-file.ts'
import type {
  ExamineTask,
  ExamineWorkerData,
  ExaminedBatch,
  ObjectFolder,
  SeenByName,
} from './examine-worker.ts'
import { requireRoot } from './file-driver.ts'

/** Number of objects a thread takes at a time. */
const BATCH = 32

/** Fewer objects than this are read in less time than a second thread takes to start. */
const THREADS_MIN_OBJECTS = 128

/** Number of folders, of 256, that {@link THREADS_MIN_OBJECTS} objects are likely to occupy. */
const READ_AHEAD_MIN_FOLDERS = 100

/**
 * Creates the auditor of an archive in a folder. Worker threads read and hash large numbers of objects.
 *
 * @param root folder of the store
 */
export function fileAuditor(objects: Pick<Objects, 'keys' | 'logFiles'>, root: string): Auditors['objects'] {
  return {
    async heads() {
      const readFile = fileReader()
      const names = [...(await objects.keys('heads')), ...foldersAmongHeads(root)]
      // Synchronous reads take a tenth of the time for thousands of small files.
      return names.map((path) => readHead(root, path, readFile)).sort((a, b) => a.seq - b.seq)
    },
    logFiles: objects.logFiles,
    objectKeys: () => objects.keys('sha256'),
    async *examine(manifests, examination, jobs, signal) {
      const work = manifests.map((manifest) => ({ path: `${root}/${objectPath(manifest.sha256)}`, manifest }))
      const examined =
        work.length < THREADS_MIN_OBJECTS || jobs === 1
          ? examineHere(work, examination, signal)
          : examineInThreads(startExamining<ObjectOutcome>({ examination, work }, BATCH, jobs), signal)
      for await (const { start, results } of examined) {
        requireRootIfAbsent(root, results)
        yield results.map((outcome, offset) => ({ index: start + offset, outcome }))
      }
    },
    readAhead(jobs) {
      const work = objectFolders(root)
      if (work.length < READ_AHEAD_MIN_FOLDERS || jobs === 1) return null
      const threads = startExamining<SeenByName>({ examination: 'ahead', work }, 1, jobs)
      return {
        async *objects(signal) {
          for await (const { results } of threads.examined(signal)) {
            requireRootIfAbsent(
              root,
              results.map(({ seen }) => seen),
            )
            yield results.map(({ name, seen }) => ({ key: objectPath(name), seen }))
          }
        },
        close: () => threads.close(),
      }
    },
  }
}

/** Reads a head file, and retries once after a read error. */
function readHead(root: string, path: string, readFile: ReturnType<typeof fileReader>): AuditedHead {
  const readErrorOf = (read: ReturnType<typeof readFile>): string | null =>
    read.found === 'something else' && isReadError(read.why) ? read.why : null
  let read = readFile(`${root}/${path}`)
  if (readErrorOf(read) !== null) read = readFile(`${root}/${path}`)
  if (read.found === 'nothing') requireRoot(root)
  const head = auditedHead(path, read.found === 'bytes' ? read.bytes : null)
  const readError = readErrorOf(read)
  return readError === null ? head : { ...head, readError }
}

/** Lists the folders of objects; empty if they cannot be listed. Listing the keys of the objects reports the reason. */
function objectFolders(root: string): ObjectFolder[] {
  const folder = join(root, 'sha256')
  try {
    return readdirSync(folder)
      .filter((name) => /^[0-9a-f]{2}$/.test(name))
      .map((digits) => ({ path: join(folder, digits), digits }))
  } catch {
    return []
  }
}

/** Requires the store's folder if an object is absent: absence proves nothing in a missing store. */
function requireRootIfAbsent(root: string, outcomes: readonly { found: string }[]): void {
  if (outcomes.some(({ found }) => found === 'nothing')) requireRoot(root)
}

/** Returns the paths of folders in place of head files; the keys of the archive only include files. */
function foldersAmongHeads(root: string): string[] {
  const folder = join(root, 'heads')
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [`heads/${entry.name}`] : [],
  )
}

async function* examineHere(
  work: readonly StoredObject[],
  examination: Examination,
  signal: AbortSignal,
): AsyncGenerator<ExaminedBatch<ObjectOutcome>> {
  const examine = await objectExaminer(examination)
  for (const [start, object] of work.entries()) {
    signal.throwIfAborted()
    yield { start, end: start + 1, results: [examine(object)] }
    // Lets an abort take effect between two objects.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function* examineInThreads<Result>(
  threads: ExamineThreads<Result>,
  signal: AbortSignal,
): AsyncGenerator<ExaminedBatch<Result>> {
  try {
    yield* threads.examined(signal)
  } finally {
    await threads.close()
  }
}

/** Running threads. The caller closes them. */
interface ExamineThreads<Result> {
  /**
   * Yields the results in batches, in any order. Call it once.
   *
   * @throws the signal's reason, or the error that ended a thread early
   */
  examined(signal: AbortSignal): AsyncGenerator<ExaminedBatch<Result>>
  /** Ends the threads, done or not. */
  close(): Promise<void>
}

/**
 * Starts threads that read the files of a task, each into its own reused buffer.
 *
 * @param batch number of work items a thread takes at a time
 * @param jobs maximum number of threads
 */
function startExamining<Result>(task: ExamineTask, batch: number, jobs: number): ExamineThreads<Result> {
  const next = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const workerData: ExamineWorkerData = { task, batch, next }
  const script = new URL('./examine-worker.js', import.meta.url)
  const threads = Math.min(jobs, Math.ceil(task.work.length / batch))
  const workers = Array.from({ length: threads }, () => new Worker(script, { workerData }))
  const batches: ExaminedBatch<Result>[] = []
  let running = threads
  let failure: Error | null = null
  let wake = (): void => undefined
  for (const worker of workers) {
    worker.on('message', (examined: ExaminedBatch<Result>) => {
      batches.push(examined)
      wake()
    })
    worker.once('error', (error) => {
      failure ??= error
      wake()
    })
    worker.once('exit', (code) => {
      running -= 1
      if (code !== 0) failure ??= new Error(`an audit thread ended with ${code}`)
      wake()
    })
  }
  return {
    async *examined(signal) {
      let remaining = task.work.length
      for (;;) {
        for (const examined of batches.splice(0)) {
          signal.throwIfAborted()
          remaining -= examined.end - examined.start
          yield examined
        }
        if (remaining === 0) return
        if (batches.length > 0) continue
        if (failure !== null) throw failure
        if (running === 0) throw new Error(`the audit threads skipped ${remaining} of ${task.work.length}`)
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()))
    },
  }
}
