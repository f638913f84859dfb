import { isIP } from 'node:net'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { MinPoints } from '../../domain/feed/article.ts'
import { isKnownSource } from '../../domain/feed/source.ts'
import { isHttpUrl, parseIpRange } from '../../domain/address.ts'
import type { IpRange } from '../../domain/address.ts'
import type { StoreLocation } from '../../domain/refusal.ts'

type Bucket = Omit<Extract<StoreLocation, { kind: 's3' }>, 'accessKeyId' | 'secretAccessKey'>
type StoreUrl = Extract<StoreLocation, { kind: 'file' }> | Bucket

const DEFAULT_REGION = 'us-east-1'

/** Names a bucket may have on every S3 server; also what may stand unescaped in a path. */
const BUCKET_PATTERN = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/

/** Segments of a prefix: nothing that would have to be escaped, or that could leave the prefix. */
const SEGMENT_PATTERN = /^(?!\.{1,2}$)[\w.-]+$/

/**
 * The object store that a `DASH_STORE_URL` names (docs/configuration.md).
 *
 * @param value `file:PATH` (relative paths allowed) or `s3://BUCKET/PREFIX?endpoint=URL&region=R`
 * @returns the location, or what is wrong with the value, of which nothing is repeated: it may hold a key
 */
function parseStoreUrl(value: string): StoreUrl | string {
  if (value.startsWith('file:')) {
    const path = toFilePath(value)
    return path === null ? 'names no path of this machine' : { kind: 'file', path }
  }
  const match = /^s3:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(value)
  if (!match) return 'must be file:PATH or s3://BUCKET/PREFIX?endpoint=URL&region=R'
  const [, bucket = '', path = '', query = ''] = match
  if (!BUCKET_PATTERN.test(bucket))
    return 'names no bucket that S3 allows; its keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
  const segments = path.split('/').filter((segment) => segment !== '')
  if (segments.some((segment) => !SEGMENT_PATTERN.test(segment)))
    return 'has other characters in its prefix than letters, digits, "-", "_" and "."'
  const parameters = new URLSearchParams(query)
  if ([...parameters.keys()].some((name) => name !== 'endpoint' && name !== 'region'))
    return 'has another parameter than endpoint and region'
  const region = parameters.get('region') ?? DEFAULT_REGION
  if (!/^[a-z0-9-]+$/.test(region)) return 'names a region that cannot be one'
  const endpoint = parameters.get('endpoint') ?? `https://s3.${region}.amazonaws.com`
  if (!isHttpUrl(endpoint)) return 'must have an absolute http(s) URL as its endpoint'
  return { kind: 's3', bucket, prefix: segments.join('/'), endpoint: endpoint.replace(/\/+$/, ''), region }
}

/**
 * The path of a `file:` URL: both `file:/absolute` and the shorthand `file:relative` that the URL standard has no word
 * for; null for anything else.
 */
export function toFilePath(value: string): string | null {
  if (!value.startsWith('file:')) return null
  const rest = value.slice('file:'.length)
  try {
    const path = rest.startsWith('/') ? fileURLToPath(value) : decodeURIComponent(rest)
    return path === '' || path.includes('\0') ? null : path
  } catch {
    return null
  }
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export const text = z.string()

export const httpUrl = z
  .string()
  .refine(isHttpUrl, 'must be an absolute http(s) URL')
  .transform((value) => value.replace(/\/+$/, ''))

export const baseUrl = httpUrl.refine(
  (value) => !/[?#@]/.test(value),
  'must be an address without user, query or fragment',
)

export const databaseUrl = z.string().refine((value) => {
  if (value.startsWith('file:')) return toFilePath(value) !== null
  return /^(https?|libsql):\/\//.test(value) && isHttpUrl(value.replace(/^libsql:/, 'https:'))
}, 'must be a file: URL that names a path of this machine, or the libsql:, https: or http: URL of a libSQL server')

export const serverUrl = databaseUrl.refine(
  (value) => !value.startsWith('file:'),
  'must be a libSQL server, which holds every database; DASH_LEDGER_URL, DASH_FEED_URL and DASH_STATE_URL each name a file',
)

export const storeUrl = z.string().transform((value, context) => {
  const parsed = parseStoreUrl(value)
  if (typeof parsed !== 'string') return parsed
  context.addIssue({ code: 'custom', message: parsed })
  return z.NEVER
})

/** @param unit what is counted, as `milliseconds` in `whole milliseconds from 1 to 1000` */
export const wholeNumber = (
  least: number,
  most: number,
  unit?: string,
): z.ZodPipe<z.ZodString, z.ZodTransform<number, string>> => {
  const message = `must be ${unit === undefined ? 'a whole number' : `whole ${unit}`} from ${least} to ${most}`
  return z
    .string()
    .regex(/^\d{1,9}$/, message)
    .transform(Number)
    .refine((value) => value >= least && value <= most, message)
}

export const port = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a port from 0 to 65535')
  .transform(Number)
  .refine((value) => value <= 65_535, 'must be a port from 0 to 65535')

export const flag = z
  .enum(['1', 'true', '0', 'false'], 'must be 1, true, 0 or false')
  .transform((value) => value === '1' || value === 'true')

/** US dollars as millionths, exact. */
export const dollars = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6})?$/, 'must be US dollars with at most six digits behind the point')
  .transform((value) => {
    const [whole = '', fraction = ''] = value.split('.')
    return Number(whole) * 1_000_000 + Number(fraction.padEnd(6, '0'))
  })

