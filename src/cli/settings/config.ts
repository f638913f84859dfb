import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Prices } from '../../domain/agent/model-call.ts'
import type { MinPoints } from '../../domain/feed/article.ts'
import type { IpRange } from '../../domain/address.ts'
import type { ChatLimits } from '../../domain/agent/bounds.ts'
import type { DatabaseLocation, StoreLocation } from '../../domain/refusal.ts'
import type { ListenSettings } from '../../server/listen.ts'
import { IN_ENVIRONMENT, homeFolder, settingWords } from './environment.ts'
import type { SettingOrigin, Settings } from './environment.ts'
import { toFilePath } from './rules.ts'
import type { ListenAddress, LogLevel } from './rules.ts'

/** Everything the commands need to know, read once. */
export interface Config {
  dataDir: string
  /** True when a flag or a variable named the folder: it is then never created by a command that only uses it. */
  dataDirNamed: boolean
  /** Where the value of a variable was given. */
  originOf: (name: string) => SettingOrigin
  /** False when every store is elsewhere, so that no data folder is needed. */
  dataDirUsed: boolean
  ledger: DatabaseLocation
  feed: DatabaseLocation
  state: DatabaseLocation
  /** Token of a libSQL server that may only read, for the chat agent; null: that of everything else. */
  databaseReadToken: string | null
  /** True when the state database is in the data folder. */
  stateInDataDir: boolean
  store: StoreLocation
  storeNamed: boolean
  host: string
  port: number
  /** Address the server is reached at from outside, without a slash at its end; null when only the listener knows. */
  baseUrl: string | null
  hackerNewsUrl: string
  hackerNewsSearchUrl: string
  lobstersUrl: string
  lessWrongUrl: string
  gitHubUrl: string
  huggingFaceUrl: string
  replicateUrl: string
  redditUrl: string
  /** What the sources know their reader by; null where nothing is set. */
  sourceTokens: {
    gitHub: string | null
    huggingFace: string | null
    replicate: string | null
    redditClientId: string | null
    redditClientSecret: string | null
  }
  articles: {
    /** Points from which on an item is given a text, by source. */
    minPoints: MinPoints
    /** Items of one run at most. */
    perRun: number
    /** Addresses pages may be read from although they are not public. */
    allowed: readonly IpRange[]
  }
  /** Requests to `/mcp` of one address a minute; 0: it is not offered. */
  mcpRequestsPerMinute: number
  /** API base of the model-routing service. */
  openRouterUrl: string
  /** Key of that service; null: nothing but its catalogue is asked. */
  openRouterKey: string | null
  /** Address of the routing service that is published with every recommendation. */
  publishedBaseUrl: string
  chat: ChatConfig
  /** Proxies whose word on the caller's address is taken. */
  trustedProxies: readonly IpRange[]
  /** Origins beside the server's own whose pages may chat. */
  allowedOrigins: readonly string[]
  /** Folder of what a user's programs remember between runs; ours is below it. */
  stateHome: string
  /** Folder of the user, which `~` stands for. */
  home: string
  logLevel: LogLevel
  drainMs: number
  monitoring: {
    /** Where metrics are served; null: nowhere. */
    metrics: ListenAddress | null
    /** Folder of the metrics of jobs; null: none. */
    textfileDir: string | null
    /** Address of the check that is told of jobs, `{job}` in place of the name of one; null: nobody is. */
    pingUrl: string | null
  }
}

const DEFAULT_DATA_DIR = './dash-data'

/**
 * The configuration that settings come to.
 *
 * @param cwd folder that relative paths start from
 * @param originOf where the value of a variable was given; absent: in the environment
 */
