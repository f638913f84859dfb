import pLimit from 'p-limit'
import type { Objects, Auditors } from '../../domain/ports.ts'
import { Refusal, StorageFault } from '../../domain/refusal.ts'
import type { AuditedHead } from '../../domain/year/check.ts'
import type { examineBytes, ObjectOutcome } from '../../domain/year/examine.ts'
import { READ_ERROR } from '../../domain/year/finding.ts'
import { parseHead } from '../../domain/year/ledger.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { loadExaminer } from './examine-file.ts'

/** Heads read at the same time from a store on the network. */
const HEADS_CONCURRENCY = 16

/** Creates the auditor of an archive whose objects are read over the network or from memory. */
export function streamingAuditor(
  objects: Pick<Objects, 'keys' | 'headFile' | 'get' | 'logFiles'>,
): Auditors['objects'] {
  return {
    async heads() {
      const keys = await objects.keys('heads')
      const limit = pLimit(HEADS_CONCURRENCY)
      // After a failure the queued reads are dropped: the process would wait for all of them before it ends.
      const read = limit.map(keys, (key) => readHead(objects, key)).finally(() => limit.clearQueue())
      const heads = await read
      return heads.sort((a, b) => a.seq - b.seq)
    },
    logFiles: objects.logFiles,
    objectKeys: () => objects.keys('sha256'),
    // Not supported: each object that no entry names would cost a request.
    readAhead: () => null,
    async *examine(manifests, examination, jobs, signal) {
      const examine = await loadExaminer(examination)
      const examineAt = async (index: number, manifest: Manifest) => ({
        index,
        outcome: await examineObject(objects, manifest, examine),
      })
      for (let start = 0; start < manifests.length; start += jobs) {
        signal.throwIfAborted()
        yield await Promise.all(
          manifests.slice(start, start + jobs).map((manifest, offset) => examineAt(start + offset, manifest)),
        )
      }
    },
  }
}

async function readHead(objects: Pick<Objects, 'headFile'>, path: string): Promise<AuditedHead> {
  const seq = seqOfHeadKey(path)
  try {
    return auditedHead(path, seq === 0 ? null : await headBytes(objects, seq))
  } catch (error) {
    if (!(error instanceof StorageFault)) throw error
    return { path, seq, head: null, readError: READ_ERROR + error.message }
  }
}

/** Parses the file under a key of a head. The head is null unless its number matches the key. */
export function auditedHead(path: string, bytes: Uint8Array | null): AuditedHead {
  const seq = seqOfHeadKey(path)
  const head = bytes === null ? null : parseHead(bytes)
  return { path, seq, head: head?.seq === seq ? head : null }
}

/** Returns the number at the end of a head's key; 0 for any other key. */
function seqOfHeadKey(path: string): number {
  return Number(/^heads\/([1-9]\d{0,14})$/.exec(path)?.[1] ?? 0)
}

/** Reads a head file; null if it is missing or is not a regular file, which damages only this head. */
async function headBytes(objects: Pick<Objects, 'headFile'>, seq: number): Promise<Uint8Array | null> {
  try {
    return await objects.headFile(seq)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return null
    throw error
  }
}

async function examineObject(
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
