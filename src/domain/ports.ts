import type { MicroUsd } from './agent/bounds.ts'
import type { ModelCall, ModelEvent } from './agent/model-call.ts'
import type { Article, ArticleReading, ArticleWish, FailedTry, WantedItem } from './feed/article.ts'
import type { FeedEvent } from './feed/columns.ts'
import type { ItemDetails, KeptAnswer } from './feed/live-source.ts'
import type {
  ItemTrend,
  SearchCaller,
  SearchPage,
  SearchQuestion,
  SimilarItem,
  StoredItem,
  TermTrend,
  TermTrendQuestion,
} from './feed/search.ts'
import type { Signal } from './feed/signal.ts'
import type { SealedSnapshot, Snapshot, SnapshotFeed } from './feed/snapshot.ts'
import type { ItemRef } from './feed/source.ts'
import type { LeaseKeeper } from './job-run.ts'
import type { Catalogue } from './models/catalogue.ts'
import type { EndpointRecord, Verdict } from './models/evaluation.ts'
import type { LiteQuestion } from './models/lite/suite.ts'
import type { KeyRequests } from './models/quota.ts'
import type { Clock, Day, Instant } from './time.ts'
import type { AuditedContents, AuditedHead } from './year/audit.ts'
import type { ProvedLedger } from './year/chain.ts'
import type { SeenBytes } from './year/envelope.ts'
import type { AuditRecord, FindingCode, ObjectOutcome, SeenObject } from './year/finding.ts'
import type {
  Attempt,
  FoundingMark,
  Head,
  LedgerContents,
  LedgerRow,
  Manifest,
  YearWindow,
} from './year/ledger.ts'
import type { Founding } from './year/legacy-import.ts'
import type { SourceObservation, VerifiedTitle, YearEvent } from './year/rank.ts'

export type { ChatApi, ServedConfig, ServedEvent } from './agent/schema.ts'

export type * from './feed/live-source.ts'

export type { JobLog, JobWatch } from './job-run.ts'

export type * from './job-run.ts'

export type { Clock } from './time.ts'

/**
 * Everything the product asks of the outside. A port states its promise; every adapter and every in-memory twin is
 * held to it by one contract suite.
 *
 * All of them refuse with `storage_unavailable` when the store is not there or cannot be opened or reached, and
 * with `storage_damaged` when what it holds cannot be what was written. Anything else they throw is a fault.
 */

/** One line of an input file; `problem` stands in for a line that cannot be text. */
export type InputLine = { number: number; text: string } | { number: number; problem: string }

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

/** The folder of an older archive: the list of its publications, and their bytes. */
export interface ArchiveFolder {
  /** One manifest a line. */
  manifests: LineSource
  /**
   * The bytes of one file, read only when it has `byteSize` of them.
   *
   * @param file relative path, as a manifest gives it
   * @throws Refusal `input_unreadable` when it is missing, unreadable, outside the folder, no regular file, or of
   *   another size
   */
  read(file: string, byteSize: number): Promise<Uint8Array>
}

/** That an address answered. */
export interface Reached {
  status: number
  /** The time of its `Date` header; null without a readable one. */
  date: Instant | null
  /** Empty when it is longer than anything that is asked for. */
  body: string
}

/** Asks addresses whether they answer. */
export interface Reach {
  /**
   * Sends one request, without a body, and follows no redirect. An address that does not answer is no error: why is told.
   *
   * @throws only the signal's own reason
   */
  ask(
    asked: {
      url: string
      method: 'GET' | 'HEAD'
      headers?: Readonly<Record<string, string>>
      /** For the whole answer. */
      timeoutMs: number
    },
    signal: AbortSignal,
  ): Promise<Reached | { unreachable: string }>
}

/** What the feed asks of the outside; `domain/ports.ts` gives it out with the rest, and its promises hold here too. */

/** How many of a batch of signals were new, changed a stored one, or changed nothing. */
export interface ImportCounts {
  inserted: number
  replaced: number
  unchanged: number
}

/** Daily signals and the titles their sources verified. */
export interface FeedStore {
  /** Stores a batch in one transaction, later rows of the same triple winning. */
  importSignals(signals: readonly Signal[]): Promise<ImportCounts>
  /**
   * One consistent reading of a window: every event published in it with known points, at the values of its
   * latest signal up to the as-of day, and what each source left. Cost grows with the window's events.
   */
  readWindow(window: YearWindow): Promise<{ events: YearEvent[]; observed: SourceObservation[] }>
  /** Verified titles among the given events, by save key. */
  verifiedTitles(events: readonly YearEvent[]): Promise<Map<string, VerifiedTitle>>
  /** Day of the signal whose values an event has on an as-of day; null when there is none. */
  latestDay(event: Pick<YearEvent, 'source' | 'sourceId'>, asOfDay: Day): Promise<Day | null>
  /** Stores what sources say of items, in one transaction; an item's newest `collectedAt` wins. */
  saveDetails(details: readonly ItemDetails[]): Promise<void>
  saveVerifiedTitle(source: string, sourceId: string, title: VerifiedTitle, at: Instant): Promise<void>
  ping(): Promise<void>
}

