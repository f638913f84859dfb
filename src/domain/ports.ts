import type { Admission, CachedAnswer, MicroUsd, TurnClaim, TurnExtension } from './agent/bounds.ts'
import type { ChatKey, NewChatKey, StoredChatKey } from './agent/credentials.ts'
import type { ModelCall, ModelEvent } from './agent/model-call.ts'
import type { ClockCheck } from './clock-check.ts'
import type { Article, ArticleReading, ArticleQuery, FailedAttempt, ItemWithoutText } from './feed/article.ts'
import type { FeedEvent } from './feed/columns.ts'
import type { ItemDetails, KeptResponse, LiveSourceName, SourceBatch } from './feed/live-source.ts'
import type {
  ItemTrend,
  SearchCaller,
  SearchPage,
  SearchQuery,
  SimilarItem,
  StoredItem,
  TermTrend,
  TermTrendQuery,
} from './feed/search/search.ts'
import type { ImportCounts, Signal } from './feed/signal.ts'
import type { SealedSnapshot, Snapshot, SnapshotFeed, SnapshotSaving } from './feed/snapshot.ts'
import type { ItemRef } from './feed/source.ts'
import type { JobRun, JobState, LeaseKeeper } from './jobs.ts'
import type { Catalogue } from './models/catalogue.ts'
import type { ChangeDelivery, RunStep } from './models/changes.ts'
import type {
  AttemptEnd,
  AttemptGuard,
  AttemptStart,
  ChatCall,
  ChatOutcome,
  CountedAttempt,
  EndedRun,
  EndpointRecord,
  ModelAttempt,
  RouterFacts,
} from './models/evaluation.ts'
import type { ShellFiles, ShellLimits, ShellRun } from './models/lite/suite.ts'
import type { KeyRequests } from './models/quota.ts'
import type { Day, Instant } from './time.ts'
import type { UpstreamFailure } from './v1/failures.ts'
import type { AuditRecord } from './year/finding.ts'
import type { YearWindow } from './year/ledger.ts'
import type { EventGroup } from './year/left-out.ts'
import type { SourceObservation, VerifiedTitle, YearEvent } from './year/rank.ts'

/**
 * The ports: everything outside that jobs and server need; what commands alone use stands beside its adapter. Every
 * adapter and every in-memory twin passes the same contract suite. A consumer that needs less takes `Pick<Port, …>`.
 *
 * Stores refuse with `storage_unavailable` when they are missing or cannot be opened or reached, and with
 * `storage_damaged` when their content cannot be what was written. Any other error is a fault.
 */

/** Epoch milliseconds now. */
export type Clock = () => Instant

/** Receiver of the changes of the free models (docs/free-models.md#webhook). */
export interface ChangeReceiver {
  /**
   * Sends one message for each change, in order, and ends at the first that is not accepted. It never rejects, and
   * takes a bounded time.
   *
   * @param signal ends the delivery
   */
  send(step: RunStep, signal: AbortSignal): Promise<ChangeDelivery>
}

/** The feed database: signals, item details, snapshots, article texts, and the state of sources. */
export interface FeedStore {
  /** Stores a batch in one transaction; of rows with the same source, id and day the last one wins. */
  importSignals(signals: readonly Signal[]): Promise<ImportCounts>
  /**
   * Reads a window in one consistent snapshot: every event published in it with known points, at the values of its
   * latest signal up to the as-of day, and the observations of each source. Cost grows with the window's events.
   */
  readWindow(window: YearWindow): Promise<{ events: YearEvent[]; observed: SourceObservation[] }>
  /**
   * The events observed in a window, with any values of their latest signals, grouped by source and by what those
   * lack. Cost grows with all events of the window.
   */
  eventGroups(window: YearWindow): Promise<EventGroup[]>
  /** Day of the newest signal of a news source up to a day; null without one. */
  newestNewsDay(upTo: Day): Promise<Day | null>
  /** Day of the signal that gives an event its values on an as-of day; null without one. */
  latestDay(event: ItemRef, asOfDay: Day): Promise<Day | null>
  /** Verified titles among the given events, by save key. */
  verifiedTitles(events: readonly YearEvent[]): Promise<Map<string, VerifiedTitle>>
  saveVerifiedTitle(source: string, sourceId: string, title: VerifiedTitle, at: Instant): Promise<void>
  /** Details of the given events by save key; absent for events without details. */
  details(events: readonly ItemRef[]): Promise<Map<string, ItemDetails>>
  /** Stores item details in one transaction; the newest `collectedAt` of an item wins. */
  saveDetails(details: readonly ItemDetails[]): Promise<void>

