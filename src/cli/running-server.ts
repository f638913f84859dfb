import { randomBytes } from 'node:crypto'
import { CHAT_KEY_BYTES, digestOfKey, formatChatKey, sessionSigner } from '../domain/agent/credentials.ts'
import { ownOrigins } from '../domain/agent/chat-request.ts'
import type { Clock } from '../domain/ports.ts'
import type { Objects } from '../domain/year/ports.ts'
import { latestAt } from '../domain/year/chain.ts'
import { openAgent } from '../server/agent/routes.ts'
import type { Agent } from '../server/agent/routes.ts'
import { startSweeper, probedLedger } from '../server/agent/service.ts'
import type { AgentPorts } from '../server/agent/service.ts'
import { agentSources } from '../server/agent/tools.ts'
import type { AgentSources } from '../server/agent/tools.ts'
import { checksWithTimeout, createApp, openReaders } from '../server/app.ts'
import { listenOn } from '../server/listen.ts'
import type { RunningServer } from '../server/listen.ts'
import { agentMeter, processMeter, requestMeter } from '../server/metrics/instruments.ts'
import { createMetricsApp, scraper, storedMetrics } from '../server/metrics/scrape.ts'
import type { StoredMetricsPorts } from '../server/metrics/scrape.ts'
import type { Log } from '../server/route.ts'
import type { ProvedPublications } from '../server/year/proved-publications.ts'
import type { V1Ports } from '../server/v1/complete.ts'
import { dashModel, findKeyIn } from '../server/v1/dash-model.ts'
import type { AnswerAsDash, FindKey } from '../server/v1/dash-model.ts'
import { Container } from './container.ts'
import { chatSetup, logChatStart } from './settings/chat-checks.ts'
import { refuseAddress } from './settings/config.ts'
import type { Config } from './settings/config.ts'

/** Timeouts for receiving a request (docs/operations.md). */
const ARRIVAL = { headersTimeoutMs: 10_000, requestTimeoutMs: 15_000 }
const SCRAPE_ARRIVAL = { headersTimeoutMs: 5_000, requestTimeoutMs: 5_000 }

/** Timeout of one metrics source; Prometheus waits ten seconds for all by default. */
const SOURCE_MS = 5_000

export interface StartedServer {
  /** Base URL of its listener. */
  url: string
  /** URL of its metrics; null if they are off. */
  metricsUrl: string | null
  /** Lets open responses finish for `graceMs` milliseconds, cuts the others, then closes everything that was opened. */
  close(graceMs: number): Promise<void>
}

export interface ServerContext {
  log: Log
  version: string
  demo: boolean
  /** Returns true once the server must begin nothing new. */
  isDraining: () => boolean
}

interface Parts extends ServerContext {
  container: Container
  sources: AgentSources
  requests: ReturnType<typeof requestMeter>
  meter: ReturnType<typeof agentMeter>
  /** Public address of the server; until it listens, only the configured values. */
  publicAddress: { baseUrl: string; origins: readonly string[] }
}

/**
 * Starts the server on `config.host` and `config.port`, and the metrics listener if one is configured.
 *
 * @throws the refusal of an address, after everything was closed again
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
      publicAddress: { baseUrl: config.baseUrl ?? '', origins: config.allowedOrigins },
    }
    const { publicAddress, requests } = parts
    const chat = await startChat(parts)
    closers.push(chat.stop)
    const { app, stored } = await openApp(parts, chat)
    const scrapes = await listenForScrapes(parts, stored)
    if (scrapes) closers.push(() => scrapes.close(0))
    const { host, port, trustedProxies } = config
    const refuse = refuseAddress(config, 'HOST', 'PORT')
    const listenOptions = { host, port, trustedProxies, log, isDraining, requests, refuse }
    const server = await listenOn(app, { ...listenOptions, ...ARRIVAL })
    logChatStart(config, log)
    // The chat with `auto` is complete and yet off while no recommendation is stored.
    if (chatSetup(config).gaps.length === 0)
      void chat.agent.config().then(({ enabled }) => {
        if (!enabled) log.warn({}, 'the chat is off: it has no recommended model; run dash evaluate-models')
      })
    publicAddress.origins = [...ownOrigins(server.url, config.baseUrl), ...config.allowedOrigins]
    // A wildcard address is for listening, not for links.
    publicAddress.baseUrl ||= server.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//localhost')
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
  { container, sources, publicAddress, log, demo, version, isDraining }: Parts,
  chat: StartedChat,
): Promise<{ app: ReturnType<typeof createApp>; stored: StoredMetricsPorts }> {
  const clock = Date.now
  const { config } = container
  const { trustedProxies, mcpRequestsPerMinute: requestsPerMinute } = config
  const [ledger, objects] = [await container.ledger(), await container.objects()]
  const [feed, audits] = [await container.feed(), await container.audits()]
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
  const checks = checksWithTimeout({
    ledger: () => ledger.ping(),
    archive: () => checkArchive(readers.publications, objects, clock),
    feed: () => feed.ping(),
    state: () => chat.agent.ping(),
  })
  const origins = (): readonly string[] => publicAddress.origins
  const onFault = (tool: string, err: unknown): void =>
    log.error({ tool, err }, 'a tool could not read its data')
  const mcp = { sources, version, demo, origins, trustedProxies, requestsPerMinute, clock, onFault }
  const ports = {
    ...served,
    search: await container.search(),
    audits,
    agent: chat.agent,
    mcp: requestsPerMinute === 0 ? null : mcp,
    v1: config.v1 ? await v1Ports(container, chat.answerAsDash) : null,
    widgetUrl: config.chat.verification?.widgetUrl ?? null,
    embedOrigins: config.allowedOrigins,
    trustedProxies,
    checks,
    isDraining,
    demo,
    baseUrl: () => publicAddress.baseUrl,
  }
  const budget = { ledger: chat.ledger, perDayMicroUsd: config.chat.limits.budgetPerDay }
  const stored = { readers, audits, jobs: await container.jobs(), budget, checks, clock }
  return { app: createApp(ports, readers), stored }
}

/**
 * Checks what the history needs of the object store: the head that the ledger must match, and the newest publication,
 * whose bytes only the history itself reads.
 */
