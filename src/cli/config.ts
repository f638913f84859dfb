import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseEnv } from 'node:util'
import { z } from 'zod'
import { isHttpUrl } from '../domain/http-url.ts'
import { Refusal } from '../domain/refusal.ts'

/** Everything the commands need to know, read once. */
export interface Config {
  dataDir: string
  /** True when a flag or a variable named the folder: it is then never created by a command that only uses it. */
  dataDirNamed: boolean
  /** `file:` URLs. */
  ledgerUrl: string
  feedUrl: string
  /** Folder of the object store. */
  storePath: string
  storeNamed: boolean
  host: string
  port: number
  hackerNewsUrl: string
  lobstersUrl: string
  lessWrongUrl: string
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

const fileUrl = z
  .string()
  .refine((value) => value.startsWith('file:'), 'must be a file: URL; this release has no other engine')
  .transform((value, context) => {
    const path = toFilePath(value)
    if (path === null) context.addIssue({ code: 'custom', message: 'names no path of this machine' })
    return path ?? ''
  })

const wholeNumber = (what: string, least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be ${what}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be ${what}`)

const notSupported = z.string().refine(() => false, 'is not supported by this release: leave it unset')

/** One schema for every variable (docs/configuration.md): its name, rule and default. */
const environment = z.object({
  DASH_DATA_DIR: z.string().optional(),
  DASH_DATABASE_URL: notSupported.optional(),
  DASH_LEDGER_URL: fileUrl.optional(),
  DASH_FEED_URL: fileUrl.optional(),
  DASH_STORE_URL: fileUrl.optional(),
  HOST: z.string().default('127.0.0.1'),
  PORT: wholeNumber('a port from 0 to 65535', 0, 65_535).default(3000),
  DASH_HN_URL: httpUrl.default('https://hacker-news.firebaseio.com/v0'),
  DASH_LOBSTERS_URL: httpUrl.default('https://lobste.rs'),
  DASH_LESSWRONG_URL: httpUrl.default('https://www.lesswrong.com/graphql'),
  DASH_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  DASH_DRAIN_SECONDS: wholeNumber('whole seconds from 0 to 3600', 0, 3600).default(10),
})

const DEFAULT_DATA_DIR = './dash-data'

/**
 * Reads flags, environment and env file into one configuration.
 *
 * @param env the process environment
 * @param cwd folder that relative paths start from
 * @throws Refusal `configuration` naming every bad value at once
 */
export function readConfig(flags: ConfigFlags, env: NodeJS.ProcessEnv, cwd: string): Config {
  const fromFile = readDotenv(flags.dotenv, cwd)
  const given = {
    ...fromFile,
    ...env,
    ...(flags.dataDir === undefined ? {} : { DASH_DATA_DIR: flags.dataDir }),
    ...(flags.host === undefined ? {} : { HOST: flags.host }),
    ...(flags.port === undefined ? {} : { PORT: flags.port }),
  }
  // An empty variable is an unset one: `FOO= dash …` is how shells and unit files switch a setting off.
  const values = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== ''),
  )
  const parsed = environment.safeParse(values)
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => {
      const name = issue.path.join('.')
      return `${name}=${JSON.stringify(values[name])} ${issue.message}`
    })
    throw configurationError(problems.join('; '))
  }
  const settings = parsed.data
  const dataDir = resolve(cwd, settings.DASH_DATA_DIR ?? DEFAULT_DATA_DIR)
  const inData = (name: string): string => resolve(dataDir, name)
  return {
    dataDir,
    dataDirNamed: settings.DASH_DATA_DIR !== undefined,
    ledgerUrl: pathToFileURL(resolve(cwd, settings.DASH_LEDGER_URL ?? inData('ledger.db'))).href,
    feedUrl: pathToFileURL(resolve(cwd, settings.DASH_FEED_URL ?? inData('feed.db'))).href,
    storePath: resolve(cwd, settings.DASH_STORE_URL ?? inData('objects')),
    storeNamed: settings.DASH_STORE_URL !== undefined,
    host: settings.HOST,
    port: settings.PORT,
    hackerNewsUrl: settings.DASH_HN_URL,
    lobstersUrl: settings.DASH_LOBSTERS_URL,
    lessWrongUrl: settings.DASH_LESSWRONG_URL,
    logLevel: settings.DASH_LOG_LEVEL,
    drainMs: settings.DASH_DRAIN_SECONDS * 1000,
  }
}

export function configurationError(detail: string): Refusal<'configuration'> {
  return new Refusal('configuration', detail)
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

/** Both `file:/absolute` and the shorthand `file:relative` that the URL standard has no word for; null for neither. */
function toFilePath(value: string): string | null {
  const rest = value.slice('file:'.length)
  try {
    const path = rest.startsWith('/') ? fileURLToPath(value) : decodeURIComponent(rest)
    return path === '' || path.includes('\0') ? null : path
  } catch {
    return null
  }
}