/** What is remembered of sources from one run to the next; whatever is lost of it costs only requests. */
export interface SourceMemory {
  /** The answer kept for a URL, or null when there is none that was kept after `since` and not later than `now`. */
  keptAnswer(url: string, since: Instant, now: Instant): Promise<KeptAnswer | null>
  /** Keeps an answer instead of the one before, and drops every answer kept at or before `since`. */
  keepAnswer(url: string, answer: KeptAnswer, since: Instant): Promise<void>
  /** Until when a host asked not to be asked, over or not; null when it never did. */
  pausedUntil(host: string): Promise<Instant | null>
  /** Remembers what a host asked for; the later of two times stays. */
  pauseUntil(host: string, until: Instant): Promise<void>
}

/**
 * Whether a snapshot was stored and how many others were removed, or which one is not earlier; `generatedAt` is null when
 * its stored time is damaged.
 */
export type SnapshotSaving =
  { saved: true; removed: number } | { saved: false; newest: { id: string; generatedAt: Instant | null } }

/** The live feed: what it is ranked from, and the snapshots of its runs. */
export interface LiveFeedStore {
  /**
   * One consistent reading of the longest live period: every event published in the 30 days up to `now`, inclusive, with
   * known points, at the values of its latest signal of today or earlier, under its verified title where there is one.
   * Cost grows with the events of those days.
   */
  liveEvents(now: Instant): Promise<FeedEvent[]>
  /** What sources say of the given events, by save key; nothing for an event no source told of. */
  details(events: readonly Pick<FeedEvent, 'source' | 'sourceId'>[]): Promise<Map<string, ItemDetails>>
  /**
   * Stores a snapshot that is later than every other, and removes all but the newest ten, in one transaction
   * (docs/operations.md). The newest again changes nothing and counts as stored.
   *
   * @param options `discardLater`: later snapshots are removed first
   */
  saveSnapshot(sealed: SealedSnapshot, options: { discardLater: boolean }): Promise<SnapshotSaving>
  /**
   * The snapshot with the latest instant; null when there is none.
   *
   * @throws Refusal `storage_damaged` when its row cannot be what was written
   */
  newestSnapshot(): Promise<Snapshot | null>
  /** The stored bytes of one of its feeds, undecoded; null when they are absent. */
  snapshotFeed(id: string, feed: SnapshotFeed): Promise<Uint8Array | null>
}

/** The texts of items, and the tries to read one that failed. */
export interface ArticleStore {
  /** Stores a batch in one transaction, later rows of the same item winning, and forgets the items' failed tries. */
  saveArticles(articles: readonly Article[]): Promise<ImportCounts>
  /** Those of some items that the feed has signals of, in no order. */
  storedItems(items: readonly ItemRef[]): Promise<ItemRef[]>
  /** The text of an item; null when there is none. */
  article(source: string, sourceId: string): Promise<Article | null>
  /**
   * Items a wish holds for: the latest signal is of its first day or later and has its source's points, there is no
   * text, and no failed try that forbids another now. The best of each source first, the sources taking turns.
   */
  itemsWantingText(wish: ArticleWish): Promise<WantedItem[]>
  /** Replaces what is known of the item's failed tries. */
  recordFailedTry(failed: FailedTry): Promise<void>
}

/** Where texts are read: the source of an item, or the page it links to. */
export interface ArticleTexts {
  /** Never throws for what a stranger's server does; rejects with the signal's reason. */
  read(item: Pick<WantedItem, 'source' | 'sourceId' | 'url'>, signal: AbortSignal): Promise<ArticleReading>
}

/**
 * Questions about stored items (docs/search.md), answered by the search index; trends of items by the signals.
 *
 * Beside the refusals of stores they refuse with `search_limit` and `search_busy` ({@link FeedSearchRefusal}). A query is
 * answered from one state of the index.
 */
