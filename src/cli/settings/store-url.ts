import { fileURLToPath } from 'node:url'
import { isHttpUrl } from '../../domain/http-url.ts'
import type { StoreLocation } from '../../domain/storage.ts'

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
export function parseStoreUrl(value: string): StoreUrl | string {
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
