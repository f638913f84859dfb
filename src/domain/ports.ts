import type { Admission, CachedAnswer, MicroUsd, TurnClaim, TurnExtension } from './agent/bounds.ts'
import type { ModelCall, ModelEvent } from './agent/model-call.ts'
import type { AgentSession, AgentStatus, ServedConfig, ServedEvent } from './agent/schema.ts'
import type { Article, ArticleReading, ArticleWish, FailedTry, WantedItem } from './feed/article.ts'
import type { FeedEvent } from './feed/columns.ts'
import type { ItemDetails, KeptResponse, LiveSourceName, SourceBatch } from './feed/live-source.ts'
import type {
  IndexProgress,
  ItemTrend,
  SearchCaller,
  SearchPage,
  SearchQuery,
  SimilarItem,
  StoredItem,
  TermTrend,
  TermTrendQuery,
} from './feed/search.ts'
import type { ImportCounts, Signal } from './feed/signal.ts'
import type { SealedSnapshot, Snapshot, SnapshotFeed, SnapshotSaving } from './feed/snapshot.ts'
import type { ItemRef } from './feed/source.ts'
import type { Job, JobRun, JobState } from './job-run.ts'
import type { LeaseGrant, LeaseHolder } from './lease.ts'
import type { Catalogue } from './models/catalogue.ts'
import type {
  AttemptEnd,
  AttemptGuard,
  AttemptStart,
  ChatCall,
  ChatOutcome,
  CountedAttempt,
  DayScore,
  EndpointRecord,
  ModelAttempt,
  RouterFacts,
  RunEnd,
} from './models/evaluation.ts'
import type { ShellFiles, ShellLimits, ShellRun } from './models/lite/suite.ts'
import type { KeyRequests } from './models/quota.ts'
import type { StoredRun } from './models/schema.ts'
import type { Day, Instant } from './time.ts'
import type { ProvedLedger } from './year/chain.ts'
import type { AuditedHead } from './year/check.ts'
import type { ObjectOutcome, SeenObject } from './year/examine.ts'
import type { AuditRecord } from './year/finding.ts'
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
  YearWindow,
} from './year/ledger.ts'
import type { Founding } from './year/legacy-import.ts'
import type { LogFile } from './year/log-history.ts'
import type { PublishedResponse } from './year/published-ledger.ts'
import type { SourceObservation, VerifiedTitle, YearEvent } from './year/rank.ts'
import type { Checkpoint, VerifierKey } from './year/signed-note.ts'

/**
 * Everything the product asks of the outside, on one page. A port states its promise; every adapter and every in-memory
 * twin is held to it by one contract suite. A reader that needs less takes `Pick<Port, …>`.
 *
 * All of them refuse with `storage_unavailable` when the store is not there or cannot be opened or reached, and with
 * `storage_damaged` when what it holds cannot be what was written. Anything else they throw is a fault.
 */

/** Epoch milliseconds now. */
export type Clock = () => Instant

/**
 * A token that differs whenever what it stands for may have changed, or null while the store cannot tell (the change
 * would be too recent for its timestamps, or the engine has none). Equal tokens prove equal content.
 */
export type ChangeToken = string | null

/** A lease kept in a store: one holder at a time. */
export interface LeaseKeeper {
  /** Takes the lease for `forMs`, if it is free, run out, or held by a process `isDead` knows to be dead. */
  takeLease(
    holder: LeaseHolder,
    now: Instant,
    forMs: number,
    isDead: (process: string) => boolean,
  ): Promise<LeaseGrant>
  /** False when the lease is no longer this token's. */
  renewLease(token: string, now: Instant, forMs: number): Promise<boolean>
  releaseLease(token: string): Promise<void>
}