export interface FeedSearch {
  /**
   * Items that hold the words of a text, best first. No text is an error.
   *
   * @throws Refusal `invalid_cursor` for a cursor that belongs to no earlier answer to the same question
   */
  search(question: SearchQuestion): Promise<SearchPage>
  /**
   * Items like another, most alike first, the item itself left out.
   *
   * @param key save key
   * @param limit 1 to {@link LIMIT_MAX}
   * @throws Refusal `item_not_found`
   */
  similar(key: string, limit: number): Promise<SimilarItem[]>
  /**
   * Points and rank of an item on every day it was observed.
   *
   * @throws Refusal `item_not_found`
   */
  itemTrend(key: string): Promise<ItemTrend>
  /** How many items of each day mention a term; every text is a term. */
  termTrend(question: TermTrendQuestion): Promise<TermTrend>
}

/** The search as its callers share it: each asks under its own name, and they are served in turn. */
export interface SharedFeedSearch {
  by(caller: SearchCaller): FeedSearch
}

/** Single items as they are stored, and whether anything stored may have changed. */
export interface StoredItems {
  /** The item of a save key; null when none is stored. */
  item(key: string): Promise<StoredItem | null>
  /**
   * Differs whenever signals, article texts or the search index may have changed; null while the index has yet to take
   * something in, so that nothing may be concluded.
   */
  revision(): Promise<string | null>
}

/** How far a step of indexing came. */
export interface IndexProgress {
  /** Events taken in by this step. */
  indexed: number
  /** True when nothing is left to do. */
  done: boolean
}

/** The search index as its writers see it. Every step is one transaction; a process may end between any two. */
export interface SearchIndex {
  /** False when another release's rules cut the words of the index: it must be rebuilt. */
  isCurrent(): Promise<boolean>
  /** Takes in some of the events that changed since. Several processes may do so at once. */
  refresh(): Promise<IndexProgress>
  /** Begins a rebuild beside the index that answers, and ends any other; returns its number. */
  beginRebuild(): Promise<number>
  /**
   * Takes some events into a rebuild; the step that is done puts it in the place of the index that answered.
   *
   * @throws Refusal `rebuild_superseded` when another rebuild has begun
   */
  rebuild(build: number): Promise<IndexProgress>
}

/** Refusals of {@link SearchIndex}. */
export type SearchIndexRefusal = 'rebuild_superseded'

/** What the chat agent asks of the outside; `domain/ports.ts` gives it out, and its promises hold here too. */

/** What one admission counts against (decisions, part 6). */
export interface ChatLimits {
  messagesPerSession: number
  messagesPerDay: number
  burstPerMinute: number
  minGapMs: number
  /** Turns of one server that may be open at once. */
  maxOpenTurns: number
  budgetPerDay: MicroUsd
  /** Share of a day's budget, in millionths, that one address may hold and spend; a /48 twice as much. */
  budgetShare: number
}

/** The most that the first model call of a turn can cost. */
export interface CallCost {
  /** And the last call, without tools and results, where there is no room for more. */
  withTools: MicroUsd
  withoutTools: MicroUsd
}

/** A turn that asks to be admitted. */
export interface TurnClaim {
  /** Session id of the token, not the token. */
  session: string
  /** When the token of that session ends. */
  sessionEndsAt: Instant
  /** Salted hash of the caller's address under the salt of `day`; nothing else of the caller is ever stored. */
  address: string
  /** Salted hash of the /48 of an IPv6 address; null for IPv4. */
  network: string | null
  /**
   * The address under the salt of the day before, needed in the first minute of a day alone, so that a burst counts across
   * midnight; null when that salt is not known.
   */
  formerAddress: string | null
  /** Names the server whose open turns are counted. */
  server: string
  now: Instant
  /** UTC day of `now`: the day charged, whenever the turn ends. */
  day: Day
  /** The turn's first model call. */
  firstCall: CallCost
  /** The first call of the shortest turn there can be: the bands of the day are measured with it. */
  shortestCall: CallCost
  /** What one address may take of the daily requests of a routing service; null where none are counted. */
  requestsPerAddress: number | null
  /** How long the reservation stands without being settled. */
  leaseMs: number
  limits: ChatLimits
}

/** An open turn that needs another model call. */
export interface TurnExtension {
  turn: string
  /** What the turn is to hold in all: the cost of its earlier calls and the most that those it can still need cost. */
  upTo: MicroUsd
  /** As in {@link TurnClaim}. */
  requestsPerAddress: number | null
  limits: Pick<ChatLimits, 'budgetPerDay' | 'budgetShare'>
}

export type Admission =
  | {
      admitted: true
      turn: string
      /** What is left after this turn. */
      remaining: { session: number; day: number }
      /** True when the turn is answered without tools: the day is soft, or a call with tools does not fit. */
      degraded: boolean
      /** For the first model call. */
      reserved: MicroUsd
    }
  | { admitted: false; scope: 'ip' | 'session' | 'global-budget'; retryAfterSeconds: number }

