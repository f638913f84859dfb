import type { Refusal } from '../../domain/refusal.ts'
import { StorageFault, storageUnavailable } from '../../domain/storage.ts'
import type { StorageRefusal, StoreLocation } from '../../domain/storage.ts'

export type S3Location = Extract<StoreLocation, { kind: 's3' }>

export interface S3Request {
  method: 'GET' | 'PUT'
  /** Key in the bucket, prefix included; empty for the bucket itself. */
  key: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: Uint8Array
}

/** Where a request ended: done, nothing there (of which S3 itself gave word), or refused because something is there. */
export type S3Answer = { outcome: 'done'; body: Buffer } | { outcome: 'absent' } | { outcome: 'exists' }

/** What came back: a whole reply with S3's own code for an error, or the reason why there is none. */
export type S3Reply = WholeReply | { lost: unknown }

interface WholeReply {
  status: number
  code: string | null
  body: Buffer
}

/** Conflicts of concurrent writers, busy and broken servers, and bodies that were lost on their way there. */
export function isTransient({ status, code }: WholeReply): boolean {
  if (status === 400) return /^(?:RequestTimeout|IncompleteBody|BadDigest)$/.test(code ?? '')
  return [409, 429, 500, 502, 503, 504].includes(status)
}

/**
 * What a whole reply says.
 *
 * @throws Refusal `storage_unavailable` naming the setting to look at, or a fault for what no S3 server should say
 */
export function answerOf(reply: WholeReply, asked: S3Request, location: S3Location): S3Answer {
  const { status, code, body } = reply
  const { endpoint, bucket, region } = location
  const said = `answered ${status} ${code ?? 'without a code'} to ${asked.method} ${nameOf(asked, location)}`
  if (status === 200 || (status === 204 && asked.method === 'PUT')) return { outcome: 'done', body }
  if (status === 412 && asked.method === 'PUT') return { outcome: 'exists' }
  if (status === 404 && code === 'NoSuchKey' && asked.method === 'GET') return { outcome: 'absent' }
  if (status === 404 && (code === 'NoSuchBucket' || asked.method === 'PUT'))
    throw storageUnavailable(
      `the bucket ${bucket} is not there (the object store ${endpoint} ${said}): create it, or check DASH_STORE_URL`,
    )
  if (status === 404)
    throw storageUnavailable(
      `the object store ${endpoint} ${said}, which proves nothing absent: check that DASH_STORE_URL names an S3 server`,
    )
  if (status === 501 && asked.method === 'PUT') throw overwrites(endpoint)
  if (code === 'RequestTimeTooSkewed')
    throw storageUnavailable(`the object store ${endpoint} ${said}: set this machine's clock`)
  if (status === 401 || status === 403)
    throw storageUnavailable(
      `the object store ${endpoint} ${said}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they permit`,
    )
  if ((status >= 300 && status < 400) || code === 'AuthorizationHeaderMalformed')
    throw storageUnavailable(
      `the object store ${endpoint} ${said}: check endpoint and region (${region}) of DASH_STORE_URL`,
    )
  throw noAnswer(reply, asked, location, 1)
}

/** The refusal of a server that cannot keep objects from being overwritten. */
export function overwrites(endpoint: string): Refusal<StorageRefusal> {
  return storageUnavailable(
    `the object store ${endpoint} ignores If-None-Match: *, by which objects are kept from being overwritten; use a store that honours conditional writes`,
  )
}

/** The fault of a request that came to nothing. */
export function noAnswer(reply: S3Reply, asked: S3Request, location: S3Location, attempts: number): Error {
  const what = `${asked.method} ${nameOf(asked, location)}`
  const times = attempts === 1 ? '' : `, ${attempts} times over`
  if ('lost' in reply) {
    const why = reply.lost instanceof Error ? reply.lost.message : String(reply.lost)
    return new StorageFault(`the object store ${location.endpoint} did not answer ${what}${times}: ${why}`, {
      cause: reply.lost,
    })
  }
  const code = reply.code ?? 'without a code'
  return new StorageFault(
    `the object store ${location.endpoint} answered ${reply.status} ${code} to ${what}${times}`,
  )
}

/** What a request is about, as messages name it. */
export function nameOf({ key }: S3Request, { bucket }: S3Location): string {
  return `${bucket}/${key}`
}
