import { ownOrigins } from '../domain/agent/origin.ts'
import { agentSources } from '../server/agent/sources.ts'
import { createApp } from '../server/app.ts'
import { boundedChecks } from '../server/health.ts'
import { listenOn } from '../server/listen.ts'
import type { RunningServer } from '../server/listen.ts'
import type { Log } from '../server/log.ts'
import { agentMeter } from '../server/metrics/agent-meter.ts'
import { requestMeter } from '../server/metrics/request-meter.ts'
import { openReaders } from '../server/readers.ts'
import { listenSettings } from './config.ts'
import type { Config } from './config.ts'
import { tellChatStart } from './chat-start.ts'
import { listenForScrapes } from './metrics-listener.ts'
import { openWiredAgent } from './wire-agent.ts'
import { openStores } from './wire.ts'

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
  const { log, demo, isDraining, version } = surroundings
  const stores = openStores(config, 'server')
  const { ledger, feed, audits } = stores
  let baseUrl = config.baseUrl ?? ''
  let origins: readonly string[] = config.allowedOrigins
  const meters = { requests: requestMeter(), agent: agentMeter() }
  const own = { clock: Date.now, log, publishedBaseUrl: config.publishedBaseUrl }
  const sources = agentSources({ ...stores.reads, clock: Date.now })
  const wired = openWiredAgent(
    config,
    { sources, recommendations: stores.recommendations },
    { ...own, origins: () => origins, meter: meters.agent },
  )
  const checks = boundedChecks({
    ledger: () => ledger.ping(),
    archive: () => stores.archive.ping(),
    feed: () => feed.ping(),
    state: () => wired.agent.ping(),
  })
  const readers = openReaders({ ...stores, ...own })
  let scrapes: RunningServer | null = null
  const closeAll = async (): Promise<void> => {
    await scrapes?.close(0)
    await wired.close()
    await stores.close()
  }
  try {
    const { requests } = meters
    const mcp = {
      sources,
      version,
      demo,
      origins: () => origins,
      trustedProxies: config.trustedProxies,
      requestsPerMinute: config.mcpRequestsPerMinute,
      clock: Date.now,
      onFault: (tool: string, err: unknown) => log.error({ tool, err }, 'a tool could not read its data'),
    }
    const app = createApp(
      {
        ...stores,
        ...own,
        agent: wired.agent,
        mcp: config.mcpRequestsPerMinute === 0 ? null : mcp,
        widgetUrl: config.chat.verification?.widgetUrl ?? null,
        trustedProxies: config.trustedProxies,
        checks,
        isDraining,
        requests,
        demo,
        baseUrl: () => baseUrl,
      },
      readers,
    )
    const budget = { ledger: wired.ledger, perDayMicroUsd: config.chat.limits.budgetPerDay }
    const stored = { readers, audits, jobs: stores.jobs, budget, checks, clock: Date.now }
    scrapes = await listenForScrapes(config.monitoring.metrics, {
      ...surroundings,
      meters: Object.values(meters),
      stored,
    })
    const { host, port, trustedProxies } = config
    const server = await listenOn(app, {
      host,
      port,
      trustedProxies,
      log,
      isDraining,
      requests,
      settings: listenSettings(config),
      ...ARRIVAL,
    })
    tellChatStart(config, log)
    origins = [...ownOrigins(server.url, config.baseUrl), ...config.allowedOrigins]
    // A wildcard address is for listening, not for links.
    if (config.baseUrl === null) baseUrl = server.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//localhost')
    return {
      url: server.url,
      metricsUrl: scrapes && `${scrapes.url}/metrics`,
      async close(graceMs) {
        try {
          await server.close(graceMs, () => wired.agent.endTurns())
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
