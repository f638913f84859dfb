import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { isHttpUrl } from '../domain/http-url.ts'
import { Refusal } from '../domain/refusal.ts'
import { addressRangesSetting, DEFAULT_MIN_POINTS, minPointsSetting } from './article-settings.ts'
import { originsSetting } from './origin-settings.ts'
import { parseStoreUrl, toFilePath } from './store-url.ts'

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

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

const flag = z
  .enum(['1', 'true', '0', 'false'], 'must be 1, true, 0 or false')
  .transform((value) => value === '1' || value === 'true')

/** US dollars as millionths, exact. */
const dollars = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6})?$/, 'must be US dollars with at most six digits behind the point')
  .transform((value) => {
    const [whole = '', fraction = ''] = value.split('.')
    return Number(whole) * 1_000_000 + Number(fraction.padEnd(6, '0'))
  })

const milliseconds = wholeNumber('whole milliseconds from 1 to 3600000', 1, 3_600_000)

const SESSION_SECRET_MIN_BYTES = 32

const sessionSecret = z
  .string()
  .refine(
    (value) => Buffer.byteLength(value) >= SESSION_SECRET_MIN_BYTES,
    `must be at least ${SESSION_SECRET_MIN_BYTES} bytes; openssl rand -base64 48 makes one`,
  )

/** What goes into a header as it is. */
const token = z.string().regex(/^[\x21-\x7e]+$/, 'must be plain characters without spaces')

/** One schema for every variable (docs/configuration.md): its name, rule and default. */
const environment = z.object({
  DASH_DATA_DIR: z.string().optional(),
  DASH_DATABASE_URL: serverUrl.optional(),
  DASH_DATABASE_AUTH_TOKEN: z.string().optional(),
  DASH_DATABASE_READ_TOKEN: z.string().optional(),
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
  OPENROUTER_BASE_URL: baseUrl.default('https://openrouter.ai/api/v1'),
  DASH_TRUSTED_PROXIES: addressRangesSetting.default([]),
  DASH_ALLOWED_ORIGINS: originsSetting.default([]),
  DASH_SESSION_SECRET: sessionSecret.optional(),
  DASH_CHAT_DISABLED: flag.default(false),
  DASH_CHAT_ITEM_DISABLED: flag.default(false),
  OPENAI_API_KEY: token.optional(),
  OPENAI_BASE_URL: baseUrl.default('https://api.openai.com/v1'),
  DASH_CHAT_MODEL: token.optional(),
  DASH_CHAT_API: z.enum(['responses', 'chat']).default('responses'),
  DASH_CHAT_PRICE_INPUT: dollars.optional(),
  DASH_CHAT_PRICE_CACHED: dollars.optional(),
  DASH_CHAT_PRICE_OUTPUT: dollars.optional(),
  DASH_CHAT_BUDGET_USD_PER_DAY: dollars.default(1_000_000),
  DASH_CHAT_MESSAGES_PER_SESSION: wholeNumber('a whole number from 0 to 1000000', 0, 1_000_000).default(20),
  DASH_CHAT_MESSAGES_PER_DAY: wholeNumber('a whole number from 0 to 1000000', 0, 1_000_000).default(60),
  DASH_CHAT_BURST_PER_MINUTE: wholeNumber('a whole number from 0 to 1000000', 0, 1_000_000).default(10),
  DASH_CHAT_MIN_GAP_MS: wholeNumber('whole milliseconds from 0 to 3600000', 0, 3_600_000).default(1_500),
  DASH_CHAT_SESSION_SECONDS: wholeNumber('whole seconds from 1 to 86400', 1, 86_400).default(1_800),
  DASH_CHAT_MAX_OUTPUT_TOKENS: wholeNumber('a whole number from 16 to 100000', 16, 100_000).default(1_000),
  DASH_CHAT_MAX_STREAMS: wholeNumber('a whole number from 1 to 100000', 1, 100_000).default(200),
  DASH_CHAT_PING_MS: milliseconds.default(15_000),
  DASH_CHAT_FIRST_EVENT_MS: milliseconds.default(20_000),
  DASH_CHAT_IDLE_MS: milliseconds.default(30_000),
  DASH_CHAT_TURN_MS: milliseconds.default(90_000),
  DASH_VERIFICATION_SITE_KEY: token.optional(),
  DASH_VERIFICATION_SECRET: token.optional(),
  DASH_VERIFICATION_URL: httpUrl.default('https://challenges.cloudflare.com/turnstile/v0/siteverify'),
  DASH_VERIFICATION_WIDGET_URL: httpUrl.default('https://challenges.cloudflare.com/turnstile/v0/api.js'),
  DASH_MCP_REQUESTS_PER_MINUTE: wholeNumber('a whole number from 0 to 1000000', 0, 1_000_000).default(120),
  XDG_STATE_HOME: z.string().optional(),
  DASH_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  DASH_DRAIN_SECONDS: wholeNumber('whole seconds from 0 to 3600', 0, 3600).default(10),
})

