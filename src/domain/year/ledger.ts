import type { Day, Instant } from '../time.ts'

/**
 * The words of the ledger (docs/publishing.md). Rows are what the database holds; entries are what a
 * proved row means.
 */

/** What identifies one immutable publication: the facts its envelope must repeat, and the digest of its bytes. */
export interface Manifest {
  publicationId: string
  algorithmVersion: string
  schemaVersion: number
  kind: string
  asOfDay: Day
  windowStart: Instant
  windowEnd: Instant
  generatedAt: Instant
  publishedAt: Instant
  /** SHA-256 of the stored bytes, 64 lower-case hex digits. */
  sha256: string
  /** Length of the stored bytes. */
  byteSize: number
}

/** Why a day has no publication: every attempt failed, or no run came that day. */
export type GapReason = 'attempts_spent' | 'missed'

/** What one entry of the versioned ledger says. */
export type EntryContent =
  | { kind: 'publication'; manifest: Manifest }
  | { kind: 'gap'; asOfDay: Day; reason: GapReason; attempts: number }
  | { kind: 'legacy-seal'; rows: number; digest: string }

/** A chained entry: its place, its time and the leaf hash that covers it and the leaf before. */
export type LedgerEntry = EntryContent & {
  seq: number
  recordedAt: Instant
  previousLeaf: string
  leaf: string
}

/** Every column of one row of the versioned ledger, as read, in the order the leaf covers them. */
export interface LedgerRow {
  seq: number
  kind: string
  recordedAt: number
  asOfDay: string | null
  publicationId: string | null
  algorithmVersion: string | null
  schemaVersion: number | null
  envelopeKind: string | null
  windowStart: number | null
  windowEnd: number | null
  generatedAt: number | null
  publishedAt: number | null
  sha256: string | null
  byteSize: number | null
  reason: string | null
  attempts: number | null
  legacyRows: number | null
  legacyDigest: string | null
  previousLeaf: string
  leaf: string
}

/** Every column of one row of the legacy ledger, in the order the seal covers them. */
export interface LegacyRow {
  position: number
  publicationId: string
  algorithmVersion: string
  schemaVersion: number
  envelopeKind: string
  asOfDay: string
  windowStart: number
  windowEnd: number
  generatedAt: number
  publishedAt: number
  sha256: string
  byteSize: number
}

/**
 * Where the chain of a founding stands before its seal: written before the founding is committed, so that a head that
 * is already there can be told from one whose ledger was lost (docs/decisions/0010-founding-an-archive.md).
 */
export interface FoundingMark {
  /** Entries the founding has before the seal. */
  seq: number
  /** Leaf of the last of them. */
  leaf: string
  beganAt: Instant
}

/** Both ledgers as one reading found them. */
export interface LedgerContents {
  rows: LedgerRow[]
  legacy: LegacyRow[]
  /** Of the founding that was begun, ended or not; null when there was none, or one without versioned entries. */
  founding: FoundingMark | null
}

/** The newest `heads/<seq>` of the object store: where the ledger stood when it was last known. */
export interface Head {
  seq: number
  leaf: string
  time: Instant
}

/** One attempt to publish an as-of day; `failedAt` is null while it runs, when it succeeded, or when it was killed. */
export interface Attempt {
  asOfDay: Day
  attempt: number
  startedAt: Instant
  failedAt: Instant | null
  reason: string | null
}
