import { LRUCache } from 'lru-cache'
import type { Clock } from '../../domain/ports.ts'
import type { Objects, Ledger, ChangeToken, YearReader } from '../../domain/year/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { latestAt } from '../../domain/year/chain.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { ALGORITHM_VERSION, proveBytes } from '../../domain/year/envelope.ts'
import { historyIndex, formatHttpDate, isFinalAt } from '../../domain/year/history/history.ts'
import { formatHead, leafText, legacyText } from '../../domain/year/ledger.ts'
import type { Head, LedgerContents, LedgerRow, Manifest } from '../../domain/year/ledger.ts'
import type { YearEnvelope } from '../../domain/year/schema.ts'
import { ledgerTree } from '../../domain/year/log/log-history.ts'
import type { MerkleTree } from '../../domain/year/log/merkle-tree.ts'
import { once } from '../../domain/once.ts'
import { JSON_TYPE, publishedBody } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import { singleFlight, batchPerTick } from '../single-flight.ts'

/** Size of the cache of verified publications, in bytes. */
const CACHE_MAX_BYTES = 64 * 1024 * 1024

export const HISTORY_CACHE = 'public, max-age=300, stale-while-revalidate=3600'

/** Age, in milliseconds, after which a proof is renewed even if the change tokens are equal. */
const PROOF_MAX_AGE_MS = 60_000

/** A publication with verified bytes and the headers derived from them. */
export interface ProvedPublication {
  manifest: Manifest
  published: PublishedBody
}

export interface ReadPublication {
  manifest: Manifest
  published: Pick<PublishedBody, 'body'>
}

/** Members of the publications that were read last, by digest: each takes several times as much memory as its bytes. */
const parsed = new LRUCache<string, YearEnvelope>({ max: 4 })

/** The members of a publication; null for an older layout. Verified bytes of this version have the schema of the Year. */
export function envelopeOf({ manifest, published }: ReadPublication): YearEnvelope | null {
  if (manifest.algorithmVersion !== ALGORITHM_VERSION) return null
  const envelope =
    parsed.get(manifest.sha256) ?? (JSON.parse(published.body.toString('utf8')) as YearEnvelope)
  parsed.set(manifest.sha256, envelope)
  return envelope
}

interface SelectedPublication extends ProvedPublication {
  /** True if no later publication can change the selection. */
  isFinal: boolean
}

export interface PublicationPorts {
  ledger: Pick<Ledger, 'changeToken'>
  objects: Pick<Objects, 'get' | 'newestHead' | 'objectChangeToken' | 'headChangeToken'>
  year: YearReader
  clock: Clock
}

