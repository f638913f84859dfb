import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import {
  OBJECT_MAX_BYTES,
  Refusal,
  StorageFault,
  errorCode,
  storageDamaged,
  storageUnavailable,
} from '../../domain/refusal.ts'
import type { StorageRefusal, StoreLocation } from '../../domain/refusal.ts'
import { openHttpClient, readBody } from '../http.ts'
import type { HttpClient, HttpResponse } from '../http.ts'

export interface S3RetryPolicy {
  connectTimeoutMs: number
  /** Time limit of one whole response, including every chunk. */
  responseTimeoutMs: number
  attempts: number
  /** Pause before the second attempt; it doubles with each further one. */
  backoffMs: number
}

export const S3_RETRY_POLICY: S3RetryPolicy = {
  connectTimeoutMs: 5_000,
  responseTimeoutMs: 30_000,
  attempts: 3,
  backoffMs: 250,
}

export interface S3Client {
  /**
   * Signs and sends a request. It is retried if the response is lost or the server is busy, so a request must be
   * safe to repeat: a read, a conditional write, or a write by the only writer.
   *
   * @throws Refusal `storage_unavailable` if the server is unreachable, the bucket is missing or the credentials
   *   are refused; `storage_damaged` for an object over the size limit; StorageFault otherwise
   */
  send(request: S3Request): Promise<S3Result>
  close(): Promise<void>
}

/** Opens connections to one bucket. The caller closes them. */
export function s3Client(location: S3Location, retryPolicy: S3RetryPolicy): S3Client {
  const http = openHttpClient({ connect: { timeout: retryPolicy.connectTimeoutMs }, connections: 8 })
  return {
    async send(request) {
      for (let attempt = 1; ; attempt += 1) {
        const response = await sendOnce(http, location, request, retryPolicy.responseTimeoutMs)
        if (!('failure' in response || isTransient(response))) return toResult(response, request, location)
        if (attempt >= retryPolicy.attempts) throw requestFault(response, request, location, attempt)
        await sleep(retryPolicy.backoffMs * 2 ** (attempt - 1))
      }
    },
    close: () => http.close(),
  }
}

async function sendOnce(
  http: HttpClient,
  location: S3Location,
  request: S3Request,
  timeoutMs: number,
): Promise<S3Response> {
  const { method, body = null } = request
  const signed = await sign(location, request)
  try {
    return await http.exchange({ ...signed, method, body, timeoutMs }, async (response) => {
      const { statusCode: status, headers } = response
      const bytes = await readComplete(response, targetName(request, location))
      const etag = headers['etag']?.toString() ?? null
      return { status, etag, body: bytes, code: status < 300 ? null : errorCodeOf(bytes) }
    })
  } catch (error) {
    if (error instanceof Refusal) throw error
    const code = errorCode(error)
    if (code !== null && UNREACHABLE.test(code))
      throw storageUnavailable(
        `the object store ${location.endpoint} cannot be reached (${code}); check DASH_STORE_URL, or the target that was given`,
        error,
      )
    return { failure: error }
  }
}

/** Error codes of connections that failed or are not trusted: an immediate retry would not help. */
const UNREACHABLE =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPROTO|UND_ERR_CONNECT_TIMEOUT|(?:ERR_TLS|ERR_SSL|CERT)_\w+|\w*(?:SELF_SIGNED_CERT|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER)\w*)$/

/** Signs a request with signature version 4 over its headers and body, with the time of this attempt. */
async function sign(
  location: S3Location,
  { method, key, query = {}, headers = {}, body }: S3Request,
): Promise<{ url: URL; headers: Record<string, string> }> {
  const path = [location.bucket, ...(key === '' ? [] : key.split('/'))].map(encodeURIComponent).join('/')
  const url = new URL(`${location.endpoint}/${path}`)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const digest = createHash('sha256')
    .update(body ?? '')
    .digest()
  const { region, accessKeyId, secretAccessKey } = location
  const signer = new AwsV4Signer({
    method,
    url: url.href,
    headers: {
      ...headers,
      'x-amz-content-sha256': digest.toString('hex'),
      ...(body === undefined ? {} : { 'x-amz-checksum-sha256': digest.toString('base64') }),
    },
    service: 's3',
    region,
    accessKeyId,
    secretAccessKey,
  })
  const signed = await signer.sign()
  return { url, headers: Object.fromEntries(signed.headers) }
}

