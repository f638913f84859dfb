import { ownOrigins } from '../domain/agent/origin.ts'
import { agentSources } from '../server/agent/sources.ts'
import { createApp } from '../server/app.ts'
import { listenOn } from '../server/listen.ts'
import type { Log } from '../server/log.ts'
import type { Config } from './config.ts'
import { tellChatStart } from './chat-start.ts'
import { openWiredAgent } from './wire-agent.ts'
import { openStores } from './wire.ts'

/** Times a request may take to arrive (docs/operations.md). */
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000

/** A server that answers. */
export interface StartedServer {
  /** Where it listens. */
  url: string
  /** Lets open answers finish for `graceMs`, then cuts what is left and ends everything that was opened. */
  close(graceMs: number): Promise<void>
}

export interface ServerSurroundings {
  log: Log
  /** True on sample data. */
  demo: boolean
  /** True once nothing new is to be begun. */
  isDraining: () => boolean
  /** The release of the product. */
  version: string
}

/**
 * Starts the whole product on `config.host` and `config.port`.
 *
 * @throws Refusal `port_taken` or `address_unavailable`; nothing stays open then
 */
export async function startServer(config: Config, surroundings: ServerSurroundings): Promise<StartedServer> {
  const { log, demo, isDraining, version } = surroundings
  const stores = openStores(config, 'server')
  const { ledger, archive, year, feed, live, search, recommendations, audits } = stores
  let baseUrl = config.baseUrl ?? ''
  let origins: readonly string[] = config.allowedOrigins
  const sources = agentSources({ ...stores.reads, clock: Date.now })
  const wired = openWiredAgent(
    config,
    { sources, recommendations },
    { clock: Date.now, log, origins: () => origins },
  )
  const closeAll = async (): Promise<void> => {
    await wired.close()
    await stores.close()
  }
  const checks = {
    ledger: () => ledger.ping(),
    archive: () => archive.ping(),
    feed: () => feed.ping(),
    state: () => wired.ping(),
  }
  try {
    const app = createApp({
      ledger,
      archive,
      year,
      live,
      search,
      recommendations,
      agent: wired.agent,
      mcp:
        config.mcpRequestsPerMinute === 0
          ? null
          : {
              sources,
              version,
              demo,
              origins: () => origins,
              trustedProxies: config.trustedProxies,
              requestsPerMinute: config.mcpRequestsPerMinute,
              clock: Date.now,
              onFault: (tool, err) => log.error({ tool, err }, 'a tool could not read its data'),
            },
      widgetUrl: config.chat.verification?.widgetUrl ?? null,
      audits,
      clock: Date.now,
      log,
      checks,
      isDraining,
      demo,
      baseUrl: () => baseUrl,
    })
    const { host, port } = config
    const timeouts = { headersTimeoutMs: HEADERS_TIMEOUT_MS, requestTimeoutMs: REQUEST_TIMEOUT_MS }
    const server = await listenOn(app, { host, port, log, isDraining, ...timeouts })
    tellChatStart(config, log)
    origins = [...ownOrigins(server.url, config.baseUrl), ...config.allowedOrigins]
    // A wildcard address is for listening, not for links.
    if (config.baseUrl === null) baseUrl = server.url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//localhost')
    return {
      url: server.url,
      async close(graceMs) {
        try {
          await server.close(graceMs)
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
