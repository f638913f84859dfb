import { QUERY_TIMEOUT_MS } from '../domain/feed/search/search.ts'
import { once } from '../domain/once.ts'
import type { FeedSearch, State } from '../domain/ports.ts'
import type { Objects, ObjectsAuditor, SignedLog, StaticTree } from '../domain/year/ports.ts'
import type { LedgerContents } from '../domain/year/ledger.ts'
import { Refusal } from '../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../domain/refusal.ts'
import type { FeedFacts, LedgerFacts, StateFacts, Inspection } from '../domain/inspection.ts'
import { formatPolicy } from '../domain/year/log/signed-note.ts'
import type { createLogKey } from '../adapters/log-signer.ts'
import type { Database } from '../adapters/sqlite/database.ts'
import type { inspectDatabase } from '../adapters/sqlite/read-only-copy.ts'
import type { AgentStores } from '../server/agent/tools.ts'
import { requireOrigin } from './settings/config.ts'
import type { Config } from './settings/config.ts'

/** Waiting times for a database lock: inside the driver, which blocks the thread, and by retrying. */
const BUSY = {
  server: { nativeBusyMs: 10, retryMs: 2_000 },
  batch: { nativeBusyMs: 5_000, retryMs: 10_000 },
  inspection: { nativeBusyMs: 1_000, retryMs: 5_000 },
}

const SEARCH_LIMITS = { server: { timeoutMs: QUERY_TIMEOUT_MS }, batch: { timeoutMs: 10_000 } }

interface StoresOptions {
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
 * The databases, the objects and the log of a configuration. Each adapter is loaded and built at its first use; {@link
 * Stores.close} closes them. Each database has one read-write connection, which opens at the first query.
 */
export class Stores {
  readonly config: Config
  protected readonly options: StoresOptions
  readonly #closers: (() => unknown)[] = []

  constructor(options: StoresOptions) {
    this.config = options.config
    this.options = options
  }

  get #kind(): 'server' | 'batch' {
    return this.options.kind ?? 'batch'
  }

