import type { LeaseKeeper } from '../lease.ts'
import type { Clock, Day, Instant } from '../time.ts'
import type { AuditedContents, AuditedHead } from './audit.ts'
import type { AuditRecord } from './audit-record.ts'
import type { ProvedLedger } from './chain.ts'
import type { FindingCode, ObjectOutcome, SeenObject } from './finding.ts'
import type { Attempt, FoundingMark, Head, LedgerContents, LedgerRow, Manifest } from './ledger.ts'
import type { SeenBytes } from './identity.ts'
import type { Founding } from './legacy-import.ts'

/** What the archive asks of the outside; `domain/ports.ts` gives it out with the rest, and its promises hold here too. */

/**
 * A token that differs whenever what it stands for may have changed, or null while the store cannot tell (the
 * change would be too recent for its timestamps, or the engine has none). Equal tokens prove equal content.
 */
export type Witness = string | null

/** Objects by digest, and heads. */
export interface Archive {
  /** The stored bytes, undecoded. null only when proved absent; any doubt throws. */
  get(sha256: string): Promise<Uint8Array | null>
  /** Durable, read back and hashed on return. Writing the same digest again is a no-op; other bytes are refused. */
  put(sha256: string, bytes: Uint8Array): Promise<void>
  /** The head with the greatest sequence number, or null when there is none. */
  newestHead(): Promise<Head | null>
  /** The bytes kept as the head of an entry, whatever they are; null when there is none. */
  headFile(seq: number): Promise<Uint8Array | null>
  /** Durable on return. The same head again is a no-op; a different one for the same sequence is refused. */
  putHead(head: Head): Promise<void>
  /** Witness of one object's bytes. */
  objectWitness(sha256: string): Promise<Witness>
  /** Witness of `newestHead()`, given the head it returned last. */
  headWitness(newest: Head | null): Promise<Witness>
  /**
   * Every key below `sha256` or `heads` as the store names it, with `/` and from the store's root on, in no order; what
   * was not put there by this port too. Files a killed writer left unfinished are not among them.
   */
  keys(area: 'sha256' | 'heads'): Promise<string[]>
  /** Resolves when the store can be trusted with writes. A command that writes asks first; a write asks anyway. */
  prepare(): Promise<void>
  /** Resolves when the store can be reached. */
  ping(): Promise<void>
}

/** Why an entry was not appended although the ledger works. */
export type AppendRefusal = 'lease-lost' | 'ledger-moved' | 'clock-went-back' | 'too-late'

/** Why an archive was not founded although the ledger works. */
export type FoundingRefusal = Extract<AppendRefusal, 'lease-lost' | 'ledger-moved'>

/** Publications, gaps, attempts and the publisher's lease. Append-only, and the database says so. */
export interface Ledger extends LeaseKeeper {
  /** Both ledgers in one consistent reading. Damaged text refuses; it never ends the process. */
  read(): Promise<LedgerContents>
  /** Witness of `read()`. */
  witness(): Promise<Witness>
  /** The counted attempts of a day, ascending. */
  attempts(asOfDay: Day): Promise<Attempt[]>
  /** The earliest day an attempt was ever counted for. */
  firstAttemptDay(): Promise<Day | null>
  /** Counts one attempt, durable on return; false when the lease is lost or that attempt is counted already. */
  countAttempt(asOfDay: Day, attempt: number, startedAt: Instant, token: string): Promise<boolean>
  failAttempt(asOfDay: Day, attempt: number, failedAt: Instant, reason: string): Promise<void>
  /**
   * Appends one sealed row in one transaction, durable on return. Inside it the lease must still be held, the
   * row must follow the last one, its `publishedAt` must exceed every other, and `clock()` must be at most
   * `withinMs` past its `recordedAt`.
   */
  append(
    row: LedgerRow,
    guard: { token: string; clock: Clock; withinMs: number },
  ): Promise<AppendRefusal | null>
  /**
   * Marks a founding as begun, durable on return; the same mark again is a no-op that keeps the first time. Refused when
   * the lease is lost, or when the ledger has an entry or another mark.
   */
  beginFounding(mark: FoundingMark, guard: { token: string; now: Instant }): Promise<FoundingRefusal | null>
  /**
   * Writes the legacy rows, the entries and the seal after them in one transaction, durable on return. Inside it the
   * lease must still be held, both ledgers must be empty, and the mark, when there is one, must be of these entries.
   */
  found(
    founding: Founding,
    seal: LedgerRow,
    guard: { token: string; now: Instant },
  ): Promise<FoundingRefusal | null>
  /** Every counted attempt, ascending by day and number. */
  everyAttempt(): Promise<Attempt[]>
  /**
   * Takes over the rows and attempts of another ledger that begins with what this one has, in one transaction, durable
   * on return. Inside it the lease must still be held and the ledger must be as long as it was when it was read.
   *
   * @param before what this ledger held when the two were compared
   */
  adopt(
    contents: LedgerContents,
    attempts: readonly Attempt[],
    before: LedgerContents,
    guard: { token: string; now: Instant },
  ): Promise<FoundingRefusal | null>
  /** Resolves when the ledger can be opened and its migrations are applied. */
  ping(): Promise<void>
}

