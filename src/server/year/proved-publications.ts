import { LRUCache } from 'lru-cache'
import type { Objects, Clock, Ledger, ChangeToken, YearReader } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { latestAt } from '../../domain/year/chain.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { proveBytes } from '../../domain/year/envelope.ts'
import { historyIndex } from '../../domain/year/history.ts'
import { formatHead, leafText, legacyText } from '../../domain/year/ledger.ts'
import type { Head, LedgerContents, LedgerRow, Manifest } from '../../domain/year/ledger.ts'
import { ledgerTree } from '../../domain/year/log-history.ts'
import type { MerkleTree } from '../../domain/year/merkle-tree.ts'
import { published } from '../respond.ts'
import type { Published } from '../respond.ts'
import { singleFlight, once, batchPerTick } from '../single-flight.ts'

/** Proved bytes kept in memory, all publications together. */
const MEMORY_MAX_BYTES = 64 * 1024 * 1024

/** A proof is renewed after this long even when nothing seems to have changed. */
const PROOF_MAX_AGE_MS = 60_000

/** A publication whose bytes are proved, with the headers that follow from them. */
export interface ProvedPublication {
  manifest: Manifest
  published: Published
}

export interface PublicationPorts {
  ledger: Pick<Ledger, 'changeToken'>
  objects: Pick<Objects, 'get' | 'newestHead' | 'objectChangeToken' | 'headChangeToken'>
  year: YearReader
  clock: Clock
}

export interface ProvedPublications {
  /** The publication that was current at `at`, proved for this very question; null when there was none. */
  latestAt(at: Instant): Promise<ProvedPublication | null>
  /**
   * The publication a manifest names, its bytes proved for this very question.
   *
   * @param manifest of the ledger that {@link entries} proved for the same question
   */
  publication(manifest: Manifest): Promise<ProvedPublication>
  /** Both ledgers and the newest head, proved for this very question, as what is published of them. */
  ledger(): Promise<PublishedLedger>
  /** Every entry and publication of both ledgers with the newest head, proved for this very question. */
  entries(): Promise<ProvedLedger & { head: Head | null }>
  /** Both ledgers as the log that is signed, proved for this very question. */
  log(): Promise<LedgerLog>
}

/** Both ledgers, proved, as the log that is signed. */
export interface LedgerLog {
  proved: ProvedLedger
  rows: readonly LedgerRow[]
  tree: () => MerkleTree
  /** The text the seal is the digest of. */
  legacy: () => string
}

/** Both ledgers and the newest head, proved, and what is published of them. */
interface LedgerProof {
  proved: ProvedLedger & { head: Head | null }
  published: PublishedLedger
  log: LedgerLog
}

/** Something proved, and the change tokens under which it stays proved. */
interface Kept<T> {
  value: T
  changeToken: string
  provedAt: number
}

/** One look at the change tokens, each taken at most once, and only after every request that uses it had arrived. */
interface Look {
  ledger: () => Promise<ChangeToken>
  object: (sha256: string) => Promise<ChangeToken>
}

/**
 * Proves ledger, head and object for every question. What was proved stays in memory only under change tokens taken
 * before and after the reading, and is used again only while they are still the same: any change of the ledger, the
 * head or the object is noticed by the next request (docs/decisions/0002-caching-verified-publications.md).
 *
 * @param memoryMaxBytes proved bytes kept, all publications together
 */
