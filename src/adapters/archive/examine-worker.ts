import { parentPort, workerData } from 'node:worker_threads'
import { examineBytes } from '../../domain/year/identity.ts'
import type { ObjectOutcome } from '../../domain/year/finding.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { fileExaminer } from './examine-file.ts'

/** What the thread is started with. */
export interface ExamineWorkerData {
  examination: 'identity' | 'whole'
}

/** One batch of work: the objects' paths and their manifests. */
export type ExamineRequest = { path: string; manifest: Manifest }[]

const { examination } = workerData as ExamineWorkerData

// The schema of a whole payload takes longer to load than most audits have for a thread to start.
const examine =
  examination === 'identity' ? examineBytes : (await import('../../domain/year/envelope.ts')).examineWhole
const examineFile = fileExaminer()

parentPort?.on('message', (request: ExamineRequest) => {
  const outcomes: ObjectOutcome[] = request.map(({ path, manifest }) =>
    examineFile(path, (bytes) => examine(manifest, bytes)),
  )
  parentPort?.postMessage(outcomes)
})
