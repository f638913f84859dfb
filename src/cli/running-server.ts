import { randomBytes } from 'node:crypto'
import { ownOrigins } from '../domain/agent/chat-request.ts'
import { sessionSigner } from '../domain/agent/token.ts'
import { openAgent } from '../server/agent/routes.ts'
import type { Agent } from '../server/agent/routes.ts'
import { startSweeper, watchedLedger } from '../server/agent/service.ts'
import type { WatchedLedger } from '../server/agent/service.ts'
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
import { chatSetup, logChatStart } from './settings/chat-checks.ts'
import { listenSettings } from './settings/config.ts'
import type { Config } from './settings/config.ts'

/** Times a request may take to arrive (docs/operations.md). */
const ARRIVAL = { headersTimeoutMs: 10_000, requestTimeoutMs: 15_000 }
const SCRAPE_ARRIVAL = { headersTimeoutMs: 5_000, requestTimeoutMs: 5_000 }

/** Prometheus waits ten seconds by default. */
const SOURCE_MS = 5_000

/** A server that responds. */
export interface StartedServer {
  /** Where it listens. */
  url: string
  /** Where its metrics are; null: nowhere. */
  metricsUrl: string | null
  /** Lets open answers finish for `graceMs`, ends what is left of them, then closes everything that was opened. */
  close(graceMs: number): Promise<void>
}

export interface ServerContext {
  log: Log
  /** Release of dash. */
  version: string
  /** True on sample data. */
  demo: boolean
  /** True once nothing new is to be begun. */
  isDraining: () => boolean
}

interface Parts extends ServerContext {
  container: Container
  sources: AgentSources
  requests: ReturnType<typeof requestMeter>
  meter: ReturnType<typeof agentMeter>
  /** Where the server is reached; empty, but for origins that were named, until it listens. */
  reached: { baseUrl: string; origins: readonly string[] }
}

/**
 * Starts the whole product on `config.host` and `config.port`, and its metrics where the configuration says.
 *
 * @throws Refusal `port_taken` or `address_unavailable`; nothing stays open then
 */
export async function startServer(config: Config, context: ServerContext): Promise<StartedServer> {
  const { log, version, isDraining } = context
  const container = new Container({ config, version, kind: 'server' })
  const closers: (() => unknown)[] = [() => container.close()]
  const closeAll = async (): Promise<void> => {
    for (let close = closers.pop(); close; close = closers.pop()) await close()
  }
  try {
    const parts: Parts = {
      ...context,
      container,
      sources: agentSources({ ...(await container.agentReads()), clock: Date.now }),
      requests: requestMeter(),
      meter: agentMeter(),
      reached: { baseUrl: config.baseUrl ?? '', origins: config.allowedOrigins },
    }
    const { reached, requests } = parts
    const chat = await startChat(parts)
    closers.push(chat.stop)
    const { app, stored } = await openApp(parts, chat)
    const scrapes = await listenForScrapes(parts, stored)
    if (scrapes) closers.push(() => scrapes.close(0))
    const { host, port, trustedProxies } = config
    const settings = listenSettings(config)
    const own = { host, port, trustedProxies, log, isDraining, requests, settings }
    const server = await listenOn(app, { ...own, ...ARRIVAL })
    logChatStart(config, log)
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

async function openApp(
  { container, sources, reached, log, demo, version, isDraining }: Parts,
  chat: StartedChat,
): Promise<{ app: ReturnType<typeof createApp>; stored: StoredMetricsPorts }> {
  const clock = Date.now
  const { config } = container
  const { trustedProxies, mcpRequestsPerMinute: requestsPerMinute } = config
  const [ledger, objects] = [await container.ledger(), await container.objects()]
  const [feed, audits] = [await container.feed(), await container.audits()]
  const checks = boundedChecks({
    ledger: () => ledger.ping(),
    archive: () => objects.ping(),
    feed: () => feed.ping(),
    state: () => chat.agent.ping(),
  })
  const served = {
    ledger,
    objects,
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

async function startChat({ container, sources, meter, reached, log }: Parts): Promise<StartedChat> {
  const { config } = container
  const { chat, trustedProxies } = config
  const { sessionSeconds, limits, maxOutputTokens, pingMs, turnMs, verification } = chat
  const clock = Date.now
  const ledger = watchedLedger(await container.chatLedger())
  const { hasModel, prices } = chatSetup(config)
  const model = hasModel ? await container.chatModel() : null
  // `auto` is no model but a way to find one.
  const named = chat.provider.model === 'auto' ? '' : (chat.provider.model ?? '')
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
      origins: () => reached.origins,
    },
    signer: chat.sessionSecret === null ? null : sessionSigner(chat.sessionSecret),
    modelName: () => model?.name() ?? Promise.resolve(named),
    provider: model === null || prices === null ? null : { model, prices },
    verification: verification && {
      siteKey: verification.siteKey,
      verifier: await container.humanVerifier(verification),
    },
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
  return { agent, ledger, stop: () => agent.settled().then(stopSweeping) }
}

const METRICS_SETTING = { name: 'DASH_METRICS_ADDRESS', words: 'DASH_METRICS_ADDRESS' }

/**
 * Serves `/metrics` on a listener of its own (docs/monitoring.md); without an address nothing listens.
 *
 * @throws Refusal `port_taken` or `address_unavailable`
 */
async function listenForScrapes(
  { container, log, version, isDraining, requests, meter }: Parts,
  stored: StoredMetricsPorts,
): Promise<RunningServer | null> {
  const address = container.config.monitoring.metrics
  if (address === null) return null
  const ofProcess = processMeter(version)
  const meters: ScrapePorts['meters'] = [ofProcess, requests, meter]
  const app = createMetricsApp(scraper({ meters, sources: storedMetrics(stored), sourceMs: SOURCE_MS, log }))
  // A line for each scrape would bury those of readers.
  const quiet = { ...log, info: (): void => undefined }
  const settings = { port: METRICS_SETTING, host: METRICS_SETTING }
  try {
    const listener = await listenOn(app, { ...address, log: quiet, isDraining, settings, ...SCRAPE_ARRIVAL })
    return { ...listener, close: (graceMs) => listener.close(graceMs).finally(() => ofProcess.close()) }
  } catch (error) {
    ofProcess.close()
    throw error
  }
}
