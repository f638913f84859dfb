import type { Archive, ArchiveAuditor } from '../../domain/ports.ts'
import { READ_ERROR } from '../../domain/year/audit.ts'
import type { AuditedHead, ObjectOutcome } from '../../domain/year/audit.ts'
import { examineWhole } from '../../domain/year/envelope.ts'
import { examineBytes } from '../../domain/year/identity.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { Refusal } from '../../domain/refusal.ts'
import { parseHead } from '../../domain/year/head-file.ts'

/** Heads read at a time from a store that is reached over the network. */
const HEADS_AT_A_TIME = 16

/** Heads and keys, by way of the archive itself. */
export function headAuditor(
  archive: Pick<Archive, 'keys' | 'headFile'>,
): Pick<ArchiveAuditor, 'heads' | 'objectKeys'> {
  return {
    async heads() {
      const keys = await archive.keys('heads')
      const heads: AuditedHead[] = []
      for (let start = 0; start < keys.length; start += HEADS_AT_A_TIME) {
        const some = keys.slice(start, start + HEADS_AT_A_TIME)
        heads.push(...(await Promise.all(some.map((key) => readHead(archive, key)))))
      }
      return heads.sort((a, b) => a.seq - b.seq)
    },
    objectKeys: () => archive.keys('sha256'),
  }
}

/** The auditor of an archive whose objects come over the network, or from memory. */
export function streamingAuditor(archive: Pick<Archive, 'keys' | 'headFile' | 'get'>): ArchiveAuditor {
  return {
    ...headAuditor(archive),
    async *examine(manifests, examination, jobs, signal) {
      const examine = examination === 'whole' ? examineWhole : examineBytes
      const look = async (index: number, manifest: Manifest) => ({
        index,
        outcome: await outcomeOf(archive, manifest, examine),
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

/** Anything else among the heads is reported as what it is: no head. */
async function readHead(archive: Pick<Archive, 'headFile'>, path: string): Promise<AuditedHead> {
  const seq = Number(/^heads\/([1-9]\d{0,14})$/.exec(path)?.[1] ?? 0)
  const bytes = seq === 0 ? null : await bytesOfHead(archive, seq)
  const head = bytes === null ? null : parseHead(bytes)
  return { path, seq, head: head?.seq === seq ? head : null }
}

/** A link or a pipe in a head's place spoils that head alone. */
async function bytesOfHead(archive: Pick<Archive, 'headFile'>, seq: number): Promise<Uint8Array | null> {
  try {
    return await archive.headFile(seq)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return null
    throw error
  }
}

async function outcomeOf(
  archive: Pick<Archive, 'get'>,
  manifest: Manifest,
  examine: typeof examineBytes,
): Promise<ObjectOutcome> {
  try {
    const bytes = await archive.get(manifest.sha256)
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