/** Publications, gaps, attempts and the publisher's lease. Append-only, and the database says so. */
export interface Ledger extends LeaseKeeper {
  /** Both ledgers in one consistent reading. Damaged text refuses; it never ends the process. */
  read(): Promise<LedgerContents>
  /** Change token of `read()`. */
  changeToken(): Promise<ChangeToken>
  /** The counted attempts of a day, ascending. */
  attempts(asOfDay: Day): Promise<Attempt[]>
  /** Every counted attempt, ascending by day and number. */
  everyAttempt(): Promise<Attempt[]>
  /** The earliest day an attempt was ever counted for. */
  firstAttemptDay(): Promise<Day | null>
  /** Counts one attempt, durable on return; false when the lease is lost or that attempt is counted already. */
  countAttempt(asOfDay: Day, attempt: number, startedAt: Instant, token: string): Promise<boolean>
  failAttempt(asOfDay: Day, attempt: number, failedAt: Instant, reason: string): Promise<void>
  /**
   * Appends one sealed row in one transaction, durable on return. Inside it the lease must still be held, the row must
   * follow the last one, its `publishedAt` must exceed every other, and `clock()` must be at most `withinMs` past its
   * `recordedAt`.
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
  /**
   * Takes over the rows and attempts of another ledger that begins with what this one has, in one transaction, durable on
   * return. Inside it the lease must still be held and the ledger must be as long as `before`, which it was compared with.
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
  /** Change token of one object's bytes. */
  objectChangeToken(sha256: string): Promise<ChangeToken>
  /** Change token of `newestHead()`, given the head it returned last. */
  headChangeToken(newest: Head | null): Promise<ChangeToken>
  /**
   * Every key below `sha256` or `heads` as the store names it, with `/` and from the store's root on, in no order; what
   * was not put there by this port too. Files a killed writer left unfinished are not among them.
   */
  keys(area: 'sha256' | 'heads'): Promise<string[]>
  /** Resolves when the store can be trusted with writes. A command that writes asks first; a write asks anyway. */
  prepare(): Promise<void>
  /** Resolves when the store can be reached. */
  ping(): Promise<void>

  /** Signed checkpoints of the log, cosignatures and policies, each written once. */
  logFiles: {
    /** Every file of the log, in no order. */
    list(): Promise<LogFile[]>
    /** The stored bytes, whatever they are; null only when proved absent. */
    get(file: LogFile): Promise<Uint8Array | null>
    /** Durable and read back on return. The same bytes again are a no-op; others are refused. */
    put(file: LogFile, bytes: Uint8Array): Promise<void>
  }

  /** Recommendations, as sealed bytes: every run for good, and the one that is current. */
  recommendations: {
    /** The bytes of the current recommendation, whatever they are; null only when proved absent. */
    current(): Promise<Uint8Array | null>
    /** The bytes kept of one run; null only when proved absent. */
    run(rankingVersion: string): Promise<Uint8Array | null>
    /** Ranking versions of every kept run, in no order. */
    versions(): Promise<string[]>
    /**
     * Keeps a run and makes it the current recommendation in one atomic step, durable and read back on return. The same
     * run again is a no-op; other bytes under the same version are refused, and the current recommendation stays.
     */
    put(rankingVersion: string, bytes: Uint8Array): Promise<void>
    ping(): Promise<void>
  }
}

/** The private key of the log, and the record of what it signed last: files of the publisher's machine alone. */
export interface LogSigner {
  /** Its name is the origin of the log. */
  key: VerifierKey
  /**
   * The newest checkpoint the key ever signed; its size is 0 before the first.
   *
   * @throws Refusal `storage_unavailable` when the record is not there, for then nothing tells what was signed
   */
  lastSigned(): Promise<Checkpoint>
  /**
   * Signs a checkpoint. The record is durable before the note leaves this function; signing the same again gives the
   * same note.
   *
   * @throws Refusal `storage_damaged` for a smaller tree than the last, or another one of the same size
   */
  sign(checkpoint: Checkpoint): Promise<string>
}

/** Both ledgers and the newest head, read and proved together: of what {@link Ledger} and {@link Objects} hold. */
export interface YearReader {
  /** @throws Refusal `storage_damaged` naming the first thing that cannot be right */
  read(): Promise<{ proved: ProvedLedger; contents: LedgerContents; head: Head | null }>
}

