import { randomBytes } from 'node:crypto'
import { isLoopbackUrl, priceOf } from '../domain/agent/budget.ts'
import { ownOrigins } from '../domain/agent/chat-request.ts'
import { sessionSigner } from '../domain/agent/token.ts'
import type { ChatModel } from '../domain/ports.ts'
import { openAgent } from '../server/agent/routes.ts'
import type { Agent } from '../server/agent/routes.ts'
import { startSweeper, watchedLedger } from '../server/agent/service.ts'
import type { AgentPorts, WatchedLedger } from '../server/agent/service.ts'
import { agentSources } from '../server/agent/tool-answers.ts'
import type { AgentSources } from '../server/agent/tool-answers.ts'
import { boundedChecks, createApp, openReaders } from '../server/app.ts'
import { listenOn } from '../server/listen.ts'
import type { RunningServer } from '../server/listen.ts'
import { agentMeter } from '../server/metrics/agent-meter.ts'
import { processMeter, requestMeter } from '../server/metrics/instruments.ts'
import { createMetricsApp, scraper, storedMetrics } from '../server/metrics/scrape.ts'
import type { ScrapePorts, StoredMetricsPorts } from '../server/metrics/scrape.ts'
import type { Log } from '../server/route.ts'
import { Container } from './container.ts'
import { tellChatStart } from './settings/chat-checks.ts'
import { listenSettings } from './settings/config.ts'
import type { Config } from './settings/config.ts'
import type { ListenAddress } from './settings/rules.ts'

/** Times a request may take to arrive (docs/operations.md). */
const ARRIVAL = { headersTimeoutMs: 10_000, requestTimeoutMs: 15_000 }

/** A server that answers. */
export interface StartedServer {
  /** Where it listens. */
  url: string
  /** Where its metrics are; null: nowhere. */
  metricsUrl: string | null
  /** Lets open answers finish for `graceMs`, ends what is left of them, then closes everything that was opened. */
  close(graceMs: number): Promise<void>
}

export interface ServerSurroundings {
  log: Log
  /** Release of dash. */
  version: string
  /** True on sample data. */
  demo: boolean
  /** True once nothing new is to be begun. */
  isDraining: () => boolean
}

/**
 * Starts the whole product on `config.host` and `config.port`, and its metrics where the configuration says.
 *
 * @throws Refusal `port_taken` or `address_unavailable`; nothing stays open then
 */