async function checkArchive(
  publications: ProvedPublications,
  objects: Pick<Objects, 'ping'>,
  clock: Clock,
): Promise<void> {
  const { timeline } = await publications.entries()
  await objects.ping(latestAt(timeline, clock())?.manifest.sha256)
}

async function v1Ports(container: Container, answerAsDash: AnswerAsDash | null): Promise<V1Ports> {
  const { trustedProxies, chat } = container.config
  return {
    passThrough: await container.passThrough(),
    trustedProxies,
    turnMs: chat.turnMs,
    clock: Date.now,
    ...(answerAsDash && { answerAsDash }),
  }
}

interface StartedChat {
  agent: Agent
  /** Null if `/v1` is off, or the chat is not set up. */
  answerAsDash: AnswerAsDash | null
  ledger: AgentPorts['ledger']
  /** Waits until every turn is settled; call it when no turn can begin any more. */
  stop: () => Promise<void>
}

async function startChat(parts: Parts): Promise<StartedChat> {
  const { container, sources, meter, publicAddress, demo, log } = parts
  const { config } = container
  const { chat, trustedProxies } = config
  const { sessionSecret, provider, verification, itemDisabled, ...settings } = chat
  const clock = Date.now
  const ledger = probedLedger(await container.chatLedger())
  const { hasModel, prices } = chatSetup(config)
  const model = hasModel ? await container.chatModel() : null
  // `auto` is not the name of a model.
  const named = provider.model === 'auto' ? '' : (provider.model ?? '')
  const ports: AgentPorts = {
    settings: {
      ...settings,
      itemChat: !itemDisabled,
      trustedProxies,
      origins: () => publicAddress.origins,
    },
    signer: sessionSecret === null ? null : sessionSigner(sessionSecret),
    modelName: () => model?.name() ?? Promise.resolve(named),
    provider: model === null || prices === null ? null : { model, prices, url: provider.url },
    verification: verification && {
      siteKey: verification.siteKey,
      verifier: await container.humanVerifier(verification, (err) =>
        log.warn({ err }, 'the human challenge cannot be checked'),
      ),
    },
    ledger,
    sources,
    meter,
    cache: await container.answerCache((key) => log.warn({ key }, 'a kept chat answer is damaged')),
    clock,
    randomBytes,
    server: randomBytes(8).toString('hex'),
    log,
  }
  const agent = openAgent(ports)
  const isSetUp = ports.signer !== null && ports.provider !== null
  const answerAsDash =
    config.v1 && isSetUp ? dashModel(ports, agent.handle, await keyFinder(container, demo)) : null
  const stopSweeping = startSweeper(ledger, clock, log, settings.sessionSeconds)
  return { agent, answerAsDash, ledger, stop: () => agent.settled().then(stopSweeping) }
}

/** Finds the active key of a text. In the demo, every text is the same key. */
async function keyFinder(container: Container, demo: boolean): Promise<FindKey> {
  const keys = await container.chatKeys()
  const find = findKeyIn(keys)
  if (!demo) return find
  const key = formatChatKey(randomBytes(CHAT_KEY_BYTES))
  const quota = { perDay: DEMO_KEY_QUOTA, perMinute: DEMO_KEY_QUOTA }
  await keys.create({ name: 'demo', digest: digestOfKey(key) ?? '', ...quota, createdAt: Date.now() })
  return () => find(key)
}

const DEMO_KEY_QUOTA = 1_000

/**
 * Serves `/metrics` on a separate listener (docs/monitoring.md), since every proxy would have to guard a public path; null
 * without a configured address.
 *
 * @throws the refusal of the address
 */
async function listenForScrapes(
  { container, log, version, isDraining, requests, meter }: Parts,
  stored: StoredMetricsPorts,
): Promise<RunningServer | null> {
  const address = container.config.monitoring.metrics
  if (address === null) return null
  const meters = [processMeter(version), requests, meter]
  const app = createMetricsApp(
    scraper({ meters, sources: storedMetrics(stored), sourceTimeoutMs: SOURCE_MS, log }),
  )
  // Log lines of scrapes would bury those of readers.
  const quiet = { ...log, info: (): void => undefined }
  const refuse = refuseAddress(container.config, 'DASH_METRICS_ADDRESS', 'DASH_METRICS_ADDRESS')
  return listenOn(app, { ...address, log: quiet, isDraining, refuse, ...SCRAPE_ARRIVAL })
}