/** A share above 0 and up to 1, as millionths, exact. */
export const share = z
  .string()
  .regex(/^(0\.\d{1,6}|1(\.0{1,6})?)$/, 'must be a number above 0 and up to 1, with at most six decimals')
  .transform((value) => Math.round(Number(value) * 1_000_000))
  .refine((value) => value > 0, 'must be above 0')

const SESSION_SECRET_MIN_BYTES = 32

export const sessionSecret = z
  .string()
  .refine(
    (value) => Buffer.byteLength(value) >= SESSION_SECRET_MIN_BYTES,
    `must be at least ${SESSION_SECRET_MIN_BYTES} bytes; openssl rand -base64 48 makes one`,
  )

/** What goes into a header as it is. */
export const token = z.string().regex(/^[\x21-\x7e]+$/, 'must be plain characters without spaces')

export const logLevel = z.enum(LOG_LEVELS)

/** Groups of variables, in the order in which pages and files show them. */
export const GROUPS = {
  stores: 'Stores',
  server: 'Server',
  sources: 'Sources',
  articles: 'Article texts',
  models: 'Free models',
  chat: 'Chat',
  'chat-limits': 'Limits of the chat',
  verification: 'Human verification',
  monitoring: 'Monitoring',
  program: 'The program itself',
} as const

/** What a person is told of a variable. */
interface About {
  group: keyof typeof GROUPS
  /** What it does, in one phrase; names of variables, commands and values between backticks. */
  meaning: string
  /** What holds while nothing is set, where that is not simply nothing. */
  unset?: string
  /** True for what may also stand in a file that `<NAME>_FILE` names, and is never shown. */
  secret?: true
  /** The flag that wins over it. */
  flag?: string
  /** Place in the documents that says more, as `docs/collecting.md#tokens`. */
  page?: string
}

/** One variable of the environment: its rule, and what a person is told of it. */
export interface Variable<Rule extends z.ZodType = z.ZodType> extends About {
  rule: Rule
  /** The default as it would be written; null: unset. */
  standard: string | null
}

/** A variable that may be left unset. */
export function optional<Rule extends z.ZodType>(
  rule: Rule,
  about: About,
): Variable<z.ZodOptional<Rule>> & { standard: null } {
  return { ...about, rule: rule.optional(), standard: null }
}

/**
 * A variable with a default.
 *
 * @param standard the default as it would be written; it is held to the rule like every other value
 */
export function defaulted<Rule extends z.ZodType<unknown, string>>(
  rule: Rule,
  standard: z.input<Rule>,
  about: Omit<About, 'unset' | 'secret'>,
): Variable<z.ZodPrefault<Rule>> {
  return { ...about, rule: rule.prefault(standard), standard }
}

/** `<source>=<points>`, comma-separated, each source once (docs/articles.md). */
export const minPointsSetting = z.string().transform((value, context): MinPoints => {
  const points: Record<string, number> = {}
  for (const part of value.split(',')) {
    const [, source = '', least] = /^\s*([^\s=]+)\s*=\s*(\d{1,9})\s*$/.exec(part) ?? []
    if (!isKnownSource(source) || points[source] !== undefined) {
      const message = 'must be <source>=<points>, comma-separated, each source once, as in hn=100,lobsters=20'
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
    points[source] = Number(least)
  }
  return points
})

/** Addresses and ranges (CIDR), comma-separated. */
export const addressRangesSetting = z.string().transform((value, context): IpRange[] => {
  const ranges = value.split(',').map((part) => parseIpRange(part.trim()))
  if (ranges.every((range) => range !== null)) return ranges
  const message = 'must be addresses or ranges (CIDR), comma-separated, as in 10.20.0.0/16,fd00::/8'
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

/** Where a listener listens. */
export interface ListenAddress {
  host: string
  /** 0 takes a free port. */
  port: number
}

const ADDRESS = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i

/** `HOST:PORT`; an IPv6 address stands in brackets. */
export const listenAddressSetting = z.string().transform((value, context): ListenAddress => {
  const [, bracketed, plain = '', digits] = ADDRESS.exec(value) ?? []
  const host = bracketed ?? plain
  const number = Number(digits)
  if (host !== '' && number <= 65_535 && (bracketed === undefined || isIP(bracketed) === 6))
    return { host, port: number }
  context.addIssue({
    code: 'custom',
    message: 'must be HOST:PORT, as in 127.0.0.1:9464 or [::1]:9464',
  })
  return z.NEVER
})

/** Address of a check; `{job}` stands for the job. */
export const pingUrlSetting = z
  .string()
  .refine(
    (value) => isHttpUrl(value) && !/[#@]/.test(value),
    'must be an absolute http(s) URL without user or fragment; {job} in it stands for the name of the job',
  )

/** Origins as browsers write them (`https://dash.example`, `http://localhost:8080`), comma-separated. */
export const originsSetting = z.string().transform((value, context): readonly string[] => {
  const origins = value.split(',').map((part) => part.trim())
  const bad = origins.filter((origin) => !isHttpUrl(origin) || new URL(origin).origin !== origin)
  if (bad.length > 0) {
    const named = bad.map((origin) => JSON.stringify(origin)).join(', ')
    context.addIssue({
      code: 'custom',
      message: `must be origins as a browser sends them, such as https://dash.example, comma-separated: not ${named}`,
    })
  }
  return origins
})