export async function startServer(config: Config, surroundings: ServerSurroundings): Promise<StartedServer> {
  const { log, isDraining } = surroundings
  const { host, port, trustedProxies } = config
  const container = new Container({ config, version: surroundings.version, kind: 'server' })
  const closers = [() => container.close()]
  const closeAll = async (): Promise<void> => {
    for (let close = closers.pop(); close; close = closers.pop()) await close()
  }
  const reached: Reached = { baseUrl: config.baseUrl ?? '', origins: config.allowedOrigins }
  try {
    const requests = requestMeter()
    const meter = agentMeter()
    const sources = agentSources({ ...(await container.agentReads()), clock: Date.now })
    const chat = await startChat(container, { sources, meter, log, origins: () => reached.origins })
    closers.push(chat.stop)
    const { app, stored } = await openApp(container, { ...surroundings, chat, sources, requests, reached })
    const meters = [requests, meter]
    const scrapes = await listenForScrapes(config.monitoring.metrics, { ...surroundings, meters, stored })
    if (scrapes) closers.push(() => scrapes.close(0))
    const settings = listenSettings(config)
    const own = { host, port, trustedProxies, log, isDraining, requests, settings }
    const server = await listenOn(app, { ...own, ...ARRIVAL })
    tellChatStart(config, log)
    reached.origins = [...ownOrigins(server.url, config.baseUrl), ...config.allowedOrigins]
    // A wildcard address is for listening, not for links.
    reached.baseUrl ||= server.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//localhost')
    return {
      url: server.url,
      metricsUrl: scrapes && `${scrapes.url}/metrics`,
      async close(graceMs) {
        try {
          await server.close(graceMs, () => chat.agent.endTurns())
        } finally {
          await closeAll()
        }
      },
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** Where the server is reached; known once it listens. */
interface Reached {
  /** Empty before that. */
  baseUrl: string
  /** Its own and those that were named. */
  origins: readonly string[]
}

interface AppSurroundings extends ServerSurroundings {
  chat: StartedChat
  sources: AgentSources
  requests: ReturnType<typeof requestMeter>
  reached: Reached
}

/** The application, and what its metrics are read from. */
async function openApp(
  container: Container,
  { chat, sources, requests, reached, log, demo, version, isDraining }: AppSurroundings,
): Promise<{ app: ReturnType<typeof createApp>; stored: StoredMetricsPorts }> {
  const clock = Date.now
  const { config } = container
  const { trustedProxies, mcpRequestsPerMinute: requestsPerMinute } = config
  const [ledger, archive] = [await container.ledger(), await container.archive()]
  const [feed, audits] = [await container.feed(), await container.audits()]
  const checks = boundedChecks({
    ledger: () => ledger.ping(),
    archive: () => archive.ping(),
    feed: () => feed.ping(),
    state: () => chat.agent.ping(),
  })
  const served = {
    ledger,
    archive,
    year: await container.year(),
    feed,
    recommendations: await container.recommendations(),
    publishedBaseUrl: config.publishedBaseUrl,
    clock,
    log,
  }
  const readers = openReaders(served)
  const origins = (): readonly string[] => reached.origins
  const onFault = (tool: string, err: unknown): void =>
    log.error({ tool, err }, 'a tool could not read its data')
  const mcp = { sources, version, demo, origins, trustedProxies, requestsPerMinute, clock, onFault }
  const ports = {
    ...served,
    search: await container.search(),
    audits,
    agent: chat.agent,
    mcp: requestsPerMinute === 0 ? null : mcp,
    widgetUrl: config.chat.verification?.widgetUrl ?? null,
    trustedProxies,
    checks,
    isDraining,
    requests,
    demo,
    baseUrl: () => reached.baseUrl,
  }
  const budget = { ledger: chat.ledger, perDayMicroUsd: config.chat.limits.budgetPerDay }
  const stored = { readers, audits, jobs: await container.jobs(), budget, checks, clock }
  return { app: createApp(ports, readers), stored }
}

interface StartedChat {
  agent: Agent
  ledger: WatchedLedger
  /** Waits for the settlement of every turn; to be called once no turn can begin. */
  stop: () => Promise<void>
}

type ChatSurroundings = Pick<AgentPorts, 'sources' | 'meter' | 'log'> &
  Pick<AgentPorts['settings'], 'origins'>

/** @param surroundings `origins` is called once the server listens */
async function startChat(container: Container, surroundings: ChatSurroundings): Promise<StartedChat> {
  const { config } = container
  const { chat, trustedProxies } = config
  const { sources, meter, log, origins } = surroundings
  const clock = Date.now
  const ledger = watchedLedger(await container.chatLedger())
  const model = await openModel(container)
  const verifier = chat.verification && (await container.humanVerifier(chat.verification))
  const { sessionSeconds, limits, maxOutputTokens, pingMs, turnMs } = chat
  const agent = openAgent({
    settings: {
      disabled: chat.disabled,
      itemChat: !chat.itemDisabled,
      sessionSeconds,
      limits,
      maxOutputTokens,
      pingMs,
      turnMs,
      trustedProxies,
      origins,
    },
    signer: chat.sessionSecret === null ? null : sessionSigner(chat.sessionSecret),
    modelName: () => model?.name() ?? Promise.resolve(namedModel(chat.provider.model)),
    provider: providerOf(config, model),
    verification: verifier && chat.verification && { siteKey: chat.verification.siteKey, verifier },
    ledger,
    sources,
    meter,
    cache: await container.answerCache((key) => log.warn({ key }, 'a kept chat answer is damaged')),
    clock,
    randomBytes,
    server: randomBytes(8).toString('hex'),
    log,
  })
  const stopSweeping = startSweeper(ledger, clock, log, sessionSeconds)
  return {
    agent,
    ledger,
    async stop() {
      await agent.settled()
      await stopSweeping()
    },
  }
}

/** The model that is set; null when there is none, or no credential for it. */
async function openModel(container: Container): Promise<ChatModel | null> {
  const { chat, openRouterKey } = container.config
  const { model, url, key } = chat.provider
  if (model === null) return null
  if (model === 'auto') return openRouterKey === null ? null : container.autoModel(openRouterKey)
  return key === null && !isLoopbackUrl(url) ? null : container.chatModel(model)
}

/** Together with what it costs; null where that is not known. */
function providerOf({ chat, openRouterUrl }: Config, model: ChatModel | null): AgentPorts['provider'] {
  if (model === null) return null
  const { model: name, url: providerUrl, prices: configured } = chat.provider
  const prices = priceOf({ model: name ?? '', providerUrl, routerUrl: openRouterUrl, configured })
  return prices === 'unknown' ? null : { model, prices }
}

/** What a model that cannot be asked is called; `auto` is no model but a way to find one. */
function namedModel(model: string | null): string {
  return model === null || model === 'auto' ? '' : model
}

/** Prometheus waits ten seconds unless it is told otherwise. */
const SOURCE_MS = 5_000

const SCRAPE_ARRIVAL = { headersTimeoutMs: 5_000, requestTimeoutMs: 5_000 }

const SETTING = { name: 'DASH_METRICS_ADDRESS', words: 'DASH_METRICS_ADDRESS' }

interface ScrapeSurroundings {
  log: Log
  /** Release of dash. */
  version: string
  isDraining: () => boolean
  meters: ScrapePorts['meters']
  stored: StoredMetricsPorts
}

/**
 * Serves `/metrics` on a listener of its own (docs/monitoring.md); without an address nothing listens.
 *
 * @throws Refusal `port_taken` or `address_unavailable`
 */
async function listenForScrapes(
  address: ListenAddress | null,
  { log, version, isDraining, meters, stored }: ScrapeSurroundings,
): Promise<RunningServer | null> {
  if (address === null) return null
  const ofProcess = processMeter(version)
  const scrape = scraper({
    meters: [ofProcess, ...meters],
    sources: storedMetrics(stored),
    sourceMs: SOURCE_MS,
    log,
  })
  // A line for each scrape would bury those of readers.
  const quiet: Log = {
    info: () => undefined,
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  }
  try {
    const listener = await listenOn(createMetricsApp(scrape), {
      ...address,
      log: quiet,
      isDraining,
      settings: { port: SETTING, host: SETTING },
      ...SCRAPE_ARRIVAL,
    })
    return {
      ...listener,
      async close(graceMs) {
        await listener.close(graceMs)
        ofProcess.close()
      },
    }
  } catch (error) {
    ofProcess.close()
    throw error
  }
}