export function configOf(
  settings: Settings,
  cwd: string,
  originOf: (name: string) => SettingOrigin = () => IN_ENVIRONMENT,
): Config {
  const dataDir = resolve(cwd, settings.DASH_DATA_DIR ?? DEFAULT_DATA_DIR)
  const databaseOf = (own: string | undefined, name: string): DatabaseLocation => {
    const url = own ?? settings.DASH_DATABASE_URL ?? pathToFileURL(resolve(dataDir, name)).href
    const path = toFilePath(url)
    if (path !== null) return { url: pathToFileURL(resolve(cwd, path)).href, authToken: null }
    return { url, authToken: settings.DASH_DATABASE_AUTH_TOKEN ?? null }
  }
  return {
    dataDir,
    dataDirNamed: settings.DASH_DATA_DIR !== undefined,
    originOf,
    dataDirUsed:
      settings.DASH_STORE_URL === undefined ||
      [settings.DASH_LEDGER_URL, settings.DASH_FEED_URL].some(
        (own) => (own ?? settings.DASH_DATABASE_URL) === undefined,
      ),
    ledger: databaseOf(settings.DASH_LEDGER_URL, 'ledger.db'),
    feed: databaseOf(settings.DASH_FEED_URL, 'feed.db'),
    state: databaseOf(settings.DASH_STATE_URL, 'state.db'),
    databaseReadToken: settings.DASH_DATABASE_READ_TOKEN ?? null,
    stateInDataDir: (settings.DASH_STATE_URL ?? settings.DASH_DATABASE_URL) === undefined,
    store: storeOf(settings, dataDir, cwd),
    storeNamed: settings.DASH_STORE_URL !== undefined,
    host: settings.HOST,
    port: settings.PORT,
    baseUrl: settings.DASH_BASE_URL ?? null,
    hackerNewsUrl: settings.DASH_HN_URL,
    hackerNewsSearchUrl: settings.DASH_HN_SEARCH_URL,
    lobstersUrl: settings.DASH_LOBSTERS_URL,
    lessWrongUrl: settings.DASH_LESSWRONG_URL,
    gitHubUrl: settings.DASH_GITHUB_URL,
    huggingFaceUrl: settings.DASH_HUGGINGFACE_URL,
    replicateUrl: settings.DASH_REPLICATE_URL,
    redditUrl: settings.DASH_REDDIT_URL,
    sourceTokens: {
      gitHub: settings.GITHUB_TOKEN ?? null,
      huggingFace: settings.HF_TOKEN ?? null,
      replicate: settings.REPLICATE_API_TOKEN ?? null,
      redditClientId: settings.REDDIT_CLIENT_ID ?? null,
      redditClientSecret: settings.REDDIT_CLIENT_SECRET ?? null,
    },
    articles: {
      minPoints: settings.DASH_ARTICLE_MIN_POINTS,
      perRun: settings.DASH_ARTICLE_MAX_PER_RUN,
      allowed: settings.DASH_ARTICLE_ALLOW_PRIVATE ?? [],
    },
    mcpRequestsPerMinute: settings.DASH_MCP_REQUESTS_PER_MINUTE,
    openRouterUrl: settings.OPENROUTER_BASE_URL,
    openRouterKey: settings.OPENROUTER_API_KEY ?? null,
    publishedBaseUrl: settings.DASH_FREE_LLM_BASE_URL,
    chat: chatOf(settings),
    trustedProxies: settings.DASH_TRUSTED_PROXIES ?? [],
    allowedOrigins: settings.DASH_ALLOWED_ORIGINS ?? [],
    stateHome: stateHomeOf(settings.XDG_STATE_HOME),
    home: homeFolder(),
    logLevel: settings.DASH_LOG_LEVEL,
    drainMs: settings.DASH_DRAIN_SECONDS * 1000,
    monitoring: {
      metrics: settings.DASH_METRICS_ADDRESS ?? null,
      textfileDir:
        settings.DASH_METRICS_TEXTFILE_DIR === undefined
          ? null
          : resolve(cwd, settings.DASH_METRICS_TEXTFILE_DIR),
      pingUrl: settings.DASH_HEALTHCHECK_PING_URL ?? null,
    },
  }
}

/** What gave the value of a setting, as messages name it. */
export function settingName({ originOf }: Pick<Config, 'originOf'>, name: string): string {
  return settingWords(name, originOf(name))
}

/** The settings of the listening address, and how messages name them. */
export function listenSettings(config: Pick<Config, 'originOf'>): ListenSettings {
  const setting = (name: string): ListenSettings['host'] => ({ name, words: settingName(config, name) })
  return { host: setting('HOST'), port: setting('PORT') }
}

/** A relative path there is none: by its specification it is ignored. */
function stateHomeOf(named: string | undefined): string {
  return named !== undefined && isAbsolute(named) ? named : join(homeFolder(), '.local', 'state')
}

/** Where a server with these settings listens. */
export function listeningUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Where a server with these settings is reached on its own machine. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  return listeningUrl(host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port)
}

function storeOf(settings: Settings, dataDir: string, cwd: string): StoreLocation {
  const store = settings.DASH_STORE_URL ?? { kind: 'file', path: resolve(dataDir, 'objects') }
  if (store.kind === 'file') return { kind: 'file', path: resolve(cwd, store.path) }
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = settings
  return { ...store, accessKeyId, secretAccessKey }
}

/** What the chat agent needs to know. */
export interface ChatConfig {
  disabled: boolean
  itemDisabled: boolean
  /** Signs sessions; null: no session can be made. */
  sessionSecret: string | null
  sessionSeconds: number
  provider: {
    url: string
    key: string | null
    /** `auto`: the current free-model recommendation, through the routing service; null: none is set. */
    model: string | null
    api: 'responses' | 'chat'
    /** null: not known, so that only a model that is known to cost nothing may be asked. */
    prices: Prices | null
  }
  limits: ChatLimits
  maxOutputTokens: number
  pingMs: number
  firstEventMs: number
  idleMs: number
  turnMs: number
  /** null: nobody has to prove to be human. */
  verification: { siteKey: string; secret: string; url: string; widgetUrl: string } | null
}

/** The chat's part of the configuration. */
function chatOf(settings: Settings): ChatConfig {
  const { DASH_CHAT_PRICE_INPUT: input, DASH_CHAT_PRICE_OUTPUT: output } = settings
  const { DASH_VERIFICATION_SITE_KEY: siteKey, DASH_VERIFICATION_SECRET: secret } = settings
  return {
    disabled: settings.DASH_CHAT_DISABLED,
    itemDisabled: settings.DASH_CHAT_ITEM_DISABLED,
    sessionSecret: settings.DASH_SESSION_SECRET ?? null,
    sessionSeconds: settings.DASH_CHAT_SESSION_SECONDS,
    provider: {
      url: settings.OPENAI_BASE_URL,
      key: settings.OPENAI_API_KEY ?? null,
      model: settings.DASH_CHAT_MODEL ?? null,
      api: settings.DASH_CHAT_API,
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
    verification:
      siteKey === undefined || secret === undefined
        ? null
        : {
            siteKey,
            secret,
            url: settings.DASH_VERIFICATION_URL,
            widgetUrl: settings.DASH_VERIFICATION_WIDGET_URL,
          },
  }
}