/** Secrets, each of which may also stand in a file that `<NAME>_FILE` names. */
const SECRETS_OF_S3 = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const
const SECRETS_OF_SOURCES = [
  'GITHUB_TOKEN',
  'HF_TOKEN',
  'REPLICATE_API_TOKEN',
  'REDDIT_CLIENT_ID',
  'REDDIT_CLIENT_SECRET',
] as const
const SECRETS_OF_CHAT = ['DASH_SESSION_SECRET', 'OPENAI_API_KEY', 'DASH_VERIFICATION_SECRET'] as const
const SECRETS: readonly string[] = [
  'DASH_DATABASE_AUTH_TOKEN',
  'DASH_DATABASE_READ_TOKEN',
  'OPENROUTER_API_KEY',
  ...SECRETS_OF_CHAT,
  ...SECRETS_OF_S3,
  ...SECRETS_OF_SOURCES,
]

/** Every variable as it was given, or its default. */
export type Settings = z.infer<typeof environment>

/**
 * Parses variables by their schema.
 *
 * @param given variables by name; what is none of ours is left alone
 * @param cwd folder that paths of secrets start from
 * @throws Refusal `configuration` naming every bad value at once
 */
export function parseEnvironment(given: NodeJS.Dict<string>, cwd: string): Settings {
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
      const shown = SECRETS.includes(name) ? '(not shown)' : withoutPassword(JSON.stringify(values[name]))
      problems.push(`${name}=${shown} ${issue.message}`)
    }
  }
  const missing = SECRETS_OF_S3.filter((name) => values[name] === undefined)
  if (values['DASH_STORE_URL']?.startsWith('s3:') && missing.length > 0) {
    problems.push(
      `DASH_STORE_URL names an S3 store, which needs ${missing.join(' and ')} (or each with _FILE)`,
    )
  }
  if (
    (values['DASH_VERIFICATION_SITE_KEY'] === undefined) !==
    (values['DASH_VERIFICATION_SECRET'] === undefined)
  ) {
    problems.push(
      'DASH_VERIFICATION_SITE_KEY and DASH_VERIFICATION_SECRET belong together: set both, or neither',
    )
  }
  if ((values['DASH_CHAT_PRICE_INPUT'] === undefined) !== (values['DASH_CHAT_PRICE_OUTPUT'] === undefined)) {
    problems.push('DASH_CHAT_PRICE_INPUT and DASH_CHAT_PRICE_OUTPUT belong together: set both, or neither')
  }
  if (!parsed.success || problems.length > 0) throw configurationError(problems.join('; '))
  return parsed.data
}

export function configurationError(detail: string): Refusal<'configuration'> {
  return new Refusal('configuration', detail)
}

/** A URL may be refused for the password it holds. */
function withoutPassword(shown: string | undefined): string | undefined {
  return shown?.replace(/(\/\/[^/?#:@]*:)[^/?#]*@/, '$1(not shown)@')
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
