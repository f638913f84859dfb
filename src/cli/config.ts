import { existsSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseEnv } from 'node:util'
import type { ChatLimits, Prices } from '../domain/agent/ports.ts'
import type { MinPoints } from '../domain/feed/article-plan.ts'
import type { IpRange } from '../domain/ip-address.ts'
import { Refusal } from '../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../domain/storage.ts'
import { configurationError, parseEnvironment } from './environment.ts'
import type { LogLevel, Settings } from './environment.ts'
import { toFilePath } from './store-url.ts'

/** Everything the commands need to know, read once. */
export interface Config {
  dataDir: string
  /** True when a flag or a variable named the folder: it is then never created by a command that only uses it. */
  dataDirNamed: boolean
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
  chat: ChatConfig
  /** Proxies whose word on the caller's address is taken. */
  trustedProxies: readonly IpRange[]
  /** Origins beside the server's own whose pages may chat. */
  allowedOrigins: readonly string[]
  /** Folder of what a user's programs remember between runs; ours is below it. */
  stateHome: string
  logLevel: LogLevel
  drainMs: number
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

/** What the command line says; it wins over the environment, which wins over the env file. */
export interface ConfigFlags {
  dataDir?: string | undefined
  dotenv?: string | undefined
  host?: string | undefined
  port?: string | undefined
}

/**
 * Reads flags, environment and env file into one configuration.
 *
 * @param env the process environment
 * @param cwd folder that relative paths start from
 * @throws Refusal `configuration` naming every bad value at once
 */
export function readConfig(flags: ConfigFlags, env: NodeJS.ProcessEnv, cwd: string): Config {
  return parseSettings({ ...readDotenv(flags.dotenv, cwd), ...env, ...settingsOf(flags) }, cwd)
}

const DEFAULT_DATA_DIR = './dash-data'

/** What says where the stores are, and nothing else. */
const LOCATIONS = [
  'DASH_DATA_DIR',
  'DASH_DATABASE_URL',
  'DASH_LEDGER_URL',
  'DASH_FEED_URL',
  'DASH_STATE_URL',
  'DASH_STORE_URL',
] as const

/**
 * The configuration of another archive, which a command line names beside its own: a data folder, a database URL and a
 * store URL, or an env file that holds all of it. What is not named there is as for the command itself, but for where
 * the stores are.
 *
 * @param targets each one folder, one URL, or one env file
 * @throws Refusal `usage` when they do not say where both the ledger and the objects are, or say it twice
 */
export function readTargetConfig(
  targets: readonly string[],
  flags: ConfigFlags,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Config {
  const [first = ''] = targets
  if (targets.length === 1 && statSync(resolve(cwd, first), { throwIfNoEntry: false })?.isFile()) {
    const file = readDotenv(first, cwd)
    const isNamed = (...names: (typeof LOCATIONS)[number][]): boolean =>
      names.some((name) => Boolean(file[name]))
    if (
      isNamed('DASH_DATA_DIR') ||
      (isNamed('DASH_STORE_URL') && isNamed('DASH_DATABASE_URL', 'DASH_LEDGER_URL'))
    ) {
      return parseSettings(file, cwd)
    }
    const missing = 'DASH_DATA_DIR, or both DASH_STORE_URL and DASH_DATABASE_URL'
    throw new Refusal('usage', `--to ${first}: the env file must say where both halves go: ${missing}`)
  }
  const named: Record<string, string> = {}
  for (const target of targets) {
    const name = targetSetting(target)
    if (named[name] !== undefined)
      throw new Refusal('usage', `--to names two of a kind: ${named[name]} and ${target}`)
    named[name] = target
  }
  if (named['DASH_DATA_DIR'] === undefined && targets.length < 2) {
    throw new Refusal(
      'usage',
      `--to ${first} says where one half goes: name a database and a store, or a data folder`,
    )
  }
  const own: NodeJS.Dict<string> = { ...readDotenv(flags.dotenv, cwd), ...env }
  for (const location of LOCATIONS) delete own[location]
  return parseSettings({ ...own, ...named }, cwd)
}

function targetSetting(target: string): (typeof LOCATIONS)[number] {
  if (/^(s3|file):/.test(target)) return 'DASH_STORE_URL'
  return /^(https?|libsql):/.test(target) ? 'DASH_DATABASE_URL' : 'DASH_DATA_DIR'
}

function settingsOf({ dataDir, host, port }: ConfigFlags): NodeJS.Dict<string> {
  return {
    ...(dataDir === undefined ? {} : { DASH_DATA_DIR: dataDir }),
    ...(host === undefined ? {} : { HOST: host }),
    ...(port === undefined ? {} : { PORT: port }),
  }
}

function parseSettings(given: NodeJS.Dict<string>, cwd: string): Config {
  const settings = parseEnvironment(given, cwd)
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
      allowed: settings.DASH_ARTICLE_ALLOW_PRIVATE,
    },
    mcpRequestsPerMinute: settings.DASH_MCP_REQUESTS_PER_MINUTE,
    openRouterUrl: settings.OPENROUTER_BASE_URL,
    openRouterKey: settings.OPENROUTER_API_KEY ?? null,
    chat: chatOf(settings),
    trustedProxies: settings.DASH_TRUSTED_PROXIES,
    allowedOrigins: settings.DASH_ALLOWED_ORIGINS,
    stateHome: stateHomeOf(settings.XDG_STATE_HOME),
    logLevel: settings.DASH_LOG_LEVEL,
    drainMs: settings.DASH_DRAIN_SECONDS * 1000,
  }
}

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

/** A relative path there is none: by its specification it is ignored. */
function stateHomeOf(named: string | undefined): string {
  return named !== undefined && isAbsolute(named) ? named : join(homedir(), '.local', 'state')
}

/** Where a server with these settings listens. */
export function listeningUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function storeOf(settings: Settings, dataDir: string, cwd: string): StoreLocation {
  const store = settings.DASH_STORE_URL ?? { kind: 'file', path: resolve(dataDir, 'objects') }
  if (store.kind === 'file') return { kind: 'file', path: resolve(cwd, store.path) }
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = settings
  return { ...store, accessKeyId, secretAccessKey }
}

function readDotenv(named: string | undefined, cwd: string): NodeJS.Dict<string> {
  const path = resolve(cwd, named ?? '.env')
  if (named === undefined && !existsSync(path)) return {}
  try {
    if (!statSync(path).isFile()) throw new Error('it is not a file')
    return parseEnv(readFileSync(path, 'utf8'))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw configurationError(`the env file ${path} cannot be read (${why})`)
  }
}