/** The ledger and the object store as an auditor reads them: strictly read-only. */
export interface Auditors {
  ledger: {
    /** Both ledgers as stored, rows that cannot be read apart; null when there is no ledger. */
    read(): Promise<AuditedContents | null>
  }
  /** Read errors are told apart from damage. */
  objects: {
    /** Every head, ascending. */
    heads(): Promise<AuditedHead[]>
    /** Files of the signed log. */
    logFiles: Pick<Objects['logFiles'], 'list' | 'get'>
    /** Key of every object below `sha256/`, whatever its name. */
    objectKeys(): Promise<string[]>
    /**
     * Reads the object of every manifest and examines it, `jobs` at a time.
     *
     * @param examination `identity`: size, digest and identity; `whole`: what a server proves before it serves
     * @returns batches in no particular order; `index` is the manifest's
     */
    examine(
      manifests: readonly Manifest[],
      examination: 'identity' | 'whole',
      jobs: number,
      signal: AbortSignal,
    ): AsyncIterable<{ index: number; outcome: ObjectOutcome }[]>
    /**
     * Begins to read whatever stands where objects belong, `jobs` at a time, before it is known what it should be. What it
     * does not come to see is to be examined as any object is. Null where nothing is gained by it.
     */
    readAhead(jobs: number): ReadAhead | null
  }
}

/** Objects that are being read; whoever has them read closes it. */
export interface ReadAhead {
  /** What was seen of them by their keys, in batches, in no particular order. To be asked for once. */
  seen(signal: AbortSignal): AsyncIterable<{ key: string; seen: SeenObject }[]>
  /** Ends the reading, done or not. */
  close(): Promise<void>
}

/** The feed database: signals, what sources say of items, snapshots, texts, and what is remembered of sources. */
export interface FeedStore {
  /** Stores a batch in one transaction, later rows of the same triple winning. */
  importSignals(signals: readonly Signal[]): Promise<ImportCounts>
  /**
   * One consistent reading of a window: every event published in it with known points, at the values of its latest
   * signal up to the as-of day, and what each source left. Cost grows with the window's events.
   */
  readWindow(window: YearWindow): Promise<{ events: YearEvent[]; observed: SourceObservation[] }>
  /** Day of the signal whose values an event has on an as-of day; null when there is none. */
  latestDay(event: ItemRef, asOfDay: Day): Promise<Day | null>
  /** Verified titles among the given events, by save key. */
  verifiedTitles(events: readonly YearEvent[]): Promise<Map<string, VerifiedTitle>>
  saveVerifiedTitle(source: string, sourceId: string, title: VerifiedTitle, at: Instant): Promise<void>
  /** What sources say of the given events, by save key; nothing for an event no source told of. */
  details(events: readonly ItemRef[]): Promise<Map<string, ItemDetails>>
  /** Stores what sources say of items, in one transaction; an item's newest `collectedAt` wins. */
  saveDetails(details: readonly ItemDetails[]): Promise<void>

  /**
   * One consistent reading of the longest live period: every event published in the 30 days up to `now`, inclusive, with
   * known points, at the values of its latest signal of today or earlier, under its verified title where there is one.
   * Cost grows with the events of those days.
   */
  liveEvents(now: Instant): Promise<FeedEvent[]>
  /**
   * Stores a snapshot that is later than every other, and removes all but the newest ten, in one transaction
   * (docs/operations.md); with `discardLater`, later ones are removed first. The newest again counts as stored.
   */
  saveSnapshot(sealed: SealedSnapshot, options: { discardLater: boolean }): Promise<SnapshotSaving>
  /** The snapshot with the latest instant; null when there is none. */
  newestSnapshot(): Promise<Snapshot | null>
  /** The stored bytes of one of its feeds, undecoded; null when they are absent. */
  snapshotFeed(id: string, feed: SnapshotFeed): Promise<Uint8Array | null>

  /** Stores a batch in one transaction, later rows of the same item winning, and forgets the items' failed tries. */
  saveArticles(articles: readonly Article[]): Promise<ImportCounts>
  /** The text of an item; null when there is none. */
  article(source: string, sourceId: string): Promise<Article | null>
  /**
   * Items a wish holds for: the latest signal is of its first day or later and has its source's points, there is no
   * text, and no failed try that forbids another now. The best of each source first, the sources taking turns.
   */
  itemsWantingText(wish: ArticleWish): Promise<WantedItem[]>
  /** Replaces what is known of the item's failed tries. */
  recordFailedTry(failed: FailedTry): Promise<void>

