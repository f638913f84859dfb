import type { ItemRef } from '../feed/source.ts'
import type { LeaseKeeper } from '../jobs.ts'
import type { Day, Instant } from '../time.ts'
import type { ProvedLedger } from './chain.ts'
import type { ObjectOutcome, ReadFile, ReadObject } from './examine.ts'
import type {
  AppendRefusal,
  Attempt,
  AuditedContents,
  FoundingMark,
  FoundingRefusal,
  Head,
  LedgerContents,
  LedgerRow,
  Manifest,
} from './ledger.ts'
import type { Founding } from './legacy-import.ts'
import type { LogFile, SeenLog } from './log/log-history.ts'
import type { PublishedResponse } from './published-ledger.ts'
import type { VerifiedTitle } from './rank.ts'
import type { Checkpoint, VerifierKey } from './log/signed-note.ts'
import type { Clock, LineSource } from '../ports.ts'

/** The ports of the archive: its stores, their audits, and the archives of others. The rules of all ports stand in `../ports.ts`. */

/**
 * A token that changes whenever the content it stands for may have changed. Equal tokens prove equal content; null
 * while the store cannot tell (a change too recent for its timestamps, or an engine without tokens).
 */
export type ChangeToken = string | null

/** Publications, gaps, attempts and the publisher's lease. The database itself enforces append-only tables. */
export interface Ledger extends LeaseKeeper {
  /** Reads both ledgers in one consistent snapshot. Damaged text is a refusal. */
  read(): Promise<LedgerContents>
  /** Change token of `read()`. */
  changeToken(): Promise<ChangeToken>
  /** The counted attempts, of one day or all, ascending by day and number. */
  attempts(asOfDay?: Day): Promise<Attempt[]>
  /** Counts one attempt, durable on return; false when the lease is lost or the attempt is already counted. */
  countAttempt(asOfDay: Day, attempt: number, startedAt: Instant, token: string): Promise<boolean>
  failAttempt(asOfDay: Day, attempt: number, failedAt: Instant, reason: string): Promise<void>
  /**
   * Appends one sealed row in one transaction, durable on return. The transaction checks that the lease is held, the
   * row follows the last one and is not recorded before it, its `publishedAt` exceeds every other, and `clock()` is at
   * most `withinMs` past its `recordedAt`.
   */
  append(
    row: LedgerRow,
    guard: { token: string; clock: Clock; withinMs: number },
  ): Promise<AppendRefusal | null>
  /**
   * Records the start of a founding, durable on return; the same mark again is a no-op that keeps the first time.
   * Refused when the lease is lost, or when the ledger has an entry or another mark.
   */
  beginFounding(mark: FoundingMark, guard: { token: string; now: Instant }): Promise<FoundingRefusal | null>
  /**
   * Writes the legacy rows, the entries and their seal in one transaction, durable on return. The transaction checks
   * that the lease is held, both ledgers are empty, and a mark, if any, belongs to these entries.
   */
  commitFounding(
    founding: Founding,
    seal: LedgerRow,
    guard: { token: string; now: Instant },
  ): Promise<FoundingRefusal | null>
  /**
   * Copies the rows and attempts of another ledger that extends this one, in one transaction, durable on return. The
   * transaction checks that the lease is held and that the ledger is as long as `before`, the state it was compared
   * with.
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

/** The object store: objects by digest, heads, files of the signed log, and recommendations. */
export interface Objects {
  /** The stored bytes; null only when the object is certainly missing, otherwise an error. */
  get(sha256: string): Promise<Uint8Array | null>
  /** Stores an object, durable and verified on return. The same digest again is a no-op; other bytes are refused. */
  put(sha256: string, bytes: Uint8Array): Promise<void>
  /** The head with the greatest sequence number; null without one. */
  newestHead(): Promise<Head | null>
  /** The stored bytes of an entry's head, valid or not; null when missing. */
  headFile(seq: number): Promise<Uint8Array | null>
  /**
   * Stores a head, durable on return. The same head again is a no-op; a different one for the same sequence is refused.
   */
  putHead(head: Head): Promise<void>
  objectChangeToken(sha256: string): Promise<ChangeToken>
  /** Change token of `newestHead()`, given the head it returned last. */
  headChangeToken(newest: Head | null): Promise<ChangeToken>
  /**
   * Every key below `sha256` or `heads`, relative to the store's root with `/`, in no order, including foreign files.
   * Unfinished files of a killed writer are excluded.
   */
  keys(area: 'sha256' | 'heads'): Promise<string[]>
  /** Resolves when the store accepts durable writes. Every write checks this too. */
  prepare(): Promise<void>
  /**
   * Resolves when the store can be reached.
   *
   * @param newest digest of an object that it must have
   */
  ping(newest?: string): Promise<void>

  /** Files of the signed log: checkpoints and policies. Each is written once. */
  logFiles: {
    /** Lists every file of the log, in no order. */
    list(): Promise<LogFile[]>
    /** The stored bytes, valid or not; null only when the file is certainly missing. */
    get(file: LogFile): Promise<Uint8Array | null>
    /** Stores a file, durable and verified on return. The same bytes again are a no-op; other bytes are refused. */
    put(file: LogFile, bytes: Uint8Array): Promise<void>
  }