  /**
   * Reads the longest live period in one consistent snapshot: every event published in the 30 days up to `now`,
   * inclusive, with known points, at the values of its latest signal of today or earlier, under its verified title when
   * there is one. Cost grows with the events of those days.
   */
  liveEvents(now: Instant): Promise<FeedEvent[]>
  /**
   * Stores a snapshot if it is later than every other, and removes all but the newest ten, in one transaction
   * (docs/operations.md). `discardLater` removes later ones first. The newest snapshot again counts as stored.
   */
  saveSnapshot(sealed: SealedSnapshot, options: { discardLater: boolean }): Promise<SnapshotSaving>
  /** The snapshot with the latest instant; null when there is none. */
  newestSnapshot(): Promise<Snapshot | null>
  /** The stored bytes of one feed; null when they are missing. */
  snapshotFeed(id: string, feed: SnapshotFeed): Promise<Uint8Array | null>

  /**
   * Stores a batch in one transaction, deleting the items' failed attempts; of rows of the same item the last one wins.
   */
  saveArticles(articles: readonly Article[]): Promise<ImportCounts>
  article(source: string, sourceId: string): Promise<Article | null>
  /**
   * Items that need a text: their latest signal is recent enough and has enough points, there is no text, and no failed
   * attempt delays another one. Sources take turns, each with its best items first.
   */
  itemsNeedingText(wish: ArticleQuery): Promise<ItemWithoutText[]>
  /** Replaces the record of the item's failed attempts. */
  recordFailedAttempt(failed: FailedAttempt): Promise<void>

  /** The given items that have signals, in no order. */
  storedItems(items: readonly ItemRef[]): Promise<ItemRef[]>
  item(key: string): Promise<StoredItem | null>
  /** Changes whenever signals, article texts or the search index may have changed. */
  revision(): Promise<string>

  /**
   * The stored response of a URL from after `since` and not later than `now`; null without one. Losing the state of
   * sources costs only requests.
   */
  keptResponse(url: string, since: Instant, now: Instant): Promise<KeptResponse | null>
  /** Replaces the stored response of a URL, and deletes every response stored at or before `since`. */
  keepResponse(url: string, answer: KeptResponse, since: Instant): Promise<void>
  /** The time until which a host requested a pause, possibly past; null without one. */
  pausedUntil(host: string): Promise<Instant | null>
  /** Stores a pause requested by a host; the later of two times stays. */
  pauseUntil(host: string, until: Instant): Promise<void>
  /** The clock as the newest `collect` found it; null if none compared it with its sources. */
  clockCheck(): Promise<ClockCheck | null>
  /** Replaces the clock check, whatever its time was: that time came from a clock that may be wrong. */
  saveClockCheck(check: ClockCheck): Promise<void>
  ping(): Promise<void>
}

/** Search of stored items (docs/api.md) and its index, which every import of signals and texts updates. */
export interface FeedSearch {
  /** The search for one caller. */
  by(caller: SearchCaller): CallerSearch
  /**
   * Rebuilds the index from signals and texts, and returns the number of events that it indexed. Searches are refused
   * until it has ended. Imports may run meanwhile; after an interruption the next rebuild continues.
   *
   * @throws the signal's reason between two steps
   */
  rebuild(watch: IndexWatch): Promise<number>
  /** Rebuilds the index if it was built by another release, or a rebuild was interrupted. */
  repair(watch: IndexWatch): Promise<number>
}

export interface IndexWatch {
  /** Called after each step with the number of indexed events. */
  onProgress: (indexed: number) => void
  signal: AbortSignal
}

/**
 * Search queries of one caller. Each query reads one state of the index; item trends read the signals. Besides the
 * refusals of stores they refuse with `item_not_found` for an unknown key.
 */
export interface CallerSearch {
  /**
   * Items that contain the words of a text, best first. Every text is valid.
   *
   * @throws Refusal `invalid_cursor` for a cursor that does not belong to an earlier page of the same query
   */
  search(query: SearchQuery): Promise<SearchPage>
  /**
   * Items similar to the one of a save key, most similar first, without the item itself; `limit` is 1 to {@link
   * LIMIT_MAX}.
   */
  similar(key: string, limit: number): Promise<SimilarItem[]>
  /** Points and rank of an item on every day it was observed. */
  itemTrend(key: string): Promise<ItemTrend>
  /** Number of items of each day that mention a term; every text is a term. */
  termTrend(query: TermTrendQuery): Promise<TermTrend>
}