  /** Closes everything that was built, the newest first. */
  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) await close()
  }

  protected closing<T extends { close: () => unknown }>(part: T): T {
    this.#closers.push(() => part.close())
    return part
  }

  // The ledger and the objects

  readonly #ledgerDatabase = once(() => this.#database('ledger'))

  readonly ledger = once(async () =>
    (await import('../adapters/ledger/ledger.ts')).libsqlLedger(await this.#ledgerDatabase()),
  )

  readonly objects = once(async (): Promise<Objects> => {
    const { openObjects } = await import('../adapters/objects/objects.ts')
    return this.closing(openObjects(this.config.store, !this.options.isTemporary))
  })

  async staticTree(location: StoreLocation): Promise<StaticTree> {
    return this.closing((await import('../adapters/objects/objects.ts')).openStaticTree(location))
  }

  readonly year = once(async () =>
    (await import('../adapters/ledger/ledger.ts')).yearReader(await this.ledger(), await this.objects()),
  )

  /** Key and policy of the log that a publisher signs; null if no key is set. */
  readonly signedLog = once(async (): Promise<SignedLog | null> => {
    const { keyFile, url } = this.config.log
    if (keyFile === null) return null
    const { openLogSigner } = await import('../adapters/log-signer.ts')
    const origin = requireOrigin(this.config)
    const signer = openLogSigner(keyFile, !this.options.isTemporary)
    const { name } = signer.key
    if (name !== origin)
      throw new Refusal(
        'configuration',
        `the key ${keyFile} belongs to the log ${name}, not to ${origin}; correct DASH_LOG_KEY_FILE or DASH_LOG_ORIGIN`,
      )
    return { signer, policy: formatPolicy(signer.keys, url) }
  })

  async newLogKey(...key: Parameters<typeof createLogKey>): Promise<string> {
    return (await import('../adapters/log-signer.ts')).createLogKey(...key)
  }

  readonly ledgerAuditor = once(async () =>
    (await import('../adapters/auditors.ts')).ledgerAuditor(this.config.ledger, BUSY.batch),
  )

  /** As {@link Stores.year}, without changing the ledger's database, which may be missing. */
  readonly auditedYear = once(async () => {
    const auditor = await this.ledgerAuditor()
    const read = async (): Promise<LedgerContents> =>
      (await auditor.read()) ?? { rows: [], legacy: [], founding: null }
    return (await import('../adapters/ledger/ledger.ts')).yearReader({ read }, await this.objects())
  })

  async objectsAuditor(): Promise<ObjectsAuditor> {
    const { openObjectsAuditor } = await import('../adapters/auditors.ts')
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

  protected readonly stateDatabase = once(() => this.#database('state'))

  readonly audits = once(async () =>
    (await import('../adapters/state/job-stores.ts')).libsqlAudits(await this.stateDatabase()),
  )

  readonly jobs = once(async () =>
    (await import('../adapters/state/job-stores.ts')).libsqlJobLog(await this.stateDatabase()),
  )

  readonly chatLedger = once(async () =>
    (await import('../adapters/state/chat-stores.ts')).libsqlChatLedger(await this.stateDatabase()),
  )

  readonly chatKeys = once(async () =>
    (await import('../adapters/state/chat-stores.ts')).libsqlChatKeys(await this.stateDatabase()),
  )

  /** @param onDamage called with the key of a stored answer that cannot be read */
  async answerCache(onDamage: (key: string) => void): Promise<State['answers']> {
    const { libsqlAnswerCache } = await import('../adapters/state/chat-stores.ts')
    return libsqlAnswerCache(await this.stateDatabase(), onDamage)
  }

  // Read-only handles of the chat agent, and read-only inspection for `dash doctor`

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

  async inspectLedger(): Promise<Inspection<LedgerFacts>> {
    return this.#inspect('ledger', (await import('../adapters/auditors.ts')).ledgerFacts)
  }

  async inspectFeed(): Promise<Inspection<FeedFacts>> {
    const { feedFacts } = await import('../adapters/feed/feed.ts')
    return this.#inspect('feed', (reader) => feedFacts(reader, Date.now()))
  }

  async inspectState(): Promise<Inspection<StateFacts>> {
    return this.#inspect('state', (await import('../adapters/state/job-stores.ts')).stateFacts)
  }

  // Helpers

  async #inspect<Facts>(
    store: 'ledger' | 'feed' | 'state',
    read: Parameters<typeof inspectDatabase<Facts>>[3],
  ): Promise<Inspection<Facts>> {
    const { inspectDatabase: inspect } = await import('../adapters/sqlite/read-only-copy.ts')
    return inspect(this.config[store], store, BUSY.inspection, read)
  }

  async #database(store: 'ledger' | 'feed' | 'state'): Promise<Database> {
    const { database } = await import('../adapters/sqlite/database.ts')
    // In a server only the chat writes to the state database, and requests durable commits where it needs them.
    const fast = this.#kind === 'server' && store === 'state'
    const temporary = this.options.isTemporary ?? false
    return this.closing(
      database({ location: this.config[store], store, fast, temporary, ...BUSY[this.#kind] }),
    )
  }

  async #readOnly(location: DatabaseLocation, owner: Database): Promise<Database> {
    const { readOnlyDatabase } = await import('../adapters/sqlite/database.ts')
    const options = { location: this.#readLocation(location), ...BUSY[this.#kind] }
    return this.closing(readOnlyDatabase(options, owner))
  }

  #readLocation(location: DatabaseLocation): DatabaseLocation {
    return { ...location, authToken: this.config.databaseReadToken ?? location.authToken }
  }

  async #search(location: DatabaseLocation, database: Database): Promise<FeedSearch> {
    const { openFeedSearch } = await import('../adapters/feed/feed-search.ts')
    return this.closing(openFeedSearch({ location, database, ...SEARCH_LIMITS[this.#kind] }))
  }
}
