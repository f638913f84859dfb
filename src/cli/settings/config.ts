import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../../domain/refusal.ts'
import { LOG_PATH } from '../../domain/year/log/log-history.ts'
import type { RefuseAddress } from '../../server/listen.ts'
import { homeFolder } from '../process-identity.ts'
import { badValue, inEnvironment, parseEnvironment, settingLabel } from './environment.ts'
import type { OriginOf, Settings } from './environment.ts'
import { STANDARD_DATA_DIR } from './flags.ts'
import { toFilePath } from './rules.ts'

/** The configuration of all commands, read once. */
export type Config = ReturnType<typeof configOf>

/** Tokens without which a source cannot be read (docs/collecting.md, "Tokens"). */
export const REQUIRED_TOKENS: Partial<Record<LiveSourceName, readonly (keyof Config['sourceTokens'])[]>> = {
  'hype:replicate': ['replicate'],
  'hype:reddit': ['redditClientId', 'redditClientSecret'],
}

/**
 * Builds the configuration from variables.
 *
 * @param values variables by name
 * @param cwd base folder of relative paths
 * @param originOf returns the origin of a variable's value
 * @throws Refusal `configuration` with all invalid values; `usage` if a flag gave one of them
 */
export function configFrom(
  values: NodeJS.Dict<string>,
  cwd: string,
  originOf: OriginOf = inEnvironment,
): Config {
  return configOf(parseEnvironment(values, cwd, originOf), cwd, originOf)
}

/**
 * Builds the configuration from parsed settings. A secret's file may be a pipe, so it must not be read twice.
 *
 * @param cwd base folder of relative paths
 */
// oxlint-disable-next-line typescript/explicit-module-boundary-types -- Config is the return type
export const configOf = (settings: Settings, cwd: string, originOf: OriginOf = inEnvironment) => ({
  originOf,
  ...storesOf(settings, cwd),
  host: settings.HOST,
  port: settings.PORT,
  /** Public address of the server, without a trailing slash; null if it is not configured. */
  baseUrl: settings.DASH_BASE_URL ?? null,
  log: logOf(settings, cwd),
  sourceUrls: {
    hn: settings.DASH_HN_URL,
    lobsters: settings.DASH_LOBSTERS_URL,
    lesswrong: settings.DASH_LESSWRONG_URL,
    'hype:github': settings.DASH_GITHUB_URL,
    'hype:huggingface': settings.DASH_HUGGINGFACE_URL,
    'hype:replicate': settings.DASH_REPLICATE_URL,
    'hype:reddit': settings.DASH_REDDIT_URL,
  } satisfies Record<LiveSourceName, string>,
  hackerNewsSearchUrl: settings.DASH_HN_SEARCH_URL,
  sourceTokens: {
    gitHub: settings.GITHUB_TOKEN ?? null,
    huggingFace: settings.HF_TOKEN ?? null,
    replicate: settings.REPLICATE_API_TOKEN ?? null,
    redditClientId: settings.REDDIT_CLIENT_ID ?? null,
    redditClientSecret: settings.REDDIT_CLIENT_SECRET ?? null,
  },
  articles: {
    /** Fewest points of an item whose text is collected, by source. */
    minPoints: settings.DASH_ARTICLE_MIN_POINTS,
    /** Most texts collected per run. */
    perRun: settings.DASH_ARTICLE_MAX_PER_RUN,
    /** Private addresses that pages may be read from. */
    allowed: settings.DASH_ARTICLE_ALLOW_PRIVATE ?? [],
  },
  /** Requests to `/mcp` per address and minute; 0: `/mcp` is off. */
  mcpRequestsPerMinute: settings.DASH_MCP_REQUESTS_PER_MINUTE,
  v1: settings.DASH_V1,
  /** API base of the model-routing service. */
  openRouterUrl: settings.OPENROUTER_BASE_URL,
  /** Key of the routing service; null: only its catalogue is read. */
  openRouterKey: settings.OPENROUTER_API_KEY ?? null,
  /** Address of the routing service that is published with every recommendation. */
  publishedBaseUrl: settings.DASH_FREE_LLM_BASE_URL,
  /** Receiver of the changes of the free models; null: none. */
  webhook: webhookOf(settings),
  chat: chatOf(settings),
  /** Proxies whose `X-Forwarded-For` is trusted. */
  trustedProxies: settings.DASH_TRUSTED_PROXIES ?? [],
  /** Origins besides the server's own whose pages may use the chat. */
  allowedOrigins: settings.DASH_ALLOWED_ORIGINS ?? [],
  /** State folder of the user (`XDG_STATE_HOME`); files of this program are below it. */
  stateHome: stateHomeOf(settings.XDG_STATE_HOME),
  home: homeFolder(),
  logLevel: settings.DASH_LOG_LEVEL,
  drainMs: settings.DASH_DRAIN_SECONDS * 1000,
  monitoring: {
    /** Address of the metrics listener; null: off. */
    metrics: settings.DASH_METRICS_ADDRESS ?? null,
    /** URL of the job monitor, with `{job}` in place of the job's name; null: none. */
    pingUrl: settings.DASH_HEALTHCHECK_PING_URL ?? null,
  },
})