/**
 * Reads the body, which must match its announced length.
 *
 * @throws Refusal `storage_damaged` for a body over the size limit
 */
async function readComplete({ statusCode, headers, body }: HttpResponse, name: string): Promise<Buffer> {
  const contentLength = headers['content-length'] === undefined ? null : Number(headers['content-length'])
  // Without either header, a broken connection looks like the end of the body.
  if (statusCode === 200 && contentLength === null && headers['transfer-encoding'] === undefined)
    throw new Error('the response has no content length')
  const bytes = (contentLength ?? 0) > OBJECT_MAX_BYTES ? null : await readBody(body, OBJECT_MAX_BYTES)
  if (bytes === null)
    throw storageDamaged(`${name} has more than ${OBJECT_MAX_BYTES} bytes, more than any object`)
  if (contentLength !== null && contentLength !== bytes.byteLength)
    throw new Error(`the response has ${bytes.byteLength} bytes instead of ${contentLength}`)
  return bytes
}

export type S3Location = Extract<StoreLocation, { kind: 's3' }>

interface S3Request {
  method: 'GET' | 'PUT'
  /** Key in the bucket, including the prefix; empty for the bucket itself. */
  key: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: Uint8Array
}

/**
 * The body of a success with its entity tag; `absent` if S3 itself responds that the key does not exist; `refused` if the
 * condition of a write is not met.
 */
type S3Result = { body: Buffer; etag: string | null } | 'absent' | 'refused'

/** A complete response, or the error if there is none. */
type S3Response = CompleteResponse | { failure: unknown }

interface CompleteResponse {
  status: number
  etag: string | null
  code: string | null
  body: Buffer
}

/** Returns true for conflicts of concurrent writers, busy or failing servers, and request bodies damaged in transit. */
function isTransient({ status, code }: CompleteResponse): boolean {
  if (status === 400) return /^(?:RequestTimeout|IncompleteBody|BadDigest)$/.test(code ?? '')
  return [409, 429, 500, 502, 503, 504].includes(status)
}

/**
 * Interprets a complete response.
 *
 * @throws Refusal `storage_unavailable` naming the setting to check; StorageFault for an unexpected response
 */
function toResult(response: CompleteResponse, request: S3Request, location: S3Location): S3Result {
  const { status, code, body, etag } = response
  const { endpoint, bucket, region } = location
  const isReplacement = request.headers?.['if-match'] !== undefined
  const statusMessage = `responded with ${status} ${code ?? 'without a code'} to ${request.method} ${targetName(request, location)}`
  if (status === 200 || (status === 204 && request.method === 'PUT')) return { body, etag }
  if (status === 412 && request.method === 'PUT') return 'refused'
  if (status === 404 && code === 'NoSuchKey' && request.method === 'GET') return 'absent'
  if (status === 404 && code === 'NoSuchKey' && isReplacement) return 'refused'
  if (status === 404 && (code === 'NoSuchBucket' || request.method === 'PUT'))
    throw storageUnavailable(
      `the bucket ${bucket} does not exist (the object store ${endpoint} ${statusMessage}); create it, or check DASH_STORE_URL or the target that was given`,
    )
  if (status === 404)
    throw storageUnavailable(
      `the object store ${endpoint} ${statusMessage}, which does not prove that the object is missing; check that DASH_STORE_URL is an S3 server`,
    )
  if (status === 501 && request.method === 'PUT')
    throw conditionalWriteRefusal(endpoint, isReplacement ? 'If-Match' : 'If-None-Match: *')
  if (code === 'RequestTimeTooSkewed')
    throw storageUnavailable(
      `the object store ${endpoint} ${statusMessage}; correct the clock of this machine`,
    )
  if (status === 401 || status === 403)
    throw storageUnavailable(
      `the object store ${endpoint} ${statusMessage}; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their permissions`,
    )
  if ((status >= 300 && status < 400) || code === 'AuthorizationHeaderMalformed')
    throw storageUnavailable(
      `the object store ${endpoint} ${statusMessage}; check endpoint and region (${region}) of DASH_STORE_URL`,
    )
  throw requestFault(response, request, location, 1)
}

/** Returns the Refusal for a server that ignores a condition of writes. */
export function conditionalWriteRefusal(
  endpoint: string,
  condition: 'If-None-Match: *' | 'If-Match',
): Refusal<StorageRefusal> {
  return storageUnavailable(
    `the object store ${endpoint} ignores ${condition}, which protects objects from being overwritten; use a store that supports conditional writes`,
  )
}

