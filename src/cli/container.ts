import { once } from '../domain/once.ts'
import type {
  ArticleTexts,
  ChangeReceiver,
  ChatModel,
  PassThrough,
  Clock,
  HumanVerifier,
  LineSource,
  LiveSource,
} from '../domain/ports.ts'
import type { ArchiveFolder, PublishedHistory, SeenLogs } from '../domain/year/ports.ts'
import type { ArchivePages, ExportedArchive } from '../domain/year/log/static-layout.ts'
import type { RunStep } from '../domain/models/changes.ts'
import type { WebhookMessage, JobMonitor } from '../adapters/notifications.ts'
import type { ChatApi } from '../adapters/chat-server.ts'
import type { HttpProbe } from '../adapters/http.ts'
import type { PublishedFeeds } from '../adapters/sources/live-sources.ts'
import type { SourceClient, SourceMemory } from '../adapters/sources/source-client.ts'
import type { EvaluatePorts } from '../jobs/models/evaluation-run.ts'
import type { PublishPorts } from '../jobs/publish-year.ts'
import { THIS_RUN, pause } from './process-identity.ts'
import { listeningUrl } from './settings/config.ts'
import type { Config } from './settings/config.ts'
import { Stores } from './stores.ts'

export type { ChatApi, HttpProbe }

const SOURCE_CONCURRENCY = 4

/** Timeout of a response from a source, and the longest pause that a source may request. */
const COLLECT_RETRIES = { answerMs: 20_000, longestWaitMs: 120_000 }

/** A publication requests single items, and retries as a whole. */
const PUBLISH_RETRIES = { answerMs: 10_000, longestWaitMs: 10_000 }

/** Builds all adapters: those of the stores, and those of everything else outside. {@link Stores.close} closes them. */
export class Container extends Stores {
  /** Returns a container with another configuration, to be closed separately. */
  withConfig(changes: Partial<Config>): Container {
    return new Container({ ...this.options, config: { ...this.config, ...changes } })
  }

  async exportedPages(): Promise<(archive: ExportedArchive) => ArchivePages> {
    return (await import('../server/page/year/exported-pages.ts')).exportedPages
  }

  // The chat

  /** The configured chat model; for `auto`, the model of the current recommendation. */
  async chatModel(): Promise<ChatModel> {
    const { provider, firstEventMs, idleMs, limits } = this.config.chat
    const { url: base, key, model } = provider
    const userAgent = this.#userAgent()
    if (model !== 'auto') {
      const { openChatModel } = await import('../adapters/provider/chat-model.ts')
      return this.closing(openChatModel({ base, key, userAgent, model: model ?? '', firstEventMs, idleMs }))
    }
    const { openAutoModel } = await import('../adapters/provider/auto-model.ts')
    const { libsqlRouterAllowance } = await import('../adapters/state/job-stores.ts')
    const auto = openAutoModel({
      base: this.config.openRouterUrl,
      key: this.config.openRouterKey ?? '',
      referer: this.#ownUrl(),
      userAgent,
      recommendations: await this.recommendations(),
      allowance: libsqlRouterAllowance(await this.stateDatabase()),
      requestShare: limits.budgetShare,
      clock: Date.now,
      firstEventMs,
      idleMs,
    })
    return this.closing(auto)
  }

  /** The routing service for callers of `/v1` with their own keys. */
  async passThrough(): Promise<PassThrough> {
    const { openPassThrough } = await import('../adapters/provider/pass-through.ts')
    const { openRouterUrl: base, chat } = this.config
    const { firstEventMs, idleMs } = chat
    const identity = { referer: this.#ownUrl(), userAgent: this.#userAgent() }
    return this.closing(openPassThrough({ base, ...identity, firstEventMs, idleMs, clock: Date.now }))
  }

  async humanVerifier(
    verification: NonNullable<Config['chat']['verification']>,
    onFault: (error: unknown) => void,
  ): Promise<HumanVerifier> {
    const { openSiteverify } = await import('../adapters/siteverify.ts')
    return this.closing(openSiteverify({ ...verification, onFault }))
  }

  /** Client of a server's chat API, for the terminal. */
  async chatApi(base: string): Promise<ChatApi> {
    return this.closing((await import('../adapters/chat-server.ts')).openChatApi(base))
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
      fetchJson: client.fetchJson,
      userAgent: this.#userAgent(),
      clock: Date.now,
      allowed: this.config.articles.allowed,
    })
    return this.closing(texts)
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
    return this.closing((await import('../adapters/audited-hosts.ts')).openPublishedHistory(base))
  }

  /** Newest checkpoints of other logs, in a state folder. */
  async seenLogs(folder: string): Promise<SeenLogs> {
    return (await import('../adapters/audited-hosts.ts')).openSeenLogs(folder)
  }

  /** Sends probe requests to HTTP services. */
  readonly probe = once(async (): Promise<HttpProbe> => {
    return this.closing((await import('../adapters/http.ts')).openHttpProbe())
  })

  async jobWatch(url: string): Promise<JobMonitor> {
    return this.closing((await import('../adapters/notifications.ts')).openJobPings({ url }))
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
    return this.closing(await openInputs(files, stdin, signal)).sources
  }

  async archiveFolder(path: string): Promise<ArchiveFolder> {
    return (await import('../adapters/input.ts')).archiveFolder(path)
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
    const { libsqlEvaluations } = await import('../adapters/state/job-stores.ts')
    const { makeLiteSuite } = await import('../jobs/models/lite-suite.ts')
    const { openRouterUrl, openRouterKey, publishedBaseUrl } = this.config
    const clock = Date.now
    const identity = { referer: this.#ownUrl(), userAgent: this.#userAgent() }
    const service = { base: openRouterUrl, key: openRouterKey, ...identity, clock }
    const shell = this.closing(memoryShell())
    return {
      router: this.closing(openRouter(service)),
      evaluations: libsqlEvaluations(await this.stateDatabase()),
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

  async #changeReceiver(): Promise<ChangeReceiver | null> {
    const { webhook } = this.config
    if (webhook === null) return null
    const { openWebhook } = await import('../adapters/notifications.ts')
    const { changeMessages } = await import('../server/models/changes-feed.ts')
    const host = { baseUrl: this.#ownUrl(), demo: false }
    const messagesOf = (step: RunStep): WebhookMessage[] => changeMessages(step, host)
    return this.closing(openWebhook({ ...webhook, messagesOf, clock: Date.now, sleep: pause }))
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
    return this.closing(client)
  }

  /** User agent: `dash/<version> (+<URL of this installation>)`. */
  #userAgent(): string {
    return `dash/${this.options.version} (+${this.#ownUrl()})`
  }

  #ownUrl(): string {
    return this.config.baseUrl ?? listeningUrl(this.config)
  }
}
