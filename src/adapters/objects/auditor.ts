import { readdirSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Objects, ObjectsAuditor } from '../../domain/ports.ts'
import { Refusal, StorageFault, messageOf } from '../../domain/refusal.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { examineWhole } from '../../domain/year/envelope.ts'
import { summarizeBytes } from '../../domain/year/examine.ts'
import type { NoBytes, ObjectOutcome, ReadObject } from '../../domain/year/examine.ts'
import { READ_ERROR } from '../../domain/year/finding.ts'
import { fileExaminer, fileReader } from './examine-file.ts'
import type { Answer, Question } from './examine-file.ts'
import type { AskedQuestion, ExamineWorkerData, GivenAnswer } from './examine-worker.ts'
import { isFolder, requireRoot } from './file-driver.ts'

/** How an audit examines objects. */
interface AuditorOptions {
  /** Most threads. */
  jobs: number
  /** True if every object is to be proved. */
  payloads: boolean
}

/** Opens the auditor of an object store. It writes nothing, and does not access the store before its first use. */
export function openObjectsAuditor(
  location: StoreLocation,
  objects: Objects,
  options: AuditorOptions,
): ObjectsAuditor {
  return location.kind === 'file' ? fileAuditor(location.path, objects, options) : streamingAuditor(objects)
}

/** The auditor of a store whose objects are read over the network or from memory. */
export function streamingAuditor(
  objects: Pick<Objects, 'keys' | 'headFile' | 'get' | 'logFiles'>,
): ObjectsAuditor {
  return {
    keys: objects.keys,
    logFiles: objects.logFiles,
    async headFile(key) {
      try {
        const bytes = await objects.headFile(Number(key.slice('heads/'.length)))
        return bytes === null ? { found: 'nothing' } : { found: 'bytes', bytes }
      } catch (error) {
        if (isDamaged(error) || error instanceof StorageFault) return unreadable(error)
        throw error
      }
    },
    // Each object that no entry names would cost a request.
    readAhead: () => undefined,
    summarize: (key) =>
      readObject(objects, key.slice(-SHA256_DIGITS), (bytes): ReadObject => {
        return { found: 'bytes', ...summarizeBytes(bytes) }
      }),
    prove: (manifest) =>
      readObject(objects, manifest.sha256, (bytes): ObjectOutcome => {
        return { found: 'bytes', byteSize: bytes.byteLength, problems: examineWhole(manifest, bytes) }
      }),
    close: () => Promise.resolve(),
  }
}

const SHA256_DIGITS = 64

async function readObject<Result>(
  objects: Pick<Objects, 'get'>,
  sha256: string,
  examine: (bytes: Uint8Array) => Result,
): Promise<Result | NoBytes> {
  try {
    const bytes = await objects.get(sha256)
    return bytes === null ? { found: 'nothing' } : examine(bytes)
  } catch (error) {
    return unreadable(error)
  }
}

function isDamaged(error: unknown): boolean {
  return error instanceof Refusal && error.code === 'storage_damaged'
}

function unreadable(error: unknown): NoBytes {
  const why = messageOf(error)
  return { found: 'something else', why: isDamaged(error) ? why : READ_ERROR + why }
}

/** Fewer objects than this are read in less time than a second thread takes to start. */
const ALONE_MAX = 64

/** The auditor of a store in a folder. Files are read synchronously, which takes far less time; many objects in threads. */
function fileAuditor(
  root: string,
  { keys, logFiles }: Pick<Objects, 'keys' | 'logFiles'>,
  { jobs, payloads }: AuditorOptions,
): ObjectsAuditor {
  const readFile = fileReader(root)
  const examine = fileExaminer(root, examineWhole)
  const threads = examineThreads({ root, isProving: payloads }, jobs)
  const ahead = new Map<string, Promise<Answer>>()
  let examined = 0
  const ask = async (question: Question): Promise<Answer> => {
    examined += 1
    const isAlone = jobs === 1 || examined <= ALONE_MAX || ('manifest' in question && !payloads)
    return requireRootIfAbsent(root, isAlone ? examine(question) : await threads.ask(question))
  }
  return {
    keys: async (area) => [...(await keys(area)), ...(area === 'heads' ? foldersAmongHeads(root) : [])],
    logFiles,
    async headFile(key) {
      const read = requireRootIfAbsent(root, readFile(key))
      return read.found === 'bytes' ? { ...read, bytes: read.bytes.slice() } : read
    },
    readAhead(known) {
      for (const key of known) {
        const answer = ask({ key })
        // A failure counts where the answer is needed.
        answer.catch(() => undefined)
        ahead.set(key, answer)
      }
    },
    async summarize(key) {
      const answer = await (ahead.get(key) ?? ask({ key }))
      ahead.delete(key)
      return answer as ReadObject
    },
    prove: async (manifest) => (await ask({ manifest })) as ObjectOutcome,
    close: () => threads.close(),
  }
}

/** Returns the keys of folders in place of head files, which the store does not list. */
function foldersAmongHeads(root: string): string[] {
  const folder = `${root}/heads`
  if (!isFolder(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.flatMap((entry) => (entry.isDirectory() ? [`heads/${entry.name}`] : []))
}

/** Requires the folder of the store if a file is absent: absence proves nothing in a missing store. */
function requireRootIfAbsent<Read extends { found: string }>(root: string, read: Read): Read {
  if (read.found === 'nothing') requireRoot(root)
  return read
}

/** Threads that start with the first question, and take questions in turn. */
function examineThreads(
  workerData: ExamineWorkerData,
  count: number,
): { ask: (question: Question) => Promise<Answer>; close: () => Promise<void> } {
  const open = new Map<number, { resolve: (answer: Answer) => void; reject: (error: unknown) => void }>()
  let workers: Worker[] | null = null
  let asked = 0
  let unsent: AskedQuestion[] = []
  const fail = (error: unknown): void => {
    for (const { reject } of open.values()) reject(error)
    open.clear()
  }
  const start = (): Worker => {
    const worker = new Worker(new URL('./examine-worker.js', import.meta.url), { workerData })
    worker.on('message', ({ id, answer }: GivenAnswer) => {
      open.get(id)?.resolve(answer)
      open.delete(id)
    })
    worker.once('error', fail)
    worker.once('exit', (code) => fail(new Error(`an audit thread ended with ${code}`)))
    return worker
  }
  // One message for the questions of a moment: thousands of them cost as much as the digests of hundreds of objects.
  const send = (): void => {
    workers ??= Array.from({ length: count }, start)
    for (const [index, worker] of workers.entries()) {
      const questions = unsent.filter(({ id }) => id % count === index)
      if (questions.length > 0) worker.postMessage(questions)
    }
    unsent = []
  }
  return {
    ask(question) {
      if (unsent.length === 0) queueMicrotask(send)
      const id = (asked += 1)
      unsent.push({ id, question })
      return new Promise((resolve, reject) => open.set(id, { resolve, reject }))
    },
    async close() {
      await Promise.all((workers ?? []).map((worker) => worker.terminate()))
    },
  }
}