/** Quotas, budget and salts of the chat, shared by all servers on one state database. */
export interface ChatLedger {
  /** The random salt of a UTC day, made by whoever asks first; salts of days before `keepFrom` are deleted. */
  makeSalt(day: Day, keepFrom: Day): Promise<Uint8Array>
  /** The salt of a day; null when it was never made or is deleted. */
  salt(day: Day): Promise<Uint8Array | null>
  /** One transaction: everything is counted and reserved, or nothing is. */
  admit(claim: TurnClaim): Promise<Admission>
  /**
   * Reserves the next model call of a turn, in one transaction; a refused turn keeps what it has reserved.
   *
   * @returns false when budget or share have no room, or when the turn is settled
   */
  extend(extension: TurnExtension): Promise<boolean>
  /** Charges a turn what it cost, once, to the day it was admitted on; false when it was settled before. */
  settle(turn: string, cost: MicroUsd, at: Instant): Promise<boolean>
  /**
   * Settles turns whose lease has ended at what they reserved; forgets turns, salts and tries of callers of the days
   * before `keepFrom`; and makes everything written before durable. A server does so at its start and every few seconds.
   *
   * @returns how many turns were settled
   */
  sweep(now: Instant, keepFrom: Day): Promise<number>
  /** What a day's budget has spent and holds reserved. */
  spending(day: Day): Promise<{ settled: MicroUsd; reserved: MicroUsd }>
  /** Counts a try of an address to prove that it is human; false when it had `limit` within the last minute. */
  countVerification(address: string, now: Instant, limit: number): Promise<boolean>
  /** Resolves when a turn could be written now. */
  ping(): Promise<void>
}

/** A complete answer that may be given again. */
export interface CachedAnswer {
  text: string
  storedAt: Instant
}

/** Answers for 24 hours, bounded in bytes. A cache that fails is a fault of the turn's, never a wrong answer. */
export interface AnswerCache {
  /** @param key digest of everything that shaped the answer */
  get(key: string, now: Instant): Promise<CachedAnswer | null>
  put(key: string, answer: CachedAnswer): Promise<void>
}

/** The human challenge. */
export interface HumanVerifier {
  /**
   * True only when the service itself says so: a timeout, an error, another host or anything unreadable is false.
   *
   * @param hostname host of the page the challenge was solved on
   */
  isHuman(token: string, hostname: string, signal: AbortSignal): Promise<boolean>
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

export type { EvaluationLedger } from './models/evaluation.ts'

/** What the free-model recommendation asks of the outside; `domain/ports.ts` gives it out, and its promises hold here too. */

/** One chat call of an evaluation. */
export interface ChatCall {
  /** `vendor/model:free` */
  model: string
  question: LiteQuestion
  /** Limit of the answer, in tokens, what the model thinks included. */
  maxTokens: number
  /** False for a model that takes no temperature. */
  temperature: boolean
  /** True to ask a model that thinks to do little of it. */
  lowEffort: boolean
}

/** The verdict on a chat call. */
interface ChatOutcome extends Verdict {
  /** When the response was whole, or given up. */
  endedAt: Instant
  /** From the call to the end of its response, in milliseconds. */
  latencyMs: number
}

/** What the service said, null when nothing of it can be read; or the verdict on a call that failed. */
export type RouterFacts<T> = { facts: T | null } | { failed: Verdict }

/**
 * The model-routing service; docs/evaluating-models.md tells what it is asked, and when. A chat call that fails on its
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

/**
 * The account's requests of a UTC day, which the chat and the evaluation of models share. Each is written down before it
 * is sent, and counts whatever comes of it.
 */
export interface RouterAllowance {
  /**
   * Counts a request of the chat, durably, before it is sent.
   *
   * @param model id of the model
   * @param sentAt decides the day
   * @param limit requests the account has a day
   * @param turn the turn that sends it, and the requests a day of one address, of which a /48 has twice as many; absent: a
   *   request without a share
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

/** Recommendations in the object store, as sealed bytes: every run for good, and the one that is current. */
export interface RecommendationStore {
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
  /** Resolves when the store can be reached. */
  ping(): Promise<void>
}

/** The shortlist that a host serves. */
export interface PublishedShortlist {
  /**
   * The body of its top-models, unparsed but for JSON; null when the host knows no such path.
   *
   * @throws Refusal `source_unavailable` when there is no answer: not reachable, too slow, too large, no JSON
   */
  topModels(signal: AbortSignal): Promise<unknown>
}

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
