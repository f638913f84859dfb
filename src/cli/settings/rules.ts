import { z } from 'zod'
import { isHttpUrl } from '../../domain/http-url.ts'
import { parseStoreUrl, toFilePath } from './store-url.ts'

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