  /** Those of some items that the feed has signals of, in no order. */
  storedItems(items: readonly ItemRef[]): Promise<ItemRef[]>
  /** The item of a save key; null when none is stored. */
  item(key: string): Promise<StoredItem | null>
  /**
   * Differs whenever signals, article texts or the search index may have changed; null while the index has yet to take
   * something in, so that nothing may be concluded.
   */
  revision(): Promise<string | null>

  /**
   * The response kept for a URL, or null when there is none that was kept after `since` and not later than `now`. This,
   * as everything remembered of sources from one run to the next, costs only requests when it is lost.
   */
  keptResponse(url: string, since: Instant, now: Instant): Promise<KeptResponse | null>
  /** Keeps a response instead of the one before, and drops every one kept at or before `since`. */
  keepResponse(url: string, answer: KeptResponse, since: Instant): Promise<void>
  /** Until when a host asked not to be asked, over or not; null when it never did. */
  pausedUntil(host: string): Promise<Instant | null>
  /** Remembers what a host asked for; the later of two times stays. */
  pauseUntil(host: string, until: Instant): Promise<void>
  ping(): Promise<void>
}

/** Searches of stored items (docs/api.md), and the index that answers them, which is written in transactions. */
export interface FeedSearch {
  /** The search as one caller has it: each asks under its own name, and they are served in turn. */
  by(caller: SearchCaller): CallerSearch
  /** False when another release's rules cut the words of the index: it must be rebuilt. */
  isCurrent(): Promise<boolean>
  /** Takes in some of the events that changed since, in one transaction. Several processes may do so at once. */
  refresh(): Promise<IndexProgress>
  /** Begins a rebuild beside the index that answers, and ends any other; returns its number. */
  beginRebuild(): Promise<number>
  /**
   * Takes some events into a rebuild, in one transaction; the step that is done puts it in the place of the index that
   * answered. A process may end between any two steps.
   *
   * @throws Refusal `rebuild_superseded` when another rebuild has begun
   */
  rebuild(build: number): Promise<IndexProgress>
}

/**
 * A query is answered from one state of the index; trends of items by the signals. Beside the refusals of stores they
 * refuse with `search_limit` and `search_busy`, and with `item_not_found` for a key of no item.
 */
export interface CallerSearch {
  /**
   * Items that hold the words of a text, best first. No text is an error.
   *
   * @throws Refusal `invalid_cursor` for a cursor that belongs to no earlier answer to the same question
   */
  search(question: SearchQuery): Promise<SearchPage>
  /** Items like the one of a save key, most alike first, itself left out; `limit` is 1 to {@link LIMIT_MAX}. */
  similar(key: string, limit: number): Promise<SimilarItem[]>
  /** Points and rank of an item on every day it was observed. */
  itemTrend(key: string): Promise<ItemTrend>
  /** How many items of each day mention a term; every text is a term. */
  termTrend(question: TermTrendQuery): Promise<TermTrend>
}