export function provedPublications(
  { ledger, objects, year, clock }: PublicationPorts,
  memoryMaxBytes = MEMORY_MAX_BYTES,
): ProvedPublications {
  let ledgerKept: Kept<LedgerProof> | null = null
  const publicationsKept = new LRUCache<string, Kept<ProvedPublication>>({
    maxSize: memoryMaxBytes,
    sizeCalculation: ({ value }) => value.published.body.byteLength,
  })
  const proofs = new Map<string, () => Promise<ProvedPublication>>()

  const ledgerChangeToken = async (head: Head | null): Promise<ChangeToken> => {
    const [own, heads] = await Promise.all([ledger.changeToken(), objects.headChangeToken(head)])
    return own === null || heads === null ? null : `${own}/${heads}`
  }

  const look = batchPerTick((): Look => {
    const seen = new Map<string, Promise<ChangeToken>>()
    const takeOnce = (key: string, take: () => Promise<ChangeToken>): Promise<ChangeToken> => {
      const taken = seen.get(key) ?? take()
      seen.set(key, taken)
      return taken
    }
    return {
      ledger: () => takeOnce('ledger', () => ledgerChangeToken(ledgerKept?.value.proved.head ?? null)),
      object: (sha256) => takeOnce(sha256, () => objects.objectChangeToken(sha256)),
    }
  })

  const readLedger = singleFlight(async (): Promise<LedgerProof> => {
    const before = await ledgerChangeToken(await objects.newestHead())
    const { proved, contents, head } = await year.read()
    const after = await ledgerChangeToken(head)
    const { rows, legacy } = contents
    const value = {
      proved: { ...proved, head },
      published: publishedLedger(proved, contents, head),
      log: { proved, rows, tree: once(() => ledgerTree(rows)), legacy: () => legacyText(legacy) },
    }
    const settled = before !== null && before === after
    ledgerKept = settled ? { value, changeToken: before, provedAt: clock() } : null
    return value
  })

  const ledgerSeen = async (seen: Look): Promise<LedgerProof> => {
    const kept = ledgerKept
    return kept && isCurrent(kept, await seen.ledger(), clock) ? kept.value : readLedger()
  }

  const proveNow = async (manifest: Manifest): Promise<ProvedPublication> => {
    const before = await objects.objectChangeToken(manifest.sha256)
    const bytes = proveBytes(manifest, await objects.get(manifest.sha256))
    const after = await objects.objectChangeToken(manifest.sha256)
    const publication = describe(manifest, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    const { publicationId } = manifest
    if (before !== null && before === after)
      publicationsKept.set(publicationId, { value: publication, changeToken: before, provedAt: clock() })
    else publicationsKept.delete(publicationId)
    return publication
  }

  const prove = (manifest: Manifest): Promise<ProvedPublication> => {
    const proof = proofs.get(manifest.publicationId) ?? singleFlight(() => proveNow(manifest))
    proofs.set(manifest.publicationId, proof)
    return proof()
  }

  const publicationSeen = async (manifest: Manifest, seen: Look): Promise<ProvedPublication> => {
    const found = publicationsKept.get(manifest.publicationId)
    // A proof holds for the very manifest it was made for.
    const isSame = found?.value.manifest.sha256 === manifest.sha256
    return isSame && isCurrent(found, await seen.object(manifest.sha256), clock)
      ? found.value
      : prove(manifest)
  }

  return {
    async latestAt(at) {
      const seen = await look()
      const { proved } = await ledgerSeen(seen)
      const selected = latestAt(proved.timeline, at)
      return selected && publicationSeen(selected.manifest, seen)
    },
    publication: async (manifest) => publicationSeen(manifest, await look()),
    ledger: async () => (await ledgerSeen(await look())).published,
    entries: async () => (await ledgerSeen(await look())).proved,
    log: async () => (await ledgerSeen(await look())).log,
  }
}

function isCurrent(kept: Kept<unknown>, changeToken: ChangeToken, clock: Clock): boolean {
  return changeToken === kept.changeToken && Math.abs(clock() - kept.provedAt) < PROOF_MAX_AGE_MS
}

function describe(manifest: Manifest, bytes: Buffer): ProvedPublication {
  const as = {
    contentType: 'application/json; charset=utf-8',
    cacheControl: 'public, max-age=300, stale-while-revalidate=3600',
    headers: { 'last-modified': new Date(manifest.publishedAt).toUTCString() },
  }
  return { manifest, published: published(bytes, as, manifest.sha256) }
}

/** What a host publishes of its proved ledgers, for anyone to prove again (docs/auditing.md). */
interface PublishedLedger {
  /** One line an entry, each the text its leaf is the digest of. */
  entries: () => Published
  /** The text the seal is the digest of. */
  legacy: () => Published
  /** The newest head; null when there is none. */
  head: () => Published | null
  /** Every publication and gap of both ledgers. */
  index: () => Published
}

const JSON_TYPE = 'application/json; charset=utf-8'
const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'

/** Each text is made when it is first asked for, and kept: ten years of entries are two megabytes. */
function publishedLedger(
  proved: ProvedLedger,
  { rows, legacy }: LedgerContents,
  head: Head | null,
): PublishedLedger {
  // While an import has begun and not ended, a head is there before the entry it pins.
  const pinned = head !== null && head.seq <= rows.length ? head : null
  return {
    entries: once(() => publishedText(rows.map((row) => `${leafText(row)}\n`).join(''), NDJSON_TYPE)),
    legacy: once(() => publishedText(legacyText(legacy), NDJSON_TYPE)),
    head: () => pinned && publishedText(formatHead(pinned), JSON_TYPE),
    index: once(() => publishedText(JSON.stringify(historyIndex(proved, pinned)), JSON_TYPE)),
  }
}

function publishedText(text: string, contentType: string): Published {
  return published(Buffer.from(text), { contentType, cacheControl: 'public, max-age=60' })
}