/** The state database: state of servers and runs outside the archive and the feed, in sections. */
export interface State {
  /** Quotas, budget and salts of the chat, shared by all servers on one database. */
  chat: {
    /** The random salt of a UTC day, created on first use. */
    makeSalt(day: Day): Promise<Uint8Array>
    /** The salt of a day; null when it does not exist or is deleted. */
    salt(day: Day): Promise<Uint8Array | null>
    /** Admits a turn in one transaction: everything is counted and reserved, or nothing. */
    admit(claim: TurnClaim): Promise<Admission>
    /**
     * Reserves the next model call of a turn in one transaction; a refused turn keeps its reservation. False when
     * budget or share are used up, or when the turn is settled.
     */
    extend(extension: TurnExtension): Promise<boolean>
    /** Charges the cost of a turn once, to the day of its admission; false when it is already settled. */
    settle(turn: string, cost: MicroUsd, at: Instant): Promise<boolean>
    /**
     * Settles expired turns at their reservation and returns their number; deletes turns and salts of days before
     * `keepFrom`; makes earlier writes durable. A server calls it at its start and every few seconds.
     */
    sweep(now: Instant, keepFrom: Day): Promise<number>
    spending(day: Day): Promise<{ settled: MicroUsd; reserved: MicroUsd }>
    /** Resolves when a turn can be written. */
    ping(): Promise<void>
  }
  /** Keys of servers that call the chat. */
  chatKeys: {
    /** Stores a key, durable on return. False when an active key has its name. */
    create(key: NewChatKey): Promise<boolean>
    /** Every key, active or revoked, in the order of creation; `usedToday` counts its turns of `day`. */
    list(day: Day): Promise<StoredChatKey[]>
    /** Ends the active key of a name, durable on return. False when there is none. */
    revoke(name: string, at: Instant): Promise<boolean>
    /** The active key of a digest; null when it is unknown or revoked. */
    find(digest: string): Promise<ChatKey | null>
  }
  /**
   * Cached answers for 24 hours, bounded in bytes. A failing cache fails the turn, and never returns a wrong answer.
   */
  answers: {
    /** @param key digest of everything that influenced the answer */
    get(key: string, now: Instant): Promise<CachedAnswer | null>
    put(key: string, answer: CachedAnswer): Promise<void>
  }
  /** The account's requests of a UTC day, shared by the chat and the evaluation: each is counted before it is sent. */
  allowance: {
    /**
     * Counts a request of the chat, durable on return, to the day of `sentAt`, with any result.
     *
     * @param limit daily requests of the account
     * @param turn the turn that sends it, and the daily requests of one address; a /48 has twice as many; absent for a
     *   request without a share
     * @returns false, with nothing written, when the day's requests of chat and evaluation have reached the limit minus
     *   {@link RESERVED_REQUESTS}, or the turn's address or /48 has used its share
     */
    countChatRequest(
      model: string,
      sentAt: Instant,
      limit: number,
      turn?: { turn: string; perAddress: number },
    ): Promise<boolean>
  }
  /**
   * The runs of `evaluate-models`, their requests with the results, and the lease that allows one run at a time.
   * Everything is durable on return, and kept for the newest {@link EVALUATIONS_KEPT_DAYS} days with any.
   */
  evaluations: LeaseKeeper & {
    /** Ends the open attempts of earlier runs as abandoned and deletes old records; returns the number of attempts. */
    sweep(now: Instant): Promise<number>
    recordRun(run: EndedRun): Promise<void>
    /** The lowest rate of the runs that started between two instants, both included; null without one. */
    lowestRateBetween(since: Instant, until: Instant): Promise<number | null>
    /** Records a request before it is sent. */
    countAttempt(attempt: AttemptStart, guard: AttemptGuard): Promise<CountedAttempt>
    /** Records the end of an attempt; a later call replaces it. */
    settleAttempt(attempt: number, end: AttemptEnd): Promise<void>
    /** Every attempt sent at or after an instant, ascending. */
    attemptsSince(since: Instant): Promise<ModelAttempt[]>
    /** Stores endpoint records, replacing those of the same models. */
    saveEndpoints(records: readonly EndpointRecord[]): Promise<void>
    /** Endpoint records from an instant on, one for each model, in no order. */
    endpointsSince(since: Instant): Promise<EndpointRecord[]>
    /** Times of the requests with the key from an instant on, those of the chat included, ascending. */
    requestsSince(since: Instant): Promise<Instant[]>
  }
  audits: {
    /** Records an audit, durable on return. Only the newest hundred are kept. */
    record(audit: AuditRecord): Promise<void>
    newest(): Promise<AuditRecord | null>
  }
  jobs: {
    /** Records a run, durable on return. The run recorded last counts, whatever its time: a clock may have been ahead. */
    record(run: JobRun): Promise<void>
    /** The last run of each job, by name. */
    states(): Promise<JobState[]>
  }
}

