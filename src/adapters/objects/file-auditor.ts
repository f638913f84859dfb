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
import type { ExamineTask, ExamineWorkerData, Examined, ObjectFolder, SeenByName } from './examine-worker.ts'
import { requireRoot } from './file-driver.ts'

/** Objects a thread takes at a time. */
const BATCH = 32

/** Fewer objects than this are read before a second thread would have started. */
const WORTH_THREADS = 128

/** As many folders as {@link WORTH_THREADS} objects are likely to be spread over, of the 256 there can be. */
const WORTH_READING_AHEAD = 100

/**
 * The auditor of an archive in a folder. Many objects are read and hashed by worker threads.
 *
 * @param root folder of the store
 */
export function fileAuditor(objects: Pick<Objects, 'keys' | 'logFiles'>, root: string): Auditors['objects'] {
  return {
    async heads() {
      const readFile = fileReader()
      const names = [...(await objects.keys('heads')), ...foldersAmongHeads(root)]
      // Thousands of small files: read here and now, they take a tenth of the time.
      return names.map((path) => readHead(root, path, readFile)).sort((a, b) => a.seq - b.seq)
    },
    logFiles: objects.logFiles,
    objectKeys: () => objects.keys('sha256'),
    async *examine(manifests, examination, jobs, signal) {
      const work = manifests.map((manifest) => ({ path: `${root}/${objectPath(manifest.sha256)}`, manifest }))
      const examined =
        work.length < WORTH_THREADS || jobs === 1
          ? examineHere(work, examination, signal)
          : inThreads(startExamining<ObjectOutcome>({ examination, work }, BATCH, jobs), signal)
      for await (const { start, told } of examined) {
        requireRootIfAbsent(root, told)
        yield told.map((outcome, place) => ({ index: start + place, outcome }))
      }
    },
    readAhead(jobs) {
      const work = objectFolders(root)
      if (work.length < WORTH_READING_AHEAD || jobs === 1) return null
      const threads = startExamining<SeenByName>({ examination: 'ahead', work }, 1, jobs)
      return {
        async *seen(signal) {
          for await (const { told } of threads.examined(signal)) {
            requireRootIfAbsent(
              root,
              told.map(({ seen }) => seen),
            )
            yield told.map(({ name, seen }) => ({ key: objectPath(name), seen }))
          }
        },
        close: () => threads.close(),
      }
    },
  }
}

/** The head in a file, read once more when it could not be read. */
function readHead(root: string, path: string, readFile: ReturnType<typeof fileReader>): AuditedHead {
  const failureOf = (read: ReturnType<typeof readFile>): string | null =>
    read.found === 'something else' && isReadError(read.why) ? read.why : null
  let read = readFile(`${root}/${path}`)
  if (failureOf(read) !== null) read = readFile(`${root}/${path}`)
  if (read.found === 'nothing') requireRoot(root)
  const head = auditedHead(path, read.found === 'bytes' ? read.bytes : null)
  const readError = failureOf(read)
  return readError === null ? head : { ...head, readError }
}

/** None where they cannot be listed: whoever asks for the keys of the objects is told why. */
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

/** Absence in a store that is not there proves nothing. */
function requireRootIfAbsent(root: string, outcomes: readonly { found: string }[]): void {
  if (outcomes.some(({ found }) => found === 'nothing')) requireRoot(root)
}

/** Folders in the place of heads; the archive names files alone. */
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
): AsyncGenerator<Examined<ObjectOutcome>> {
  const examine = await objectExaminer(examination)
  for (const [start, object] of work.entries()) {
    signal.throwIfAborted()
    yield { start, end: start + 1, told: [examine(object)] }
    // A signal is noticed between two objects.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function* inThreads<Told>(
  threads: ExamineThreads<Told>,
  signal: AbortSignal,
): AsyncGenerator<Examined<Told>> {
  try {
    yield* threads.examined(signal)
  } finally {
    await threads.close()
  }
}

/** Threads at work; whoever starts them closes them. */
interface ExamineThreads<Told> {
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
function startExamining<Told>(task: ExamineTask, batch: number, jobs: number): ExamineThreads<Told> {
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