/** The state database: what servers and runs remember apart from the archive and the feed, a section for each topic. */
export interface State {
  /** Quotas, budget and salts of the chat, shared by all servers on one database. */
  chat: {
    /** The random salt of a UTC day, made by whoever asks first; salts of days before `keepFrom` are deleted. */
    makeSalt(day: Day, keepFrom: Day): Promise<Uint8Array>
    /** The salt of a day; null when it was never made or is deleted. */
    salt(day: Day): Promise<Uint8Array | null>
    /** One transaction: everything is counted and reserved, or nothing is. */
    admit(claim: TurnClaim): Promise<Admission>
    /**
     * Reserves the next model call of a turn, in one transaction; a refused turn keeps what it has reserved. False when
     * budget or share have no room, or when the turn is settled.
     */
    extend(extension: TurnExtension): Promise<boolean>
    /** Charges a turn what it cost, once, to the day it was admitted on; false when it was settled before. */
    settle(turn: string, cost: MicroUsd, at: Instant): Promise<boolean>
    /**
     * Settles turns whose lease has ended at what they reserved, and returns how many; forgets turns, salts and tries of
     * callers of the days before `keepFrom`; and makes everything written before durable. A server does so at its start
     * and every few seconds.
     */
    sweep(now: Instant, keepFrom: Day): Promise<number>
    /** What a day's budget has spent and holds reserved. */
    spending(day: Day): Promise<{ settled: MicroUsd; reserved: MicroUsd }>
    /** Counts a try of an address to prove that it is human; false when it had `limit` within the last minute. */
    countVerification(address: string, now: Instant, limit: number): Promise<boolean>
    /** Resolves when a turn could be written now. */
    ping(): Promise<void>
  }
  /** Answers for 24 hours, bounded in bytes. A cache that fails is a fault of the turn's, never a wrong answer. */
  answers: {
    /** @param key digest of everything that shaped the answer */
    get(key: string, now: Instant): Promise<CachedAnswer | null>
    put(key: string, answer: CachedAnswer): Promise<void>
  }
  /** The account's requests of a UTC day, which the chat and the evaluation share: each is counted before it is sent. */
  allowance: {
    /**
     * Counts a request of the chat, durably, to the day of `sentAt`, whatever comes of it.
     *
     * @param limit requests the account has a day
     * @param turn the turn that sends it, and the requests a day of one address, of which a /48 has twice as many; absent:
     *   a request without a share
     * @returns false, with nothing written, when the day's requests of both have reached the limit less
     *   {@link RESERVED_REQUESTS}, or the turn's address or /48 has sent its share
     */
    countChatRequest(
      model: string,
      sentAt: Instant,
      limit: number,
      turn?: { turn: string; perAddress: number },
    ): Promise<boolean>
  }
  /**
   * Runs, attempts and scores of `evaluate-models`, and the lease that lets one run at a time. Everything is durable on
   * return, and kept for {@link EVALUATIONS_KEPT_DAYS} days.
   */
  evaluations: LeaseKeeper & {
    /** Ends every run that has no end as killed, and its open attempts as abandoned; returns how many runs. */
    sweep(now: Instant): Promise<number>
    /** Begins a run, and forgets what is older than is kept; returns the run's number. */
    beginRun(run: { day: Day; refreshMode: StoredRun['refreshMode']; startedAt: Instant }): Promise<number>
    endRun(run: number, end: RunEnd, rejections: readonly { id: string; reason: string }[]): Promise<void>
    /** Ends a run that cannot go on as failed, and its open attempts as abandoned; one that has ended stays as it is. */
    abandonRun(run: number, endedAt: Instant, reason: string): Promise<void>
    /** Writes a request down before it is sent. */
    countAttempt(attempt: AttemptStart, guard: AttemptGuard): Promise<CountedAttempt>
    /** Tells how an attempt ended; told again, the later counts. */
    settleAttempt(attempt: number, end: AttemptEnd): Promise<void>
    /** Every attempt sent at or after an instant, ascending. */
    attemptsSince(since: Instant): Promise<ModelAttempt[]>
    /** Keeps the evaluation of a day. A complete one stays when one comes that is not. */
    saveScore(score: DayScore): Promise<void>
    /** Every evaluation of a day or a later one, ascending by day, then model. */
    scoresSince(day: Day): Promise<DayScore[]>
    /** Keeps what was said of endpoints; what was said of the same model before is replaced. */
    saveEndpoints(records: readonly EndpointRecord[]): Promise<void>
    /** What was said at or after an instant, one record a model, in no order. */
    endpointsSince(since: Instant): Promise<EndpointRecord[]>
    /** When the chat sent requests to the same service at or after an instant, ascending. */
    chatRequestsSince(since: Instant): Promise<Instant[]>
    /** The lowest rate a run since an instant learned; null when there is none. */
    learnedSince(since: Instant): Promise<number | null>
    /** Ranking versions given on a day. */
    versionsOf(day: Day): Promise<string[]>
    ping(): Promise<void>
  }
  /** What audits left for whoever asks how the archive was found last. */
  audits: {
    /** Durable on return. Only the newest hundred are kept. */
    record(audit: AuditRecord): Promise<void>
    /** The audit recorded last; null when there is none. */
    newest(): Promise<AuditRecord | null>
  }
  /** How jobs went, for whoever asks when one last succeeded. */
  jobs: {
    /** Durable on return. A run that ended before the one recorded last changes nothing. */
    record(run: JobRun): Promise<void>
    /** The last run of each job that ever ran, by the job's name. */
    states(): Promise<JobState[]>
  }
}