  /** Recommendations as sealed bytes: every run permanently, and the current one. */
  recommendations: {
    /** The bytes of the current recommendation, valid or not; null only when it is certainly missing. */
    current(): Promise<Uint8Array | null>
    /** The bytes of one run; null only when they are certainly missing. */
    run(rankingVersion: string): Promise<Uint8Array | null>
    /** Ranking versions of every kept run, in no order. */
    versions(): Promise<string[]>
    /**
     * Stores a run and makes it the current recommendation in one atomic step, durable and verified on return. The same
     * run again is a no-op; other bytes for the same version are refused and change nothing.
     */
    put(rankingVersion: string, bytes: Uint8Array): Promise<void>
  }
}

/**
 * A tree of static files that any web server can serve: a folder or a bucket. Paths are relative to its root and
 * separated by `/`.
 */
export interface StaticTree {
  /** The stored bytes; null only when the file is certainly missing. */
  get(path: string): Promise<Uint8Array | null>
  /** Stores a file, durable and verified on return. The same bytes again are a no-op; other bytes are refused. */
  put(path: string, bytes: Uint8Array): Promise<void>
  /**
   * Replaces a file in one atomic step, durable on return, if it still has the bytes that were read before.
   *
   * @param before null if the file was missing
   * @returns false if another process changed the file since
   */
  replace(path: string, before: Uint8Array | null, bytes: Uint8Array): Promise<boolean>
}

/** The log that a publisher signs. Only the publisher's machine has its private key and the record of it. */
export interface SignedLog {
  signer: {
    /** Verifier key; its name is the origin of the log. */
    key: VerifierKey
    /** Verifier keys of every signature on a new checkpoint: the key, then older keys that it replaces. */
    keys: readonly VerifierKey[]
    /**
     * Returns the newest checkpoint that the key signed; its size is 0 before the first.
     *
     * @throws Refusal `storage_unavailable` if the record cannot be read, `storage_damaged` if it is invalid
     */
    lastSigned(): Promise<Checkpoint>
    /**
     * Writes a file beside the record, as signing does, and removes it.
     *
     * @throws Refusal `storage_unavailable` if that fails
     */
    tryWriting(): Promise<void>
    /**
     * Signs a checkpoint and returns the note. The record is durable before this function returns. The same checkpoint
     * always results in the same note.
     *
     * @throws Refusal `storage_damaged` if the tree is smaller than the last signed one, or a different one of the same
     *   size
     */
    sign(checkpoint: Checkpoint): Promise<string>
  }
  /** Text of the policy that readers should verify with. */
  policy: string
}

/** Reads both ledgers and the newest head together and proves them. */
export interface YearReader {
  /** @throws Refusal `storage_damaged` naming the first thing that cannot be right */
  read(): Promise<{ proved: ProvedLedger; contents: LedgerContents; head: Head | null }>
}

/** The ledger as an auditor reads it: strictly read-only. */
export interface LedgerAuditor {
  /** Both ledgers as stored, unreadable rows listed separately; null without a ledger. */
  read(): Promise<AuditedContents | null>
}

/** The object store as an auditor reads it: strictly read-only. Read errors are told from damage. */
export interface ObjectsAuditor {
  /** As of the store, and folders in place of heads. */
  keys: Objects['keys']
  logFiles: Pick<Objects['logFiles'], 'list' | 'get'>
  headFile(key: string): Promise<ReadFile>
  summarize(key: string): Promise<ReadObject>
  /** Reads an object and examines everything that a server proves before it serves. */
  prove(manifest: Manifest): Promise<ObjectOutcome>
}

export interface TitleSource {
  /**
   * The title of an item from its owning source. A title that is too long is cut to one character more than the limit.
   *
   * @throws Refusal `source_unavailable` when the source cannot be reached or responds with an error, and
   *   `title_not_vouched` when its response does not verify the title: deleted, another id, or an empty title
   */
  title(event: ItemRef, signal: AbortSignal): Promise<VerifiedTitle>
}

/** Newest checkpoints of the logs of other hosts, one for each origin (docs/auditing.md). */
export interface SeenLogs {
  /**
   * Returns what was seen of a log; null if nothing was.
   *
   * @throws Refusal `storage_damaged` that names the file and says what to do, `storage_unavailable`
   */
  read(origin: string): Promise<SeenLog | null>
  /** Returns the origin of a log that a host showed in an earlier sound audit; null if there was none. */
  originOf(base: string): Promise<string | null>
  /**
   * Stores what was seen of a log in place of `before`, durable on return.
   *
   * @returns false if another process replaced `before` meanwhile
   */
  replace(before: SeenLog | null, seen: SeenLog): Promise<boolean>
  /** Stores one of two notes that contradict each other, as evidence; returns its path. */
  keepFork(note: string): Promise<string>
}

/**
 * The public history of a host (docs/api.md). Every call refuses with `source_unavailable` without a usable response: not
 * reachable, too slow, too large, or compressed by a proxy.
 */
export interface PublishedHistory {
  /** Base URL of the host, for people. */
  base: string
  /**
   * The publication that was current at an instant.
   *
   * @param held digests of publications that the host need not send again; empty to always receive the text
   */
  at(instant: Instant, held: readonly string[], signal: AbortSignal): Promise<PublishedResponse>
  /** @param path below the base URL, with a leading slash */
  file(path: string, maxBytes: number, signal: AbortSignal): Promise<PublishedResponse>
}

/** The folder of an older archive: its list of publications and their bytes. */
export interface ArchiveFolder {
  /** One manifest a line. */
  manifests: LineSource
  /**
   * The bytes of a file at a relative path from a manifest, which must have `byteSize` bytes.
   *
   * @throws Refusal `input_unreadable` when it is missing, unreadable, outside the folder, not a regular file, or of
   *   another size
   */
  read(file: string, byteSize: number): Promise<Uint8Array>
}
