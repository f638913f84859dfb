import type { Database } from '../adapters/sqlite/database.ts'
import type { inspectDatabase } from '../adapters/sqlite/read-only-copy.ts'
import type { WebhookMessage } from '../adapters/webhook.ts'
import type { ChatApi } from '../adapters/chat-server.ts'
import type { HttpProbe } from '../adapters/http.ts'
import type { JobMonitor } from '../adapters/job-pings.ts'
import type { PublishedFeeds } from '../adapters/sources/live-sources.ts'
import type { SourceClient, SourceMemory } from '../adapters/sources/source-client.ts'
import { QUERY_TIMEOUT_MS } from '../domain/feed/search/search.ts'
import { once } from '../domain/once.ts'
import type {
  ArchiveFolder,
  ArchivePages,
  ArticleTexts,
  ChangeReceiver,
  ChatModel,
  PassThrough,
  Clock,
  ExportedArchive,
  FeedSearch,
  HumanVerifier,
  LineSource,
  LiveSource,
  Objects,
  ObjectsAuditor,
  PublishedHistory,
  SeenLogs,
  SignedLog,
  State,
  StaticTree,
} from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../domain/refusal.ts'
import type { RunStep } from '../domain/models/changes.ts'
import type { FeedFacts, LedgerFacts, StateFacts, Inspection } from '../domain/inspection.ts'
import type { EvaluatePorts } from '../jobs/models/evaluation-run.ts'
import type { PublishPorts } from '../jobs/publish-year.ts'
import type { AgentStores } from '../server/agent/tools.ts'
import { THIS_RUN, pause } from './process-identity.ts'
import { listeningUrl, requireOrigin } from './settings/config.ts'
import type { Config } from './settings/config.ts'

export type { ChatApi, HttpProbe }

/** Waiting times for a database lock: inside the driver, which blocks the thread, and by retrying. */
const BUSY = {
  server: { nativeBusyMs: 10, retryMs: 2_000 },
  batch: { nativeBusyMs: 5_000, retryMs: 10_000 },
  inspection: { nativeBusyMs: 1_000, retryMs: 5_000 },
}

const SEARCH_LIMITS = { server: { timeoutMs: QUERY_TIMEOUT_MS }, batch: { timeoutMs: 10_000 } }

const SOURCE_CONCURRENCY = 4

/** Timeout of a response from a source, and the longest pause that a source may request. */
const COLLECT_RETRIES = { answerMs: 20_000, longestWaitMs: 120_000 }

/** A publication requests single items, and retries as a whole. */
const PUBLISH_RETRIES = { answerMs: 10_000, longestWaitMs: 10_000 }

interface ContainerOptions {
  config: Config
  /** Release of dash, for the sources. */
  version: string
  /** A `server` waits for locks without blocking its event loop, and limits each caller. Default: `batch`. */
  kind?: 'server' | 'batch'
  /**
   * True for a data folder that is deleted when the process ends: nothing is made durable, and the death of the
   * process can damage its databases. Default: false.
   */
  isTemporary?: boolean
}

/**
 * Builds all adapters. Each is loaded and built at its first use; {@link Container.close} closes them. A container
 * has one read-write connection to each database, which opens at the first query.
 */
export class Container {
  readonly config: Config
  readonly #version: string
  readonly #kind: 'server' | 'batch'
  readonly #isTemporary: boolean
  readonly #closers: (() => unknown)[] = []

  constructor({ config, version, kind = 'batch', isTemporary = false }: ContainerOptions) {
    this.config = config
    this.#version = version
    this.#kind = kind
    this.#isTemporary = isTemporary
  }

  /** Returns a container with another configuration, to be closed separately. */
  withConfig(changes: Partial<Config>): Container {
    return new Container({
      config: { ...this.config, ...changes },
      version: this.#version,
      kind: this.#kind,
      isTemporary: this.#isTemporary,
    })
  }