export interface LiveSource {
  source: LiveSourceName
  /** Names of required settings that are missing; the source must not be read then. */
  missingSettings: readonly string[]
  /**
   * Reads the source's current items in batches; every signal is of `day`, even when the clock passes midnight.
   * Failures of the source are part of the batches; it throws only for the signal and for stores.
   */
  read(day: Day, signal: AbortSignal): AsyncIterable<SourceBatch>
}

/** Reads article texts from the source of an item, or from the page it links to. */
export interface ArticleTexts {
  /** Reads the text of an item. Failures of the remote server are results; rejects with the signal's reason. */
  read(
    item: Pick<ItemWithoutText, 'source' | 'sourceId' | 'url'>,
    signal: AbortSignal,
  ): Promise<ArticleReading>
}

/**
 * The model-routing service (docs/model-errors.md). A failed chat call has an outcome too; an abort throws the signal's
 * reason. The key is sent to the configured base URL alone, and redirects are not followed.
 */
export interface ModelRouter {
  /** False when no key is configured: only the catalogue is available then. */
  hasKey: boolean
  /**
   * Every model of the service. Costs no quota.
   *
   * @throws Refusal `source_unavailable` when the response is not a catalogue
   */
  catalogue(signal: AbortSignal): Promise<Catalogue>
  /** The key's remaining requests. Costs no quota; the service may cache the response for about a minute. */
  key(signal: AbortSignal): Promise<RouterFacts<KeyRequests>>
  /** The endpoints of a model. Costs no quota. Fails only when the service rejects the key. */
  endpoints(model: string, signal: AbortSignal): Promise<RouterFacts<EndpointRecord>>
  /** Sends a prompt to one model at a price of zero, without a fallback to another. Costs one request of the day. */
  chat(call: ChatCall, signal: AbortSignal): Promise<ChatOutcome>
}

/** Passes chat completions on to the routing service, with the caller's own key of it (docs/v1.md). */
export interface PassThrough {
  /**
   * Sends a call. A stream is passed on from its first data line, unchanged; a whole completion unchanged too. If the
   * service declines the request and names some of several ids, the call is repeated once with the others.
   *
   * @param call `ids`: of the models that may respond; `bodyFor`: JSON for some of them, at a price of zero
   * @returns the completion, whose chunks end with a BrokenStream if the stream breaks off, and the id that the service
   *   names as the one that responds; or the failure
   * @throws the signal's reason; an abort also ends the chunks
   */
  send(
    call: {
      key: string
      ids: readonly string[]
      bodyFor: (ids: readonly string[]) => string
      stream: boolean
    },
    signal: AbortSignal,
  ): Promise<{ chunks: AsyncIterable<Uint8Array>; model: string | null } | UpstreamFailure>
  close(): Promise<void>
}

export interface ChatModel {
  /** Id of the model in use; empty without one. */
  name(): Promise<string>
  /** Daily requests of the account behind the model; absent when they are not counted. */
  requestsPerDay?(): Promise<number>
  /** @param turn id of the calling turn, whose address has a share of the day's requests */
  ask(call: ModelCall, signal: AbortSignal, turn?: string): AsyncIterable<ModelEvent>
  close(): Promise<void>
}

/** An in-memory shell that runs a model's commands: no process, no host files, no network, no environment. */
export interface Shell {
  /**
   * Runs one command line in a new folder that contains only `files`. Every command ends within the limits with an
   * outcome; a rejection is a fault of the sandbox.
   */
  run(command: string, files: ShellFiles, limits: ShellLimits): Promise<ShellRun>
  close(): Promise<void>
}

export interface HumanVerifier {
  /**
   * True only when the service confirms a token solved on a page of `hostname`; false after a timeout, an error,
   * another host or an unreadable response.
   */
  isHuman(token: string, hostname: string, signal: AbortSignal): Promise<boolean>
}

/** A file of lines that can be read repeatedly. */
export interface LineSource {
  /** As the user named it. */
  name: string
  /**
   * All lines in order, in batches; blank lines are skipped but counted in the line numbers.
   *
   * @throws Refusal `input_unreadable` when the file is missing, unreadable, or a broken or truncated gzip
   */
  lines(): AsyncIterable<InputLine[]>
}

/** One line of an input file; `problem` replaces the text of an undecodable line. */
export type InputLine = { number: number; text: string } | { number: number; problem: string }