/** One source as a collection reads it. */
export interface LiveSource {
  source: LiveSourceName
  /** Names of the settings it cannot be read without and that are not set; nobody may ask it then. */
  missingSettings: readonly string[]
  /**
   * What the source shows today, in batches as they are read; every signal is of `day`, whatever the clock says by then.
   * What cannot be had is told in the batches; it throws for the signal and for stores that fail, and for nothing a source
   * does.
   */
  read(day: Day, signal: AbortSignal): AsyncIterable<SourceBatch>
}

/** The owning sources, asked for one item's own title. */
export interface TitleSource {
  /**
   * The title as the owning source gives it for this very id; one that is longer than an event may have is cut to one
   * character more than that.
   *
   * @throws Refusal `source_unavailable` when the source cannot be reached or does not answer as it should, and
   *   `title_not_vouched` when it answers but cannot vouch: deleted, another id, or an empty title
   */
  title(event: ItemRef, signal: AbortSignal): Promise<VerifiedTitle>
}

/** Where texts are read: the source of an item, or the page it links to. */
export interface ArticleTexts {
  /** Never throws for what a stranger's server does; rejects with the signal's reason. */
  read(item: Pick<WantedItem, 'source' | 'sourceId' | 'url'>, signal: AbortSignal): Promise<ArticleReading>
}

/**
 * The model-routing service; docs/model-errors.md tells what it is asked, and when. A chat call that fails on its
 * way has an outcome too; an abort throws the signal's reason. The key goes to the configured base alone, and no redirect
 * is followed.
 */
export interface ModelRouter {
  /** False when no key is configured: nothing but the catalogue can be asked then. */
  hasKey: boolean
  /**
   * Every model the service lists. Costs no quota.
   *
   * @throws Refusal `source_unavailable` when it gives no catalogue
   */
  catalogue(signal: AbortSignal): Promise<Catalogue>
  /** What the key has left. Costs no quota; the service may keep a response for about a minute. */
  key(signal: AbortSignal): Promise<RouterFacts<KeyRequests>>
  /** Who serves a model, and how well. Costs no quota. Fails only when the service does not take the key. */
  endpoints(model: string, signal: AbortSignal): Promise<RouterFacts<EndpointRecord>>
  /** Asks a model, at a price of zero, without a fallback to any other. Costs one request of the day. */
  chat(call: ChatCall, signal: AbortSignal): Promise<ChatOutcome>
}

/** A model behind a provider. */
export interface ChatModel {
  /** Identifier of the model in use now; empty when there is none. */
  name(): Promise<string>
  /** Requests a day of the account behind the model; absent where they are not counted. */
  requestsPerDay?(): Promise<number>
  /** @param turn id of the turn that asks, whose address has a share of the requests of the day */
  ask(call: ModelCall, signal: AbortSignal, turn?: string): AsyncIterable<ModelEvent>
  close(): Promise<void>
}

/** A shell in memory that judges a model's commands: no process, no file of the host, no network, no environment. */
export interface Shell {
  /**
   * Runs one command line in a folder that holds `files` and nothing else. Every call begins anew. Whatever the command
   * does it ends, within the limits, with an outcome: a rejection is a fault of the sandbox itself.
   */
  run(command: string, files: ShellFiles, limits: ShellLimits): Promise<ShellRun>
  /** Gives back what the sandbox holds. */
  close(): Promise<void>
}

/** The human challenge. */
export interface HumanVerifier {
  /**
   * True only when the service itself says so of a token solved on a page of `hostname`: a timeout, an error, another host
   * or anything unreadable is false.
   */
  isHuman(token: string, hostname: string, signal: AbortSignal): Promise<boolean>
}

