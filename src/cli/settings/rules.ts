import { isIP } from 'node:net'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { MinPoints } from '../../domain/feed/article.ts'
import { isKnownSource } from '../../domain/feed/source.ts'
import { parseIpRange } from '../../domain/address.ts'
import { isHttpUrl } from '../../domain/text.ts'
import type { IpRange } from '../../domain/address.ts'
import type { StoreLocation } from '../../domain/refusal.ts'
import { isKeyName } from '../../domain/year/log/signed-note.ts'

type Parsed<T> = z.ZodPipe<z.ZodString, z.ZodTransform<T, string>>

/**
 * Returns a rule that parses a text.
 *
 * @param parse returns the value, or the result of `refuse` called with the problem
 */
function parsed<T>(parse: (text: string, refuse: (why: string) => null) => T | null): Parsed<T> {
  return z.string().transform((value, context) => {
    const refuse = (message: string): null => {
      context.addIssue({ code: 'custom', message })
      return null
    }
    return parse(value, refuse) ?? z.NEVER
  })
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, '')

const list = (value: string): string[] => value.split(',').map((part) => part.trim())

export const text = z.string()

/** A path that is not meant for a shell, which would replace `~` and `$HOME`. */
export const folder = text.regex(
  /^(?!~|.*\$\{?\w)/s,
  'must not have ~ or a variable, which nothing replaces here',
)

export const hostName = text.regex(
  /^[\w.:-]+$/,
  'must be a host name or an IP address, without brackets or zone',
)

const httpUrl = parsed((value, refuse) =>
  isHttpUrl(value) ? withoutSlash(value) : refuse('must be an absolute http(s) URL'),
)

export const baseUrl = httpUrl.refine(
  (value) => !/[?#@]/.test(value),
  'must be an address without user, query or fragment',
)

/** Browsers read a backslash in an address as a slash. */
function hasUserOrFragment(value: string): boolean {
  return /^[a-z]+:[\\/]*[^\\/?#]*@/i.test(value) || value.includes('#')
}

/** URL of a service. The base of a mirror may be a query, such as `https://mirror.example/?u=https://lobste.rs`. */
export const serviceUrl = httpUrl.refine(
  (value) => !hasUserOrFragment(value),
  'must be an address without user or fragment',
)

/**
 * Address of the site, as links, headers and the name of the log repeat it: in ASCII, as browsers send it. Its pages link
 * to each other by absolute paths, so that it cannot live below a path, not even one like `/a/..` that a browser removes.
 */
export const siteUrl = baseUrl
  .refine(
    (value) => !isHttpUrl(value) || /^https?:\/\/[^/\\\s]+\/?$/i.test(value),
    'must be an address without a path, such as https://dash.example.org: the pages cannot live below one',
  )
  .transform((value) => new URL(value).origin)

export const logOrigin = text.refine(
  (value) => isKeyName(value) && !/^[a-z]+:|\/$/i.test(value),
  'must be an address without scheme, plus sign, spaces or trailing slash, such as dash.example.org/tlog/year',
)

const urlWithoutUser = (also: string): z.ZodString =>
  text.refine(
    (value) => isHttpUrl(value) && !hasUserOrFragment(value),
    `must be an absolute http(s) URL without user or fragment${also}`,
  )

/** URL of a job monitor; `{job}` stands for the name of the job. */
export const pingUrl = urlWithoutUser('; {job} in it is replaced by the job name')

/** URL of a webhook; it is used as it is, because receivers may distinguish a trailing slash. */
export const webhookUrl = urlWithoutUser('')

const WEBHOOK_KEY_BYTES = { least: 24, most: 64 }

/** The key of a secret of Standard Webhooks: `whsec_` and the key in base64. */
export const webhookSecret = parsed<Uint8Array>((value, refuse) => {
  const [, encoded = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(value) ?? []
  const key = Buffer.from(encoded, 'base64')
  const { least, most } = WEBHOOK_KEY_BYTES
  if (key.toString('base64') === encoded && key.byteLength >= least && key.byteLength <= most) return key
  return refuse(
    `must be whsec_ and ${least} to ${most} bytes in base64; create one with echo "whsec_$(openssl rand -base64 32)"`,
  )
})

/** Text that can be sent as a header value. */
export const token = text.regex(/^[\x21-\x7e]+$/, 'must be printable ASCII characters without spaces')

const SESSION_SECRET_MIN_BYTES = 32

export const sessionSecret = text.refine(
  (value) => Buffer.byteLength(value) >= SESSION_SECRET_MIN_BYTES,
  `must be at least ${SESSION_SECRET_MIN_BYTES} bytes; create one with openssl rand -base64 48`,
)

export const logLevel = z.enum(
  ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
  'must be fatal, error, warn, info, debug, trace or silent',
)

export const flag = z
  .enum(['1', 'true', '0', 'false'], 'must be 1, true, 0 or false')
  .transform((value) => value === '1' || value === 'true')

/** Returns the whole number in a text; null for other text, and outside of the bounds. */
export function parseWhole(digits: string, least: number, most: number): number | null {
  const value = /^\d{1,9}$/.test(digits) ? Number(digits) : Number.NaN
  return value >= least && value <= most ? value : null
}

/** @param what the number in messages, as in `whole milliseconds from 1 to 1000` */
export function wholeNumber(least: number, most: number, what = 'a whole number'): Parsed<number> {
  return parsed(
    (value, refuse) => parseWhole(value, least, most) ?? refuse(`must be ${what} from ${least} to ${most}`),
  )
}

const PORT_MAX = 65_535

export const port = wholeNumber(0, PORT_MAX, 'a port')

/** US dollars, as an exact number of millionths. */
export const dollars = parsed((value, refuse) => {
  const [, whole, fraction = ''] = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(value) ?? []
  if (whole === undefined) return refuse('must be US dollars below 1000000, with at most six decimals')
  return Number(whole) * 1_000_000 + Number(fraction.padEnd(6, '0'))
})

/** A share above 0 and up to 1, as an exact number of millionths. */
export const share = parsed((value, refuse) => {
  if (!/^(0\.\d{1,6}|1(\.0{1,6})?)$/.test(value))
    return refuse('must be a number above 0 and up to 1, with at most six decimals')
  return Math.round(Number(value) * 1_000_000) || refuse('must be above 0')
})

/** `<source>=<points>`, comma-separated, each source once (docs/articles.md). */
export const minPoints = parsed<MinPoints>((value, refuse) => {
  const points: Record<string, number> = {}
  for (const part of value.split(',')) {
    const [, source = '', least] = /^\s*([^\s=]+)\s*=\s*(\d{1,9})\s*$/.exec(part) ?? []
    if (!isKnownSource(source) || points[source] !== undefined)
      return refuse(
        'must be <source>=<points>, comma-separated, each source once, such as hn=100,lobsters=20',
      )
    points[source] = Number(least)
  }
  return points
})

/** Addresses and ranges (CIDR), comma-separated. */
export const addressRanges = parsed<IpRange[]>((value, refuse) => {
  const ranges = list(value).map(parseIpRange)
  if (ranges.every((range) => range !== null)) return ranges
  return refuse('must be addresses or ranges (CIDR), comma-separated, such as 10.20.0.0/16,fd00::/8')
})

/** Origins as browsers write them (`https://dash.example`), comma-separated, without wildcards. */
export const origins = parsed<readonly string[]>((value, refuse) => {
  const bad = list(value).filter(
    (origin) => !isHttpUrl(origin) || new URL(origin).origin !== origin || origin.includes('*'),
  )
  if (bad.length === 0) return list(value)
  const named = bad.map((origin) => JSON.stringify(origin)).join(', ')
  return refuse(`must be origins such as https://dash.example, comma-separated; ${named} is not an origin`)
})

/** `HOST:PORT`; port 0 selects a free port. IPv6 addresses stand in brackets. */
export const listenAddress = parsed((value, refuse) => {
  const [, bracketed, plain = '', digits] = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(value) ?? []
  const host = bracketed ?? plain
  if (host !== '' && Number(digits) <= PORT_MAX && (bracketed === undefined || isIP(bracketed) === 6))
    return { host, port: Number(digits) }
  return refuse('must be HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464')
})

/** The client of libSQL servers opens no address with a user, or with another parameter. */
const LIBSQL_SERVER =
  /^(?:https?|libsql):\/\/[^/?#@]+(?:\/[^?#]*)?(?:\?(?:(?:authToken=[^&#]*|tls=[01])?(?:&|$))*)?$/

/** A `tls` that contradicts the scheme, or `tls=0` of a `libsql:` address without a port: the client refuses both. */
const WRONG_TLS =
  /^(?:http:.*[?&]tls=1|https:.*[?&]tls=0|libsql:\/\/[^/?]*(?<!:\d+)(?=[/?]).*[?&]tls=0)(?:&|$)/

export const databaseUrl = text
  .refine((value) => {
    if (value.startsWith('file:')) return toFilePath(value) !== null
    return LIBSQL_SERVER.test(value) && isDecodable(value) && isHttpUrl(value.replace(/^libsql:/, 'https:'))
  }, 'must be a file: URL of a local path, or the libsql:, https: or http: URL of a libSQL server, without user and with no parameters but authToken and tls')
  .refine(
    (value) => !WRONG_TLS.test(value),
    'must not have tls=1 with http: or tls=0 with https:, and must name a port if it has libsql: and tls=0',
  )

export const serverUrl = databaseUrl.refine(
  (value) => !value.startsWith('file:'),
  'must be the URL of a libSQL server; for files, set DASH_LEDGER_URL, DASH_FEED_URL and DASH_STATE_URL',
)

function isDecodable(value: string): boolean {
  try {
    decodeURIComponent(value)
    return true
  } catch {
    return false
  }
}

/** Path of `file:/absolute` or of the shorthand `file:relative`, which is not a URL; null for other values. */
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

type Bucket = Omit<Extract<StoreLocation, { kind: 's3' }>, 'accessKeyId' | 'secretAccessKey'>

const DEFAULT_REGION = 'us-east-1'

/** Bucket names that every S3 server accepts and that need no escaping in a path. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/

/** Segment of a prefix that needs no escaping and cannot leave the prefix. */
const SEGMENT = /^(?!\.{1,2}$)[\w.-]+$/

/**
 * The object store of a `DASH_STORE_URL` (docs/configuration.md): `file:PATH`, where PATH may be relative, or
 * `s3://BUCKET/PREFIX?endpoint=URL&region=R`. No message repeats the value, which may hold a key.
 */
export const storeUrl = parsed<Extract<StoreLocation, { kind: 'file' }> | Bucket>((value, refuse) => {
  if (value.startsWith('file:')) {
    const path = toFilePath(value)
    return path === null ? refuse('must contain a local path after file:') : { kind: 'file', path }
  }
  const match = /^s3:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(value)
  if (!match) return refuse('must be file:PATH or s3://BUCKET/PREFIX?endpoint=URL&region=R')
  const [, bucket = '', path = '', query = ''] = match
  if (!BUCKET.test(bucket))
    return refuse(
      'must contain a bucket name that S3 allows; keys go to AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
  const segments = path.split('/').filter((segment) => segment !== '')
  if (segments.some((segment) => !SEGMENT.test(segment)))
    return refuse('must have only letters, digits, "-", "_" and "." in its prefix')
  const parameters = new URLSearchParams(query)
  if ([...parameters.keys()].some((name) => name !== 'endpoint' && name !== 'region'))
    return refuse('must have no other parameters than endpoint and region')
  const region = parameters.get('region') ?? DEFAULT_REGION
  if (!/^[a-z0-9-]+$/.test(region)) return refuse('must have a region of lower-case letters, digits and "-"')
  const endpoint = parameters.get('endpoint') ?? `https://s3.${region}.amazonaws.com`
  if (!isHttpUrl(endpoint)) return refuse('must have an absolute http(s) URL as its endpoint')
  return { kind: 's3', bucket, prefix: segments.join('/'), endpoint: withoutSlash(endpoint), region }
})

export interface Variable<Rule extends z.ZodType = z.ZodType> {
  rule: Rule
  /** Default in the form of an env file; null: unset. */
  standard: string | null
  /** Set for a secret: it is never shown, and `<NAME>_FILE` may name a file that contains it. */
  secret?: true
  /** Effect in one phrase; names of variables, commands and values are in backticks. */
  meaning: string
  /** Description of the default if it is not a constant. */
  unset?: string
  /** Section of the documents about it, such as `docs/collecting.md#tokens`. */
  page?: string
  /** Question of `dash init` about it. */
  question?: string
  /** Suggested answer to that question if it is not the default. */
  suggestion?: string
}

type More = Pick<Variable, 'page' | 'question' | 'suggestion'>

export function optional<Rule extends z.ZodType>(
  rule: Rule,
  meaning: string,
  more: More & Pick<Variable, 'unset'> = {},
): Variable<z.ZodOptional<Rule>> {
  return { rule: rule.optional(), standard: null, meaning, ...more }
}

export function secret<Rule extends z.ZodType>(
  rule: Rule,
  meaning: string,
  more: More = {},
): Variable<z.ZodOptional<Rule>> {
  return { ...optional(rule, meaning, more), secret: true }
}

/** @param standard the default as it would be written; it is parsed like every other value */
export function preset<Rule extends z.ZodType<unknown, string>>(
  rule: Rule,
  standard: z.input<Rule>,
  meaning: string,
  more: More = {},
): Variable<z.ZodPrefault<Rule>> {
  return { rule: rule.prefault(standard), standard, meaning, ...more }
}