const logOf = (settings: Settings, cwd: string) => {
  const { DASH_LOG_KEY_FILE, DASH_LOG_ORIGIN, DASH_BASE_URL } = settings
  const url = DASH_BASE_URL === undefined ? null : `${DASH_BASE_URL}${LOG_PATH}`
  return {
    /** Path of the key file that signs checkpoints; null if nothing is signed. */
    keyFile: DASH_LOG_KEY_FILE === undefined ? null : resolve(cwd, DASH_LOG_KEY_FILE),
    /** Name of the log; null: neither it nor an address is set. */
    origin: DASH_LOG_ORIGIN ?? url?.replace(/^https?:\/\//i, '') ?? null,
    /** Where the log is served; null when only the listener knows. */
    url,
  }
}

const webhookOf = (settings: Settings) => {
  const { DASH_MODEL_WEBHOOK_URL: url, DASH_MODEL_WEBHOOK_SECRET: key } = settings
  const allowed = settings.DASH_MODEL_WEBHOOK_ALLOW_PRIVATE ?? []
  return url === undefined || key === undefined ? null : { url, key, allowed }
}

const storesOf = (settings: Settings, cwd: string) => {
  const dataDir = resolve(cwd, settings.DASH_DATA_DIR ?? STANDARD_DATA_DIR)
  const { DASH_DATABASE_URL: all, DASH_DATABASE_AUTH_TOKEN: authToken = null } = settings
  const databaseOf = (own: string | undefined, name: string): DatabaseLocation => {
    const url = own ?? all ?? pathToFileURL(resolve(dataDir, name)).href
    const path = toFilePath(url)
    return path === null
      ? { url, authToken }
      : { url: pathToFileURL(resolve(cwd, path)).href, authToken: null }
  }
  const { DASH_LEDGER_URL, DASH_FEED_URL, DASH_STATE_URL, DASH_STORE_URL } = settings
  const isInDataDir = (own: string | undefined): boolean => (own ?? all) === undefined
  return {
    dataDir,
    /** True if a flag or a variable names the folder: commands that only use it then never create it. */
    dataDirNamed: settings.DASH_DATA_DIR !== undefined,
    /** False if every store is elsewhere, so that no data folder is needed. */
    dataDirUsed: DASH_STORE_URL === undefined || isInDataDir(DASH_LEDGER_URL) || isInDataDir(DASH_FEED_URL),
    stateInDataDir: isInDataDir(DASH_STATE_URL),
    ledger: databaseOf(DASH_LEDGER_URL, 'ledger.db'),
    feed: databaseOf(DASH_FEED_URL, 'feed.db'),
    state: databaseOf(DASH_STATE_URL, 'state.db'),
    /** Read-only token of the libSQL server, for the chat agent; null: the general token. */
    databaseReadToken: settings.DASH_DATABASE_READ_TOKEN ?? null,
    store: storeOf(settings, dataDir, cwd),
    storeNamed: DASH_STORE_URL !== undefined,
  }
}

function storeOf(settings: Settings, dataDir: string, cwd: string): StoreLocation {
  const store = settings.DASH_STORE_URL ?? { kind: 'file', path: resolve(dataDir, 'objects') }
  if (store.kind === 'file') return { kind: 'file', path: resolve(cwd, store.path) }
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = settings
  return { ...store, accessKeyId, secretAccessKey }
}

const chatOf = (settings: Settings) => {
  const { DASH_CHAT_PRICE_INPUT: input, DASH_CHAT_PRICE_OUTPUT: output } = settings
  const { DASH_VERIFICATION_SITE_KEY: siteKey, DASH_VERIFICATION_SECRET: secret } = settings
  const { DASH_VERIFICATION_URL: url, DASH_VERIFICATION_WIDGET_URL: widgetUrl } = settings
  return {
    disabled: settings.DASH_CHAT_DISABLED,
    itemDisabled: settings.DASH_CHAT_ITEM_DISABLED,
    /** Key that signs sessions; null: sessions cannot be created. */
    sessionSecret: settings.DASH_SESSION_SECRET ?? null,
    sessionSeconds: settings.DASH_CHAT_SESSION_SECONDS,
    provider: {
      url: settings.OPENAI_BASE_URL,
      key: settings.OPENAI_API_KEY ?? null,
      /** `auto`: the current free-model recommendation, through the routing service; null: not set. */
      model: settings.DASH_CHAT_MODEL ?? null,
      /** null: unknown, so that only models known to be free may be used. */
      prices:
        input === undefined || output === undefined
          ? null
          : { input, cached: settings.DASH_CHAT_PRICE_CACHED ?? input, output },
    },
    limits: {
      messagesPerSession: settings.DASH_CHAT_MESSAGES_PER_SESSION,
      messagesPerDay: settings.DASH_CHAT_MESSAGES_PER_DAY,
      burstPerMinute: settings.DASH_CHAT_BURST_PER_MINUTE,
      minGapMs: settings.DASH_CHAT_MIN_GAP_MS,
      maxOpenTurns: settings.DASH_CHAT_MAX_STREAMS,
      budgetPerDay: settings.DASH_CHAT_BUDGET_USD_PER_DAY,
      budgetShare: settings.DASH_CHAT_BUDGET_SHARE,
    },
    maxOutputTokens: settings.DASH_CHAT_MAX_OUTPUT_TOKENS,
    pingMs: settings.DASH_CHAT_PING_MS,
    firstEventMs: settings.DASH_CHAT_FIRST_EVENT_MS,
    idleMs: settings.DASH_CHAT_IDLE_MS,
    turnMs: settings.DASH_CHAT_TURN_MS,
    /** null: visitors need not prove to be human. */
    verification: siteKey === undefined || secret === undefined ? null : { siteKey, secret, url, widgetUrl },
  }
}

/** Returns the state home; a relative path is ignored, as its specification demands. */
function stateHomeOf(named: string | undefined): string {
  return named !== undefined && isAbsolute(named) ? named : join(homeFolder(), '.local', 'state')
}

/** Label of a setting in messages: its flag, or its variable and env file. */
export function settingName({ originOf }: Pick<Config, 'originOf'>, name: string): string {
  return settingLabel(name, originOf(name))
}

/** Makes the refusal of a listening address, which names the setting to change: the value of that one is bad. */
export function refuseAddress(config: Pick<Config, 'originOf'>, host: string, port: string): RefuseAddress {
  return (code, detail, setting) => {
    const name = setting === 'host' ? host : port
    const advice = `${detail} with ${settingName(config, name)}`
    return code === 'port_taken' ? new Refusal(code, advice) : badValue(config.originOf(name), advice)
  }
}

/** Base URL of the listener of these settings. */
export function listeningUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Base URL of the server of these settings, as seen from its own machine. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  return listeningUrl({ port, host: host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host })
}

/**
 * Returns the name (origin) of the log.
 *
 * @throws Refusal `configuration` if no setting states it
 */
export function requireOrigin({ log: { origin } }: Pick<Config, 'log'>): string {
  if (origin !== null) return origin
  throw new Refusal(
    'configuration',
    'the log has no name; set DASH_BASE_URL or DASH_LOG_ORIGIN to one that never changes',
  )
}