/** The public API of a host, a section for each of its interfaces. */
export interface PublicHost {
  /**
   * Its history (docs/api.md), whatever the status of a response. All of them refuse with `source_unavailable` when
   * there is none: not reachable, too slow, too large, or changed on the way by a proxy that compresses.
   */
  history: {
    /** Base URL of the host, as a person would name it. */
    base: string
    ledger(signal: AbortSignal): Promise<PublishedResponse>
    legacyLedger(signal: AbortSignal): Promise<PublishedResponse>
    head(signal: AbortSignal): Promise<PublishedResponse>
    /**
     * The publication that was current at an instant.
     *
     * @param held digests of publications the asker holds, for `If-None-Match`; none: the body is wanted in any case
     */
    at(instant: Instant, held: readonly string[], signal: AbortSignal): Promise<PublishedResponse>
  }
  shortlist: {
    /**
     * The body of its top-models, unparsed but for JSON; null when the host knows no such path.
     *
     * @throws Refusal `source_unavailable` when there is no answer: not reachable, too slow, too large, no JSON
     */
    topModels(signal: AbortSignal): Promise<unknown>
  }
  /** Every call throws a Refusal with a public code or a {@link ChatApiRefusal}, and the reason of a signal that aborts. */
  chat: {
    /** Base address, without a slash at its end. */
    readonly base: string
    config(signal: AbortSignal): Promise<ServedConfig>
    status(signal: AbortSignal): Promise<Pick<AgentStatus, 'ok' | 'budget'>>
    session(signal: AbortSignal): Promise<Pick<AgentSession, 'sessionToken' | 'quotas'>>
    /**
     * One turn, of a request as JSON text. The last event is the terminal one; leaving the loop or aborting closes the
     * connection.
     */
    ask(token: string, body: string, signal: AbortSignal): AsyncGenerator<ServedEvent, void>
  }
}

/** Asks addresses whether they answer. */
export interface HttpProbe {
  /**
   * Sends one request, without a body, and follows no redirect. An address that does not answer is no error: why is told.
   *
   * @param asked `timeoutMs`: for the whole response
   * @throws only the signal's own reason
   */
  send(
    asked: {
      url: string
      method: 'GET' | 'HEAD'
      headers?: Readonly<Record<string, string>>
      timeoutMs: number
    },
    signal: AbortSignal,
  ): Promise<ProbeResult | { unreachable: string }>
}

/** That an address answered. */
export interface ProbeResult {
  status: number
  /** The time of its `Date` header; null without a readable one. */
  date: Instant | null
  /** Empty when it is longer than anything that is asked for. */
  body: string
}

/**
 * A service that watches jobs, and tells somebody when one fails or does not come. All of it throws when the service has
 * not taken what it was told in the time there is.
 */
export interface JobMonitor {
  started(job: Job): Promise<void>
  /** @param message what the run said, for a person */
  ended(job: Job, exitCode: number, message: string): Promise<void>
  /** Says something of a job that is neither an end nor a success. */
  notify(job: Job, message: string): Promise<void>
  close(): Promise<void>
}

/** A file of lines that can be read more than once from its beginning. */
export interface LineSource {
  /** As the user named it. */
  name: string
  /**
   * All lines in order, in batches; blank lines are left out but counted in the numbers.
   *
   * @throws Refusal `input_unreadable` when the file is missing, unreadable, or a broken or truncated gzip
   */
  lines(): AsyncIterable<InputLine[]>
}

/** One line of an input file; `problem` stands in for a line that cannot be text. */
export type InputLine = { number: number; text: string } | { number: number; problem: string }

/** The folder of an older archive: the list of its publications, and their bytes. */
export interface ArchiveFolder {
  /** One manifest a line. */
  manifests: LineSource
  /**
   * The bytes of one file, at a relative path as a manifest gives it, read only when it has `byteSize` of them.
   *
   * @throws Refusal `input_unreadable` when it is missing, unreadable, outside the folder, no regular file, or of another
   *   size
   */
  read(file: string, byteSize: number): Promise<Uint8Array>
}
