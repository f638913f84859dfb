import type { Archive, Clock, Ledger, YearReader } from '../../domain/ports.ts'
import { sha256HexToBase64 } from '../../domain/digest.ts'
import type { Instant } from '../../domain/time.ts'
import { latestAt } from '../../domain/year/chain.ts'
import type { TimelineItem } from '../../domain/year/chain.ts'
import { proveBytes } from '../../domain/year/envelope.ts'
import type { Head, Manifest } from '../../domain/year/ledger.ts'
import { coalesce } from '../coalesce.ts'

/** Proved bytes kept in memory, all publications together. */
const MEMORY_MAX_BYTES = 64 * 1024 * 1024

/** A proof is renewed after this long even when nothing seems to have changed. */
const PROOF_MAX_AGE_MS = 60_000

/** A publication whose bytes are proved, with the headers that follow from them. */
export interface ProvedPublication {
  manifest: Manifest
  bytes: Buffer
  etag: string
  /** For a 200 and a 304 alike. */
  headers: Readonly<Record<string, string>>
  /** Only where the bytes follow. */
  contentHeaders: Readonly<Record<string, string>>
}

export interface PublicationPorts {
  ledger: Pick<Ledger, 'witness'>
  archive: Pick<Archive, 'get' | 'newestHead' | 'objectWitness' | 'headWitness'>
  year: YearReader
  clock: Clock
}

export interface ProvedPublications {
  /** Every publication of both ledgers, proved against the newest head, in the order selection prefers the last of. */
  timeline(): Promise<readonly TimelineItem[]>
  /** The publication that was current at `at`, proved for this very question; null when there was none. */
  latestAt(at: Instant): Promise<ProvedPublication | null>
}

/** Something proved, and the witnesses under which it stays proved. */
interface Kept<T> {
  value: T
  witness: string
  provedAt: number
}

/**
 * Proves ledger, head and object for every question. What was proved stays in memory only under witnesses taken
 * before and after the reading, and is used again only while they are still the same: any change of the ledger, the
 * head or the object is noticed by the next request (docs/decisions/0002-what-may-stay-in-memory.md).
 */
export function provedPublications({ ledger, archive, year, clock }: PublicationPorts): ProvedPublications {
  let ledgerKept: Kept<{ timeline: TimelineItem[]; head: Head | null }> | null = null
  const objectsKept = new Map<string, Kept<ProvedPublication>>()
  let bytesKept = 0

  const ledgerWitness = async (head: Head | null): Promise<string | null> => {
    const [own, heads] = await Promise.all([ledger.witness(), archive.headWitness(head)])
    return own === null || heads === null ? null : `${own}/${heads}`
  }

  const readLedger = coalesce(async () => {
    const before = await ledgerWitness(await archive.newestHead())
    const { proved, head } = await year.read()
    const after = await ledgerWitness(head)
    const { timeline } = proved
    ledgerKept =
      before !== null && before === after
        ? { value: { timeline, head }, witness: before, provedAt: clock() }
        : null
    return timeline
  })

  const isCurrent = (kept: Kept<unknown>, witness: string | null): boolean =>
    witness === kept.witness && Math.abs(clock() - kept.provedAt) < PROOF_MAX_AGE_MS

  const timeline = async (): Promise<readonly TimelineItem[]> => {
    const kept = ledgerKept
    if (kept && isCurrent(kept, await ledgerWitness(kept.value.head))) return kept.value.timeline
    return readLedger()
  }

  const forget = (sha256: string): void => {
    bytesKept -= objectsKept.get(sha256)?.value.bytes.byteLength ?? 0
    objectsKept.delete(sha256)
  }

  const keep = (publication: ProvedPublication, witness: string): void => {
    const { sha256 } = publication.manifest
    forget(sha256)
    objectsKept.set(sha256, { value: publication, witness, provedAt: clock() })
    bytesKept += publication.bytes.byteLength
    for (const oldest of objectsKept.keys()) {
      if (bytesKept <= MEMORY_MAX_BYTES) break
      forget(oldest)
    }
  }

  const prove = async (manifest: Manifest): Promise<ProvedPublication> => {
    const before = await archive.objectWitness(manifest.sha256)
    const bytes = proveBytes(manifest, await archive.get(manifest.sha256))
    const after = await archive.objectWitness(manifest.sha256)
    const publication = describe(manifest, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    if (before !== null && before === after) keep(publication, before)
    else forget(manifest.sha256)
    return publication
  }

  return {
    timeline,
    async latestAt(at) {
      const selected = latestAt(await timeline(), at)
      if (!selected) return null
      const { manifest } = selected
      const kept = objectsKept.get(manifest.sha256)
      const current = kept && isCurrent(kept, await archive.objectWitness(manifest.sha256))
      // The same bytes may stand under two manifests; a proof holds for the manifest it was made for.
      return current && kept.value.manifest.publicationId === manifest.publicationId
        ? kept.value
        : prove(manifest)
    },
  }
}

function describe(manifest: Manifest, bytes: Buffer): ProvedPublication {
  const etag = `"${manifest.sha256}"`
  const digest = `sha-256=:${sha256HexToBase64(manifest.sha256)}:`
  return {
    manifest,
    bytes,
    etag,
    headers: {
      'cache-control': 'public, max-age=300, stale-while-revalidate=3600',
      etag,
      'last-modified': new Date(manifest.publishedAt).toUTCString(),
      'repr-digest': digest,
    },
    contentHeaders: { 'content-type': 'application/json; charset=utf-8', 'content-digest': digest },
  }
}
