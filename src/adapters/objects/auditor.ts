import pLimit from 'p-limit'
import type { Objects, Auditors } from '../../domain/ports.ts'
import { Refusal, StorageFault } from '../../domain/refusal.ts'
import type { AuditedHead } from '../../domain/year/check.ts'
import type { examineBytes, ObjectOutcome } from '../../domain/year/examine.ts'
import { READ_ERROR } from '../../domain/year/finding.ts'
import { parseHead } from '../../domain/year/ledger.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { examinationOf } from './examine-file.ts'

/** Heads read at a time from a store that is reached over the network. */
const HEADS_AT_A_TIME = 16

/** The auditor of an archive whose objects come over the network, or from memory. */
export function streamingAuditor(
  objects: Pick<Objects, 'keys' | 'headFile' | 'get' | 'logFiles'>,
): Auditors['objects'] {
  return {
    async heads() {
      const keys = await objects.keys('heads')
      const limit = pLimit(HEADS_AT_A_TIME)
      // After a failure no more are asked for: the process would wait for all of them before it ends.
      const read = limit.map(keys, (key) => readHead(objects, key)).finally(() => limit.clearQueue())
      const heads = await read
      return heads.sort((a, b) => a.seq - b.seq)
    },
    logFiles: objects.logFiles,
    objectKeys: () => objects.keys('sha256'),
    // Reading what no entry names costs a request each.
    readAhead: () => null,
    async *examine(manifests, examination, jobs, signal) {
      const examine = await examinationOf(examination)
      const look = async (index: number, manifest: Manifest) => ({
        index,
        outcome: await outcomeOf(objects, manifest, examine),
      })
      for (let start = 0; start < manifests.length; start += jobs) {
        signal.throwIfAborted()
        yield await Promise.all(
          manifests.slice(start, start + jobs).map((manifest, place) => look(start + place, manifest)),
        )
      }
    },
  }
}

async function readHead(objects: Pick<Objects, 'headFile'>, path: string): Promise<AuditedHead> {
  const seq = headSeq(path)
  try {
    return auditedHead(path, seq === 0 ? null : await headBytes(objects, seq))
  } catch (error) {
    if (!(error instanceof StorageFault)) throw error
    return { path, seq, head: null, readError: READ_ERROR + error.message }
  }
}

/** What a key among the heads holds; anything else than the head of its number is no head. */
export function auditedHead(path: string, bytes: Uint8Array | null): AuditedHead {
  const seq = headSeq(path)
  const head = bytes === null ? null : parseHead(bytes)
  return { path, seq, head: head?.seq === seq ? head : null }
}

/** The number a head's key ends with; 0 for anything else. */
function headSeq(path: string): number {
  return Number(/^heads\/([1-9]\d{0,14})$/.exec(path)?.[1] ?? 0)
}

/** The bytes of a head file; null also for something in its place that is no file, which spoils this head alone. */
async function headBytes(objects: Pick<Objects, 'headFile'>, seq: number): Promise<Uint8Array | null> {
  try {
    return await objects.headFile(seq)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return null
    throw error
  }
}

async function outcomeOf(
  objects: Pick<Objects, 'get'>,
  manifest: Manifest,
  examine: typeof examineBytes,
): Promise<ObjectOutcome> {
  try {
    const bytes = await objects.get(manifest.sha256)
    if (bytes === null) return { found: 'nothing' }
    return { found: 'bytes', byteSize: bytes.byteLength, problems: examine(manifest, bytes) }
  } catch (error) {
    const why =
      error instanceof Refusal
        ? (error.detail ?? error.code)
        : error instanceof Error
          ? error.message
          : String(error)
    const damaged = error instanceof Refusal && error.code === 'storage_damaged'
    return { found: 'something else', why: damaged ? why : READ_ERROR + why }
  }
}
