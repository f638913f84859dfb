import { MAX_ROUNDS } from '../domain/agent/bounds.ts'
import { isLoopbackUrl, priceOf, requestShareOf, shareOf, shortestCallCost } from '../domain/agent/budget.ts'
import { ownOrigins } from '../domain/agent/chat-request.ts'
import { DAILY_LIMIT_UNTOLD } from '../domain/models/quota.ts'
import { agentSources } from '../server/agent/tool-answers.ts'
import { boundedChecks, createApp, openReaders } from '../server/app.ts'
import { listenOn } from '../server/listen.ts'
import type { RunningServer } from '../server/listen.ts'
import { agentMeter } from '../server/metrics/agent-meter.ts'
import { processMeter, requestMeter } from '../server/metrics/instruments.ts'
import { createMetricsApp, scraper, storedMetrics } from '../server/metrics/scrape.ts'
import type { ScrapePorts, StoredMetricsPorts } from '../server/metrics/scrape.ts'
import type { Log } from '../server/route.ts'
import { listenSettings } from './settings/config.ts'
import type { Config } from './settings/config.ts'
import type { ListenAddress } from './settings/rules.ts'
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

/** What keeps the chat from running, as the variables to set or to take away; empty when nothing does. */
export function chatGaps(config: Config): string[] {
  const { chat, openRouterKey, openRouterUrl: routerUrl } = config
  const { model, key, url: providerUrl, prices: configured } = chat.provider
  const gaps = chat.disabled ? ['DASH_CHAT_DISABLED'] : []
  if (chat.sessionSecret === null) gaps.push('DASH_SESSION_SECRET')
  if (model === null) return [...gaps, 'DASH_CHAT_MODEL']
  if (model === 'auto') return openRouterKey === null ? [...gaps, 'OPENROUTER_API_KEY'] : gaps
  if (key === null && !isLoopbackUrl(providerUrl)) gaps.push('OPENAI_API_KEY')
  if (priceOf({ model, providerUrl, routerUrl, configured }) === 'unknown')
    gaps.push('DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT')
  return gaps
}

/** What may hold the chat back before an operator expects it, and what to set. */
export interface ChatWarning {
  check: 'chat.budget' | 'chat.requests'
  problem: string
  mend: string
}

/** Every such thing that the configuration tells. */
export function chatWarnings(config: Config): ChatWarning[] {
  return [largeCallOf(config), requestShareIn(config)].filter((each) => each !== null)
}

/** What one address may send of the requests of an account, when the chat depends on them. */
function requestShareIn({ chat }: Config): ChatWarning | null {
  if (chat.provider.model !== 'auto') return null
  const { budgetShare } = chat.limits
  const requests = requestShareOf(DAILY_LIMIT_UNTOLD, budgetShare)
  return {
    check: 'chat.requests',
    problem:
      `with DASH_CHAT_MODEL=auto one address may send ${requests} of the ${DAILY_LIMIT_UNTOLD} requests a day ` +
      `of an account without credits (DASH_CHAT_BUDGET_SHARE=${budgetShare / 1_000_000}); a turn takes up to ${MAX_ROUNDS}`,
    mend: 'raise DASH_CHAT_BUDGET_SHARE, or buy credits at the routing service, which allow more requests a day',
  }
}

/** A call above this part of the budget, or of the share of one address, leaves room for few turns at the same time. */
const LARGE_PART_OF_BUDGET = 1 / 10
const LARGE_PART_OF_SHARE = 1 / 4

/** How the reservation of a turn compares with the budget, when it is a large part of it or of a share. */
export function largeCallOf({ chat, openRouterUrl: routerUrl }: Config): ChatWarning | null {
  const { model, url: providerUrl, prices: configured } = chat.provider
  const prices = priceOf({ model: model ?? '', providerUrl, routerUrl, configured })
  if (prices === 'unknown') return null
  const { maxOutputTokens } = chat
  const { budgetPerDay, budgetShare } = chat.limits
  const { withTools: call } = shortestCallCost({ maxOutputTokens, prices })
  const perAddress = shareOf(budgetPerDay, budgetShare)
  const fitsBudget = call <= budgetPerDay * LARGE_PART_OF_BUDGET
  if (fitsBudget && call <= perAddress * LARGE_PART_OF_SHARE) return null
  const room = Math.min(Math.floor(budgetPerDay / call), 1_000_000)
  const ofAddress = Math.min(Math.floor(perAddress / call), room)
  const remedies = [
    ...(fitsBudget ? [`DASH_CHAT_BUDGET_SHARE to at least ${neededShare(call, budgetPerDay)}`] : []),
    `DASH_CHAT_BUDGET_USD_PER_DAY to at least ${dollarsOf(neededBudget(call, budgetShare))}`,
  ]
  return {
    check: 'chat.budget',
    problem:
      `one turn with tools reserves up to ${dollarsOf(call)} of the day's ${dollarsOf(budgetPerDay)} ` +
      `(DASH_CHAT_BUDGET_USD_PER_DAY) and of the ${dollarsOf(perAddress)} of one address ` +
      `(DASH_CHAT_BUDGET_SHARE=${budgetShare / 1_000_000}): ${room} fit at once, ${ofAddress} of one address`,
    mend: `set ${remedies.join(' or ')}, or lower DASH_CHAT_MAX_OUTPUT_TOKENS`,
  }
}

/** The least budget of which a call is no large part, in whole cents. */
function neededBudget(call: number, budgetShare: number): number {
  const perBudget = call / LARGE_PART_OF_BUDGET
  const perShare = call / LARGE_PART_OF_SHARE / (budgetShare / 1_000_000)
  return Math.ceil(Math.max(perBudget, perShare) / 10_000) * 10_000
}

/** The least share of a budget of which a call is no large part, in whole hundredths. */
function neededShare(call: number, budgetPerDay: number): number {
  return Math.ceil((call / LARGE_PART_OF_SHARE / budgetPerDay) * 100) / 100
}

function dollarsOf(microUsd: number): string {
  return `$${Number((microUsd / 1_000_000).toFixed(6))}`
}

/** Logs at the start what an operator would otherwise learn from refusals. */
export function tellChatStart(config: Config, log: Log): void {
  const gaps = chatGaps(config)
  const { disabled, sessionSecret, provider } = config.chat
  // Half set up is a mistake, which a person at a terminal sees too.
  const isBegun = !disabled && [sessionSecret, provider.model, provider.key].some((each) => each !== null)
  if (gaps.length > 0) return log[isBegun ? 'warn' : 'info']({ missing: gaps }, 'the chat is off')
  for (const { problem, mend } of chatWarnings(config)) log.warn({}, `${problem}; ${mend}`)
}