  /** Closes everything that was built, the newest first. */
  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) await close()
  }

  #closing<T extends { close: () => unknown }>(part: T): T {
    this.#closers.push(() => part.close())
    return part
  }

  // The ledger and the objects

  readonly #ledgerDatabase = once(() => this.#database('ledger'))

  readonly ledger = once(async () =>
    (await import('../adapters/ledger/ledger.ts')).libsqlLedger(await this.#ledgerDatabase()),
  )

  readonly objects = once(async (): Promise<Objects> => {
    const { openObjects } = await import('../adapters/objects/open.ts')
    return this.#closing(openObjects(this.config.store, !this.#isTemporary))
  })

  async staticTree(location: StoreLocation): Promise<StaticTree> {
    return this.#closing((await import('../adapters/objects/static-tree.ts')).openStaticTree(location))
  }

  async exportedPages(): Promise<(archive: ExportedArchive) => ArchivePages> {
    return (await import('../server/page/year/exported-pages.ts')).exportedPages
  }

  readonly year = once(async () =>
    (await import('../adapters/ledger/ledger.ts')).yearReader(await this.ledger(), await this.objects()),
  )

  /** Key and policy of the log that a publisher signs; null if no key is set. */
  readonly signedLog = once(async (): Promise<SignedLog | null> => {
    const { keyFile, url } = this.config.log
    if (keyFile === null) return null
    const { openLogSigner } = await import('../adapters/log-signer.ts')
    const { formatPolicy } = await import('../domain/year/log/log-policy.ts')
    const origin = requireOrigin(this.config)
    const signer = openLogSigner(keyFile, !this.#isTemporary)
    const { name } = signer.key
    if (name !== origin)
      throw new Refusal(
        'configuration',
        `the key ${keyFile} belongs to the log ${name}, not to ${origin}; correct DASH_LOG_KEY_FILE or DASH_LOG_ORIGIN`,
      )
    return { signer, policy: formatPolicy(signer.keys, url) }
  })

  /** Creates the key of a log in a new file and returns its verifier key; see `createLogKey`. */
  async newLogKey(
    path: string,
    name: string,
    seed: Uint8Array,
    replaced: string | null = null,
  ): Promise<string> {
    return (await import('../adapters/log-signer.ts')).createLogKey(path, name, seed, replaced)
  }

  readonly ledgerAuditor = once(async () =>
    (await import('../adapters/ledger/auditor.ts')).ledgerAuditor(this.config.ledger, BUSY.batch),
  )

  /** @param options threads, and whether every object is to be proved */
  async objectsAuditor(): Promise<ObjectsAuditor> {
    const { openObjectsAuditor } = await import('../adapters/objects/auditor.ts')
    return openObjectsAuditor(this.config.store, await this.objects())
  }

  readonly recommendations = once(async () => (await this.objects()).recommendations)

  // The feed

  readonly #feedDatabase = once(() => this.#database('feed'))

  readonly feed = once(async () =>
    (await import('../adapters/feed/feed.ts')).libsqlFeed(await this.#feedDatabase()),
  )

  /** Search in the feed. A feed file is read in a separate process, which the first query starts. */
  readonly search = once(async () => this.#search(this.config.feed, await this.#feedDatabase()))

  // The state

  readonly #stateDatabase = once(() => this.#database('state'))

  readonly audits = once(async () =>
    (await import('../adapters/state/job-log.ts')).libsqlAudits(await this.#stateDatabase()),
  )

  readonly jobs = once(async () =>
    (await import('../adapters/state/job-log.ts')).libsqlJobLog(await this.#stateDatabase()),
  )

  readonly chatLedger = once(async () =>
    (await import('../adapters/state/chat-ledger.ts')).libsqlChatLedger(await this.#stateDatabase()),
  )

  readonly chatKeys = once(async () =>
    (await import('../adapters/state/chat-keys.ts')).libsqlChatKeys(await this.#stateDatabase()),
  )

  /** @param onDamage called with the key of a stored answer that cannot be read */
  async answerCache(onDamage: (key: string) => void): Promise<State['answers']> {
    const { libsqlAnswerCache } = await import('../adapters/state/answer-cache.ts')
    return libsqlAnswerCache(await this.#stateDatabase(), onDamage)
  }

  // The chat

  /** Data sources of the chat agent, through separate read-only connections (docs/agent-tools.md). */
  readonly agentReads = once(async (): Promise<Omit<AgentStores, 'clock'>> => {
    const { libsqlLedger, yearReader } = await import('../adapters/ledger/ledger.ts')
    const { libsqlFeed } = await import('../adapters/feed/feed.ts')
    const ledger = libsqlLedger(await this.#readOnly(this.config.ledger, await this.#ledgerDatabase()))
    const feed = await this.#readOnly(this.config.feed, await this.#feedDatabase())
    const store = await this.objects()
    const objects: AgentStores['objects'] = {
      get: (sha256) => store.get(sha256),
      newestHead: () => store.newestHead(),
      objectChangeToken: (sha256) => store.objectChangeToken(sha256),
      headChangeToken: (newest) => store.headChangeToken(newest),
    }
    return {
      recommendations: { current: () => store.recommendations.current() },
      feed: libsqlFeed(feed),
      search: await this.#search(this.#readLocation(this.config.feed), feed),
      ledger: { changeToken: () => ledger.changeToken() },
      objects,
      year: yearReader(ledger, objects),
    }
  })

  /** The configured chat model; for `auto`, the model of the current recommendation. */
  async chatModel(): Promise<ChatModel> {
    const { provider, firstEventMs, idleMs, limits } = this.config.chat
    const { url: base, key, model } = provider
    const userAgent = this.#userAgent()
    if (model !== 'auto') {
      const { openChatModel } = await import('../adapters/provider/chat-model.ts')
      return this.#closing(openChatModel({ base, key, userAgent, model: model ?? '', firstEventMs, idleMs }))
    }
    const { openAutoModel } = await import('../adapters/provider/auto-model.ts')
    const { libsqlRouterAllowance } = await import('../adapters/state/evaluations.ts')
    const auto = openAutoModel({
      base: this.config.openRouterUrl,
      key: this.config.openRouterKey ?? '',
      referer: this.#ownUrl(),
      userAgent,
      recommendations: await this.recommendations(),
      allowance: libsqlRouterAllowance(await this.#stateDatabase()),
      requestShare: limits.budgetShare,
      clock: Date.now,
      firstEventMs,
      idleMs,
    })
    return this.#closing(auto)
  }

  /** The routing service for callers of `/v1` with their own keys. */
  async passThrough(): Promise<PassThrough> {
    const { openPassThrough } = await import('../adapters/provider/pass-through.ts')
    const { openRouterUrl: base, chat } = this.config
    const { firstEventMs, idleMs } = chat
    const identity = { referer: this.#ownUrl(), userAgent: this.#userAgent() }
    return this.#closing(openPassThrough({ base, ...identity, firstEventMs, idleMs, clock: Date.now }))
  }

  async humanVerifier(verification: NonNullable<Config['chat']['verification']>): Promise<HumanVerifier> {
    return this.#closing((await import('../adapters/siteverify.ts')).openSiteverify(verification))
  }

  /** Client of a server's chat API, for the terminal. */
  async chatApi(base: string): Promise<ChatApi> {
    return this.#closing((await import('../adapters/chat-server.ts')).openChatApi(base))
  }

  // Sources and other hosts

  readonly liveSources = once(async (): Promise<LiveSource[]> => {
    const { liveSources } = await import('../adapters/sources/live-sources.ts')
    return liveSources(await this.#sources(COLLECT_RETRIES, await this.feed()), this.config)
  })

  readonly articleTexts = once(async (): Promise<ArticleTexts> => {
    const { openArticleTexts } = await import('../adapters/articles/open.ts')
    const client = await this.#sources(COLLECT_RETRIES)
    const texts = openArticleTexts({
      urls: this.config.sourceUrls,
      fetchJson: (request, signal) =>
        client.fetchJson<unknown>({ ...request, absent: null, read: (body) => body }, signal),
      userAgent: this.#userAgent(),
      clock: Date.now,
      allowed: this.config.articles.allowed,
    })
    return this.#closing(texts)
  })

  readonly titles = once(async () =>
    (await import('../adapters/sources/news-items.ts')).sourceTitles(
      await this.#sources(PUBLISH_RETRIES),
      this.config.sourceUrls,
    ),
  )

  /** Client for the feeds and the shortlist of free models of another host. */
  async publishedFeeds(base: string): Promise<PublishedFeeds> {
    const { publishedFeeds } = await import('../adapters/sources/live-sources.ts')
    return publishedFeeds(await this.#sources(PUBLISH_RETRIES), base)
  }

  /** Client for the public history of another host. */
  async publishedHistory(base: string): Promise<PublishedHistory> {
    return this.#closing((await import('../adapters/published-history.ts')).openPublishedHistory(base))
  }

  /** Newest checkpoints of other logs, in a state folder. */
  async seenLogs(folder: string): Promise<SeenLogs> {
    return (await import('../adapters/seen-logs.ts')).openSeenLogs(folder)
  }

  /** Sends probe requests to HTTP services. */
  readonly probe = once(async (): Promise<HttpProbe> => {
    return this.#closing((await import('../adapters/http.ts')).openHttpProbe())
  })

  async jobWatch(url: string): Promise<JobMonitor> {
    return this.#closing((await import('../adapters/job-pings.ts')).openJobPings({ url }))
  }

  // Files on this machine

  /** A file of lines; reports call it `name`. */
  async lineFile(path: string, name: string): Promise<LineSource> {
    return (await import('../adapters/input.ts')).lineFile(path, name)
  }

  /** Inputs that a command line names: files, pipes, and `-` for standard input. */
  async inputs(
    files: readonly string[],
    stdin: NodeJS.ReadStream,
    signal: AbortSignal,
  ): Promise<LineSource[]> {
    const { openInputs } = await import('../adapters/input.ts')
    return this.#closing(await openInputs(files, stdin, signal)).sources
  }

  async archiveFolder(path: string): Promise<ArchiveFolder> {
    return (await import('../adapters/input.ts')).archiveFolder(path)
  }

  // Read-only inspection of the databases, for `dash doctor`

  async inspectLedger(): Promise<Inspection<LedgerFacts>> {
    return this.#inspect('ledger', (await import('../adapters/ledger/auditor.ts')).ledgerFacts)
  }

  async inspectFeed(): Promise<Inspection<FeedFacts>> {
    const { feedFacts } = await import('../adapters/feed/feed.ts')
    return this.#inspect('feed', (reader) => feedFacts(reader, Date.now()))
  }

  async inspectState(): Promise<Inspection<StateFacts>> {
    return this.#inspect('state', (await import('../adapters/state/job-log.ts')).stateFacts)
  }

  // Ports of jobs that more than one command runs

  async publishPorts(clock: Clock, onProgress: PublishPorts['onProgress']): Promise<PublishPorts> {
    return {
      ledger: await this.ledger(),
      year: await this.year(),
      objects: await this.objects(),
      feed: await this.feed(),
      titles: await this.titles(),
      log: await this.signedLog(),
      ...THIS_RUN,
      clock,
      sleep: pause,
      onProgress,
    }
  }

  async evaluatePorts({
    onProgress,
    onNote,
  }: Pick<EvaluatePorts, 'onProgress' | 'onNote'>): Promise<EvaluatePorts> {
    const { openRouter } = await import('../adapters/router/router.ts')
    const { memoryShell } = await import('../adapters/sandbox/shell.ts')
    const { libsqlEvaluations } = await import('../adapters/state/evaluations.ts')
    const { makeLiteSuite } = await import('../jobs/models/lite-suite.ts')
    const { openRouterUrl, openRouterKey, publishedBaseUrl } = this.config
    const clock = Date.now
    const identity = { referer: this.#ownUrl(), userAgent: this.#userAgent() }
    const service = { base: openRouterUrl, key: openRouterKey, ...identity, clock }
    const shell = this.#closing(memoryShell())
    return {
      router: this.#closing(openRouter(service)),
      evaluations: libsqlEvaluations(await this.#stateDatabase()),
      recommendations: await this.recommendations(),
      changes: await this.#changeReceiver(),
      makeSuite: (day) => makeLiteSuite(day, shell),
      baseUrl: publishedBaseUrl,
      ...THIS_RUN,
      monotonic: () => performance.now(),
      sleep: pause,
      onProgress,
      onNote,
    }
  }

  // Helpers

  async #inspect<Facts>(
    store: 'ledger' | 'feed' | 'state',
    read: Parameters<typeof inspectDatabase<Facts>>[3],
  ): Promise<Inspection<Facts>> {
    const { inspectDatabase: inspect } = await import('../adapters/sqlite/read-only-copy.ts')
    return inspect(this.config[store], store, BUSY.inspection, read)
  }

  async #changeReceiver(): Promise<ChangeReceiver | null> {
    const { webhook } = this.config
    if (webhook === null) return null
    const { openWebhook } = await import('../adapters/webhook.ts')
    const { changeMessages } = await import('../server/models/changes-feed.ts')
    const host = { baseUrl: this.#ownUrl(), demo: false }
    const messagesOf = (step: RunStep): WebhookMessage[] => changeMessages(step, host)
    return this.#closing(openWebhook({ ...webhook, messagesOf, clock: Date.now, sleep: pause }))
  }

  async #database(store: 'ledger' | 'feed' | 'state'): Promise<Database> {
    const { database } = await import('../adapters/sqlite/database.ts')
    // In a server only the chat writes to the state database, and requests durable commits where it needs them.
    const fast = this.#kind === 'server' && store === 'state'
    const temporary = this.#isTemporary
    return this.#closing(
      database({ location: this.config[store], store, fast, temporary, ...BUSY[this.#kind] }),
    )
  }

  async #readOnly(location: DatabaseLocation, owner: Database): Promise<Database> {
    const { readOnlyDatabase } = await import('../adapters/sqlite/database.ts')
    const options = { location: this.#readLocation(location), ...BUSY[this.#kind] }
    return this.#closing(readOnlyDatabase(options, owner))
  }

  #readLocation(location: DatabaseLocation): DatabaseLocation {
    return { ...location, authToken: this.config.databaseReadToken ?? location.authToken }
  }

  async #search(location: DatabaseLocation, database: Database): Promise<FeedSearch> {
    const { openFeedSearch } = await import('../adapters/feed/feed-search.ts')
    return this.#closing(openFeedSearch({ location, database, ...SEARCH_LIMITS[this.#kind] }))
  }

  async #sources(
    { answerMs, longestWaitMs }: typeof COLLECT_RETRIES,
    memory: SourceMemory | null = null,
  ): Promise<SourceClient> {
    const { openSourceClient } = await import('../adapters/sources/source-client.ts')
    const client = openSourceClient({
      userAgent: this.#userAgent(),
      clock: Date.now,
      sleep: pause,
      memory,
      limits: { concurrency: SOURCE_CONCURRENCY, maxWaitMs: longestWaitMs },
      responseTimeoutMs: answerMs,
    })
    return this.#closing(client)
  }

  /** User agent: `dash/<version> (+<URL of this installation>)`. */
  #userAgent(): string {
    // A header is plain ASCII.
    return `dash/${this.#version} (+${this.#ownUrl().replaceAll(/[^\x21-\x7e]+/gu, encodeURIComponent)})`
  }

  #ownUrl(): string {
    return this.config.baseUrl ?? listeningUrl(this.config)
  }
}