export interface ProvedPublications {
  /** The publication that was current at `at`, verified for this request; null if there was none. */
  latestAt(at: Instant): Promise<SelectedPublication | null>
  /**
   * The publication of a manifest, with bytes verified for this request.
   *
   * @param manifest a manifest of the ledger that {@link entries} verified for the same request
   */
  publication(manifest: Manifest): Promise<ProvedPublication>
  /** The published texts of both ledgers and the newest head, verified for this request. */
  ledger(): Promise<PublishedLedger>
  /** All entries and publications of both ledgers with the newest head, verified for this request. */
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

/** Both verified ledgers and the newest head, and their published texts. */
interface LedgerProof {
  proved: ProvedLedger & { head: Head | null }
  published: PublishedLedger
  log: LedgerLog
}

/** A verified value, and the change token under which it stays valid. */
interface CachedProof<T> {
  value: T
  changeToken: string
  provedAt: number
}

/** Reads of change tokens, each at most once and after the arrival of every request that uses it. */
interface TokenReads {
  ledger: () => Promise<ChangeToken>
  object: (sha256: string) => Promise<ChangeToken>
}

/**
 * Verifies ledger, head and object for every request. A verified value is cached only if its change tokens before and
 * after the read are equal, and reused only while they stay equal: the next request detects any change of the ledger, the
 * head or the object (docs/decisions/0002-caching-verified-publications.md).
 *
 * @param cacheMaxBytes size of the cache of publications, in bytes
 */
export function provedPublications(
  { ledger, objects, year, clock }: PublicationPorts,
  cacheMaxBytes = CACHE_MAX_BYTES,
): ProvedPublications {
  let cachedLedger: CachedProof<LedgerProof> | null = null
  const cachedPublications = new LRUCache<string, CachedProof<ProvedPublication>>({
    maxSize: cacheMaxBytes,
    sizeCalculation: ({ value }) => value.published.body.byteLength,
  })
  const proofs = new Map<string, () => Promise<ProvedPublication>>()

  const ledgerChangeToken = async (head: Head | null): Promise<ChangeToken> => {
    const [ledgerToken, headToken] = await Promise.all([ledger.changeToken(), objects.headChangeToken(head)])
    return ledgerToken === null || headToken === null ? null : `${ledgerToken}/${headToken}`
  }

  const startTokenReads = batchPerTick((): TokenReads => {
    const readsByKey = new Map<string, Promise<ChangeToken>>()
    const readOnce = (key: string, read: () => Promise<ChangeToken>): Promise<ChangeToken> => {
      const pending = readsByKey.get(key) ?? read()
      readsByKey.set(key, pending)
      return pending
    }
    return {
      ledger: () => readOnce('ledger', () => ledgerChangeToken(cachedLedger?.value.proved.head ?? null)),
      object: (sha256) => readOnce(sha256, () => objects.objectChangeToken(sha256)),
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
    const isStable = before !== null && before === after
    cachedLedger = isStable ? { value, changeToken: before, provedAt: clock() } : null
    return value
  })

  const currentLedger = async (tokens: TokenReads): Promise<LedgerProof> => {
    const cached = cachedLedger
    return cached && isCurrent(cached, await tokens.ledger(), clock) ? cached.value : readLedger()
  }

  const proveObject = async (manifest: Manifest): Promise<ProvedPublication> => {
    const before = await objects.objectChangeToken(manifest.sha256)
    const bytes = proveBytes(manifest, await objects.get(manifest.sha256))
    const after = await objects.objectChangeToken(manifest.sha256)
    const publication = withHeaders(manifest, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    const { publicationId } = manifest
    if (before !== null && before === after)
      cachedPublications.set(publicationId, { value: publication, changeToken: before, provedAt: clock() })
    else cachedPublications.delete(publicationId)
    return publication
  }

  const prove = (manifest: Manifest): Promise<ProvedPublication> => {
    const proof = proofs.get(manifest.publicationId) ?? singleFlight(() => proveObject(manifest))
    proofs.set(manifest.publicationId, proof)
    return proof()
  }

  const currentPublication = async (manifest: Manifest, tokens: TokenReads): Promise<ProvedPublication> => {
    const cached = cachedPublications.get(manifest.publicationId)
    // A proof is valid only for the manifest it was made for.
    const isSame = cached?.value.manifest.sha256 === manifest.sha256
    return isSame && isCurrent(cached, await tokens.object(manifest.sha256), clock)
      ? cached.value
      : prove(manifest)
  }

  return {
    async latestAt(at) {
      const tokens = await startTokenReads()
      const { proved } = await currentLedger(tokens)
      const selected = latestAt(proved.timeline, at)
      if (selected === null) return null
      const { manifest, published } = await currentPublication(selected.manifest, tokens)
      return { manifest, published, isFinal: isFinalAt(proved.timeline, at) }
    },
    publication: async (manifest) => currentPublication(manifest, await startTokenReads()),
    ledger: async () => (await currentLedger(await startTokenReads())).published,
    entries: async () => (await currentLedger(await startTokenReads())).proved,
    log: async () => (await currentLedger(await startTokenReads())).log,
  }
}

function isCurrent(cached: CachedProof<unknown>, changeToken: ChangeToken, clock: Clock): boolean {
  return changeToken === cached.changeToken && Math.abs(clock() - cached.provedAt) < PROOF_MAX_AGE_MS
}

function withHeaders(manifest: Manifest, bytes: Buffer): ProvedPublication {
  const options = {
    contentType: JSON_TYPE,
    cacheControl: HISTORY_CACHE,
    headers: { 'last-modified': formatHttpDate(manifest.publishedAt) },
  }
  return { manifest, published: publishedBody(bytes, options, manifest.sha256) }
}

/** The published texts of the verified ledgers, which anyone can verify again (docs/auditing.md). */
interface PublishedLedger {
  /** One line per entry: the text whose digest is its leaf. */
  entries: () => PublishedBody
  /** The text whose digest is the seal. */
  legacy: () => PublishedBody
  /** The newest head; null if there is none. */
  head: () => PublishedBody | null
  /** Every publication and gap of both ledgers. */
  index: () => PublishedBody
}

const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8'

/** Makes each text at its first use and keeps it: ten years of entries are two megabytes. */
function publishedLedger(
  proved: ProvedLedger,
  { rows, legacy }: LedgerContents,
  head: Head | null,
): PublishedLedger {
  // During an import, the head exists before the entry that it pins.
  const pinned = head !== null && head.seq <= rows.length ? head : null
  return {
    entries: once(() => publishedText(rows.map((row) => `${leafText(row)}\n`).join(''), NDJSON_TYPE)),
    legacy: once(() => publishedText(legacyText(legacy), NDJSON_TYPE)),
    head: () => pinned && publishedText(formatHead(pinned), JSON_TYPE),
    index: once(() => publishedText(JSON.stringify(historyIndex(proved, pinned)), JSON_TYPE)),
  }
}

function publishedText(text: string, contentType: string): PublishedBody {
  return publishedBody(text, { contentType, cacheControl: 'public, max-age=60' })
}
