import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseEnv } from 'node:util'
import { z } from 'zod'
import type { MinPoints } from '../domain/feed/article-plan.ts'
import { isHttpUrl } from '../domain/http-url.ts'
import type { IpRange } from '../domain/ip-address.ts'
import { Refusal } from '../domain/refusal.ts'
import type { DatabaseLocation, StoreLocation } from '../domain/storage.ts'
import { addressRangesSetting, DEFAULT_MIN_POINTS, minPointsSetting } from './article-settings.ts'
import { parseStoreUrl, toFilePath } from './store-url.ts'

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
  /** API base of the model-routing service. */
  openRouterUrl: string
  /** Key of that service; null: nothing but its catalogue is asked. */
  openRouterKey: string | null
  logLevel: LogLevel
  drainMs: number
}

/** What the command line says; it wins over the environment, which wins over the env file. */
export interface ConfigFlags {
  dataDir?: string | undefined
  dotenv?: string | undefined
  host?: string | undefined
  port?: string | undefined
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
type LogLevel = (typeof LOG_LEVELS)[number]

const httpUrl = z
  .string()
  .refine(isHttpUrl, 'must be an absolute http(s) URL')
  .transform((value) => value.replace(/\/+$/, ''))

const baseUrl = httpUrl.refine(
  (value) => !/[?#@]/.test(value),
  'must be an address without user, query or fragment',
)

const databaseUrl = z.string().refine((value) => {
  if (value.startsWith('file:')) return toFilePath(value) !== null
  return /^(https?|libsql):\/\//.test(value) && isHttpUrl(value.replace(/^libsql:/, 'https:'))
}, 'must be a file: URL that names a path of this machine, or the libsql:, https: or http: URL of a libSQL server')

const serverUrl = databaseUrl.refine(
  (value) => !value.startsWith('file:'),
  'must be a libSQL server, which holds every database; DASH_LEDGER_URL, DASH_FEED_URL and DASH_STATE_URL each name a file',
)

const storeUrl = z.string().transform((value, context) => {
  const parsed = parseStoreUrl(value)
  if (typeof parsed !== 'string') return parsed
  context.addIssue({ code: 'custom', message: parsed })
  return z.NEVER
})

const wholeNumber = (what: string, least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be ${what}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be ${what}`)

/** What goes into a header as it is. */
const token = z.string().regex(/^[\x21-\x7e]+$/, 'must be plain characters without spaces')

/** One schema for every variable (docs/configuration.md): its name, rule and default. */
const environment = z.object({
  DASH_DATA_DIR: z.string().optional(),
  DASH_DATABASE_URL: serverUrl.optional(),
  DASH_DATABASE_AUTH_TOKEN: z.string().optional(),
  DASH_LEDGER_URL: databaseUrl.optional(),
  DASH_FEED_URL: databaseUrl.optional(),
  DASH_STATE_URL: databaseUrl.optional(),
  DASH_STORE_URL: storeUrl.optional(),
  AWS_ACCESS_KEY_ID: z.string().optional(),
  AWS_SECRET_ACCESS_KEY: z.string().optional(),
  HOST: z.string().default('127.0.0.1'),
  PORT: wholeNumber('a port from 0 to 65535', 0, 65_535).default(3000),
  DASH_BASE_URL: baseUrl.optional(),
  DASH_HN_URL: httpUrl.default('https://hacker-news.firebaseio.com/v0'),
  DASH_HN_SEARCH_URL: httpUrl.default('https://hn.algolia.com/api/v1'),
  DASH_LOBSTERS_URL: httpUrl.default('https://lobste.rs'),
  DASH_LESSWRONG_URL: httpUrl.default('https://www.lesswrong.com/graphql'),
  DASH_GITHUB_URL: httpUrl.default('https://api.github.com'),
  DASH_HUGGINGFACE_URL: httpUrl.default('https://huggingface.co/api'),
  DASH_REPLICATE_URL: httpUrl.default('https://api.replicate.com/v1'),
  DASH_REDDIT_URL: httpUrl.default('https://www.reddit.com'),
  GITHUB_TOKEN: token.optional(),
  HF_TOKEN: token.optional(),
  REPLICATE_API_TOKEN: token.optional(),
  REDDIT_CLIENT_ID: token.optional(),
  REDDIT_CLIENT_SECRET: token.optional(),
  DASH_ARTICLE_MIN_POINTS: minPointsSetting.default(DEFAULT_MIN_POINTS),
  DASH_ARTICLE_MAX_PER_RUN: wholeNumber('a whole number from 0 to 10000', 0, 10_000).default(200),
  DASH_ARTICLE_ALLOW_PRIVATE: addressRangesSetting.default([]),
  OPENROUTER_API_KEY: token.optional(),
  OPENROUTER_BASE_URL: httpUrl.default('https://openrouter.ai/api/v1'),
  DASH_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  DASH_DRAIN_SECONDS: wholeNumber('whole seconds from 0 to 3600', 0, 3600).default(10),
})

const DEFAULT_DATA_DIR = './dash-data'

/** Secrets, each of which may also stand in a file that `<NAME>_FILE` names. */
const SECRETS_OF_S3 = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const
const SECRETS_OF_SOURCES = [
  'GITHUB_TOKEN',
  'HF_TOKEN',
  'REPLICATE_API_TOKEN',
  'REDDIT_CLIENT_ID',
  'REDDIT_CLIENT_SECRET',
] as const
const SECRETS: readonly string[] = [
  'DASH_DATABASE_AUTH_TOKEN',
  'OPENROUTER_API_KEY',
  ...SECRETS_OF_S3,
  ...SECRETS_OF_SOURCES,
]

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
  // An empty variable is an unset one: `FOO= dash …` is how shells and unit files switch a setting off.
  const named = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== ''),
  )
  const problems: string[] = []
  const values = { ...named, ...readSecretFiles(named, cwd, problems) }
  const parsed = environment.safeParse(values)
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = issue.path.join('.')
      const shown = SECRETS.includes(name) ? '(not shown)' : JSON.stringify(values[name])
      problems.push(`${name}=${shown} ${issue.message}`)
    }
  }
  const missing = SECRETS_OF_S3.filter((name) => values[name] === undefined)
  if (values['DASH_STORE_URL']?.startsWith('s3:') && missing.length > 0) {
    problems.push(
      `DASH_STORE_URL names an S3 store, which needs ${missing.join(' and ')} (or each with _FILE)`,
    )
  }
  if (!parsed.success || problems.length > 0) throw configurationError(problems.join('; '))
  const settings = parsed.data
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
    openRouterUrl: settings.OPENROUTER_BASE_URL,
    openRouterKey: settings.OPENROUTER_API_KEY ?? null,
    logLevel: settings.DASH_LOG_LEVEL,
    drainMs: settings.DASH_DRAIN_SECONDS * 1000,
  }
}

/** Where a server with these settings listens. */
export function listeningUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function storeOf(settings: z.infer<typeof environment>, dataDir: string, cwd: string): StoreLocation {
  const store = settings.DASH_STORE_URL ?? { kind: 'file', path: resolve(dataDir, 'objects') }
  if (store.kind === 'file') return { kind: 'file', path: resolve(cwd, store.path) }
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = settings
  return { ...store, accessKeyId, secretAccessKey }
}

export function configurationError(detail: string): Refusal<'configuration'> {
  return new Refusal('configuration', detail)
}

/** The secrets that files hold, without the newline at their end. */
function readSecretFiles(
  values: Readonly<Record<string, string | undefined>>,
  cwd: string,
  problems: string[],
): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const name of SECRETS) {
    const path = values[`${name}_FILE`]
    if (path === undefined) continue
    if (values[name] !== undefined) {
      problems.push(`${name} and ${name}_FILE are both set: leave one of them out`)
      continue
    }
    try {
      const secret = readFileSync(resolve(cwd, path), 'utf8').replace(/\r?\n$/, '')
      if (secret === '') problems.push(`${name}_FILE=${JSON.stringify(path)} is empty`)
      else secrets[name] = secret
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      problems.push(`${name}_FILE=${JSON.stringify(path)} cannot be read (${why})`)
    }
  }
  return secrets
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