/** Both ledgers and the head, read and proved together. */
export interface YearReader {
  /** @throws Refusal `storage_damaged` naming the first thing that cannot be right */
  read(): Promise<{ proved: ProvedLedger; contents: LedgerContents; head: Head | null }>
}

/** The ledger as an auditor reads it: strictly read-only, damaged rows told one by one. */
export interface LedgerAuditor {
  /** Both ledgers as stored; null when there is no ledger. */
  read(): Promise<AuditedContents | null>
}

/** The object store as an auditor reads it: strictly read-only, read errors told apart from damage. */
export interface ArchiveAuditor {
  /** Every head, ascending. */
  heads(): Promise<AuditedHead[]>
  /** Key of every object below `sha256/`, whatever its name. */
  objectKeys(): Promise<string[]>
  /**
   * Reads the object of every manifest and examines it, several at a time.
   *
   * @param examination `identity`: size, digest and identity; `whole`: what a server proves before it serves
   * @param jobs how many at a time
   * @returns batches in no particular order; `index` is the manifest's
   */
  examine(
    manifests: readonly Manifest[],
    examination: 'identity' | 'whole',
    jobs: number,
    signal: AbortSignal,
  ): AsyncIterable<{ index: number; outcome: ObjectOutcome }[]>
  /**
   * Begins to read whatever stands where objects belong, before it is known what it should be. What it does not come to
   * see is to be examined as any object is.
   *
   * @param jobs how many objects at a time
   * @returns null where nothing is gained by it
   */
  readAhead(jobs: number): ReadAhead | null
}

/** Objects that are being read; whoever has them read closes it. */
export interface ReadAhead {
  /** What was seen of them by their keys, in batches, in no particular order. To be asked for once. */
  seen(signal: AbortSignal): AsyncIterable<{ key: string; seen: SeenObject }[]>
  /** Ends the reading, done or not. */
  close(): Promise<void>
}

/** What audits left for whoever asks how the archive was found last; kept apart from the archive. */
export interface AuditLog {
  /** Durable on return. Only the newest hundred are kept. */
  record(audit: AuditRecord): Promise<void>
  /** The audit recorded last; null when there is none. */
  newest(): Promise<AuditRecord | null>
}

/** What a host answered to one question. Its header values are plain ASCII, or null. */
export interface PublishedAnswer {
  status: number
  etag: string | null
  lastModified: string | null
  /** `X-Year-History-Requested-At` */
  requestedAt: string | null
  /** The code in a refusal's `error`, or null. */
  error: string | null
  /** The body as it was sent; null when it is too large to be kept, or a refusal too long to be read. */
  bytes: Uint8Array | null
  /** Of the body, whether or not it is kept. */
  seen: SeenBytes
}

/**
 * The public answers of a host (docs/history-api.md), whatever their status.
 *
 * All of them refuse with `source_unavailable` when there is no answer: not reachable, too slow, too large, or changed
 * on the way by a proxy that compresses.
 */
export interface PublishedHistory {
  /** Base URL of the host, as a person would name it. */
  base: string
  ledger(signal: AbortSignal): Promise<PublishedAnswer>
  legacyLedger(signal: AbortSignal): Promise<PublishedAnswer>
  head(signal: AbortSignal): Promise<PublishedAnswer>
  /**
   * The publication that was current at an instant.
   *
   * @param held digests of publications the asker holds, for `If-None-Match`; none: the body is wanted in any case
   */
  at(instant: Instant, held: readonly string[], signal: AbortSignal): Promise<PublishedAnswer>
}

/** One way to damage an archive, and what an audit must then say. */
export interface Mutation {
  name: string
  /** Of these an audit must report one. */
  expects: readonly FindingCode[]
  /** True for what is reported as a note and leaves the archive sound. */
  sound: boolean
  /** True when no trace is left inside the archive, so that only a head kept elsewhere can tell. */
  needsKeptHead: boolean
  /** Damages the archive in the folder that {@link DamageSample.restored} gave. */
  apply(folder: string): Promise<void>
}

/** A small sound archive of its own making, in a temporary folder, to be damaged again and again. */
export interface DamageSample {
  mutations: readonly Mutation[]
  /** The newest head, as an auditor would have kept it. */
  keptHead: Head & { path: string }
  /** The sample's data folder as it was made, whatever was done to it since. */
  restored(): Promise<string>
  /** Removes the sample. */
  remove(): Promise<void>
}

/** Refusals of {@link PublishedHistory}. */
export type PublishedRefusal = 'source_unavailable'
