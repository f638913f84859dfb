import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Archive, ArchiveAuditor } from '../../domain/ports.ts'
import type { AuditedHead } from '../../domain/year/audit.ts'
import { isReadError, objectPath } from '../../domain/year/finding.ts'
import type { ObjectOutcome } from '../../domain/year/finding.ts'
import { examineWhole } from '../../domain/year/envelope.ts'
import { examineBytes } from '../../domain/year/identity.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { auditedHead } from './auditor.ts'
import { fileExaminer, fileReader } from './examine-file.ts'
import { requireRoot } from './file-driver.ts'
import type { ExamineRequest, ExamineWorkerData } from './examine-worker.ts'

/** Objects a thread is given at a time. */
const BATCH = 32

/** Fewer objects than this are read before a second thread would have started. */
const WORTH_THREADS = 128

type Batch = { index: number; manifest: Manifest }[]
type Examined = { index: number; outcome: ObjectOutcome }[]

/**
 * The auditor of an archive in a folder. Objects are read and hashed by worker threads, each with a buffer of its own
 * that it uses again and again.
 *
 * @param root folder of the store
 */
export function fileAuditor(archive: Pick<Archive, 'keys'>, root: string): ArchiveAuditor {
  return {
    async heads() {
      const readHead = fileReader()
      const names = [...(await archive.keys('heads')), ...foldersAmongHeads(root)]
      // Thousands of small files: read here and now, they take a tenth of the time.
      const heads = names.map((path): AuditedHead => {
        const first = readHead(join(root, path))
        const read = isReadError(first.found === 'something else' ? first.why : null)
          ? readHead(join(root, path))
          : first
        if (read.found === 'nothing') requireRoot(root)
        const audited = auditedHead(path, read.found === 'bytes' ? read.bytes : null)
        const why = read.found === 'something else' ? read.why : null
        return why !== null && isReadError(why) ? { ...audited, readError: why } : audited
      })
      return heads.sort((a, b) => a.seq - b.seq)
    },
    objectKeys: () => archive.keys('sha256'),
    async *examine(manifests, examination, jobs, signal) {
      const batches = inBatches(manifests)
      const examined =
        manifests.length < WORTH_THREADS || jobs === 1
          ? examineHere(batches, root, examination, signal)
          : examineInThreads(batches, root, examination, Math.min(jobs, batches.length), signal)
      for await (const batch of examined) {
        // Absence in a store that is not there proves nothing.
        if (batch.some(({ outcome }) => outcome.found === 'nothing')) requireRoot(root)
        yield batch
      }
    },
  }
}

/** Folders in the place of heads; the archive names files alone. */
function foldersAmongHeads(root: string): string[] {
  const folder = join(root, 'heads')
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [`heads/${entry.name}`] : [],
  )
}

function inBatches(manifests: readonly Manifest[]): Batch[] {
  const all = manifests.map((manifest, index) => ({ index, manifest }))
  return Array.from({ length: Math.ceil(all.length / BATCH) }, (_, batch) =>
    all.slice(batch * BATCH, (batch + 1) * BATCH),
  )
}

async function* examineHere(
  batches: readonly Batch[],
  root: string,
  examination: 'identity' | 'whole',
  signal: AbortSignal,
): AsyncGenerator<Examined> {
  const examine = examination === 'whole' ? examineWhole : examineBytes
  const examineFile = fileExaminer()
  for (const batch of batches) {
    signal.throwIfAborted()
    yield batch.map(({ index, manifest }) => ({
      index,
      outcome: examineFile(pathOf(root, manifest), (bytes) => examine(manifest, bytes)),
    }))
    // A signal is noticed between two batches.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Each thread has one batch in hand; whoever is done gets the next. */
async function* examineInThreads(
  batches: readonly Batch[],
  root: string,
  examination: 'identity' | 'whole',
  threads: number,
  signal: AbortSignal,
): AsyncGenerator<Examined> {
  const workerData: ExamineWorkerData = { examination }
  const script = new URL('./examine-worker.js', import.meta.url)
  const workers = Array.from({ length: threads }, () => new Worker(script, { workerData }))
  let next = 0
  const running = new Map<Worker, Promise<{ worker: Worker; examined: Examined }>>()
  const give = (worker: Worker): void => {
    const batch = batches[next]
    running.delete(worker)
    if (!batch) return
    next += 1
    const examined = examineBatch(worker, batch, root)
    // Nobody waits for a batch in hand when the reading ends early and takes the thread away.
    examined.catch(() => undefined)
    running.set(worker, examined)
  }
  try {
    for (const worker of workers) give(worker)
    while (running.size > 0) {
      const { worker, examined } = await Promise.race(running.values())
      give(worker)
      signal.throwIfAborted()
      yield examined
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
}

function examineBatch(
  worker: Worker,
  batch: Batch,
  root: string,
): Promise<{ worker: Worker; examined: Examined }> {
  const request: ExamineRequest = batch.map(({ manifest }) => ({ path: pathOf(root, manifest), manifest }))
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => reject(error)
    const exited = (code: number): void => reject(new Error(`an audit thread ended with ${code}`))
    worker.once('error', failed)
    worker.once('exit', exited)
    worker.once('message', (outcomes: ObjectOutcome[]) => {
      worker.off('error', failed)
      worker.off('exit', exited)
      const examined = batch.flatMap(({ index }, place) => {
        const outcome = outcomes[place]
        return outcome ? [{ index, outcome }] : []
      })
      if (examined.length < batch.length) reject(new Error('an audit thread left out an object'))
      else resolve({ worker, examined })
    })
    worker.postMessage(request)
  })
}

function pathOf(root: string, { sha256 }: Manifest): string {
  return join(root, objectPath(sha256))
}