function requestFault(
  response: S3Response,
  request: S3Request,
  location: S3Location,
  attempts: number,
): Error {
  const target = `${request.method} ${targetName(request, location)}`
  const times = attempts === 1 ? '' : ` in ${attempts} attempts`
  if ('failure' in response) {
    const why = response.failure instanceof Error ? response.failure.message : String(response.failure)
    return new StorageFault(
      `the object store ${location.endpoint} did not respond to ${target}${times}: ${why}`,
      {
        cause: response.failure,
      },
    )
  }
  const code = response.code ?? 'without a code'
  return new StorageFault(
    `the object store ${location.endpoint} responded with ${response.status} ${code} to ${target}${times}`,
  )
}

function targetName({ key }: S3Request, { bucket }: S3Location): string {
  return `${bucket}/${key}`
}

/** One page of a listing: keys of the bucket, and the token of the next page or null. */
export interface S3Page {
  keys: string[]
  next: string | null
}

/**
 * Parses one page of ListObjectsV2. An incomplete or inconsistent page is an error: with missing keys, an auditor
 * would call an incomplete archive complete.
 *
 * @param bytes the body of the response
 * @throws StorageFault naming the problem
 */
export function parseListing(bytes: Uint8Array): S3Page {
  if (!isUtf8(bytes)) throw invalidListing('it is not UTF-8')
  const xml = new TextDecoder().decode(bytes)
  const [, inner] =
    /^\s*(?:<\?xml[^>]*\?>\s*)?<ListBucketResult(?:\s[^>]*)?>(.*)<\/ListBucketResult>\s*$/s.exec(xml) ?? [
      xml,
      null,
    ]
  if (inner === null || inner === undefined) throw invalidListing('it is not a complete ListBucketResult')
  // Comments and CDATA could contain text that looks like an element; no S3 server sends them.
  if (inner.includes('<!')) throw invalidListing('it has a comment or CDATA')
  const contents = [...inner.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, content = '']) => content)
  const rest = inner.replaceAll(/<Contents>.*?<\/Contents>/gs, '')
  if (/<(?:Contents|Key)[\s>]/.test(rest)) throw invalidListing('it has keys outside its Contents')
  const count = elementText(rest, 'KeyCount')
  if (count !== null && Number(count) !== contents.length)
    throw invalidListing(`it counts ${count} keys and has ${contents.length}`)
  const encoded = elementText(rest, 'EncodingType') === 'url'
  return {
    keys: contents.map((content) => {
      const key = elementText(content, 'Key')
      if (key === null) throw invalidListing('an entry has no key')
      return encoded ? decodeKey(key) : key
    }),
    next: nextToken(rest),
  }
}

function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '))
  } catch {
    throw invalidListing(`its key ${JSON.stringify(key)} is not URL-encoded`)
  }
}

/** Returns the code of an S3 error document (`NoSuchKey`); null if the body is not one. */
export function errorCodeOf(bytes: Uint8Array): string | null {
  const xml = new TextDecoder().decode(bytes)
  return /^\s*(?:<\?xml[^>]*\?>\s*)?<Error(?:\s[^>]*)?>.*?<Code>(\w+)<\/Code>/s.exec(xml)?.[1] ?? null
}

function nextToken(rest: string): string | null {
  const token = elementText(rest, 'NextContinuationToken')
  const truncated = elementText(rest, 'IsTruncated')
  if (truncated === 'false') return null
  if (truncated !== 'true') throw invalidListing('it does not say whether it is truncated')
  if (token === null || token === '')
    throw invalidListing('it is truncated but has no token for the next page')
  return token
}

/** Returns the text of an element that may occur at most once; null if it is absent. */
function elementText(xml: string, name: string): string | null {
  const [first, second] = [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))]
  if (second) throw invalidListing(`it has more than one ${name}`)
  return first?.[1] === undefined ? null : unescapeXml(first[1])
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Servers encode all other characters of keys as in URLs. */
function unescapeXml(text: string): string {
  return text.replaceAll(/&(\w+);/g, (reference, name: string) => ENTITIES[name] ?? reference)
}

function invalidListing(why: string): Error {
  return new StorageFault(
    `the object store returned an invalid listing: ${why}; check that DASH_STORE_URL is an S3 server`,
  )
}
