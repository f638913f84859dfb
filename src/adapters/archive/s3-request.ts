import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import type { Dispatcher } from 'undici'
import { Refusal } from '../../domain/refusal.ts'
import { OBJECT_MAX_BYTES, storageDamaged, storageUnavailable } from '../../domain/storage.ts'
import { openConnections } from '../connections.ts'
import type { Connections } from '../connections.ts'
import { answerOf, isTransient, nameOf, noAnswer } from './s3-answer.ts'
import type { S3Answer, S3Location, S3Reply, S3Request } from './s3-answer.ts'
import { errorCodeOf } from './s3-listing.ts'

/** How long an answer may take, and how often one that failed on the way is asked for again. */
export interface S3Patience {
  connectMs: number
  /** For one whole answer, however slowly it drips in. */
  answerMs: number
  attempts: number
  /** Pause before the second attempt; it doubles with each further one. */
  backoffMs: number
}

export const S3_PATIENCE: S3Patience = { connectMs: 5_000, answerMs: 30_000, attempts: 3, backoffMs: 250 }

export interface S3Client {
  /**
   * Signs and sends a request, and again when its answer was lost on the way or the server was too busy: only reads,
   * conditional writes, and writes that one writer at a time makes may be sent, which are safe to repeat.
   *
   * @throws Refusal `storage_unavailable` when the server cannot be reached, the bucket is missing or the credentials
   *   are refused; `storage_damaged` for an object larger than any; a fault for everything else
   */
  send(asked: S3Request): Promise<S3Answer>
  close(): Promise<void>
}

/** Connections to one bucket; whoever opens it closes it. */
export function s3Client(location: S3Location, patience: S3Patience): S3Client {
  const connections = openConnections({ connect: { timeout: patience.connectMs }, connections: 8 })
  return {
    async send(asked) {
      for (let attempt = 1; ; attempt += 1) {
        const reply = await replyTo(connections, location, asked, patience.answerMs)
        if (!('lost' in reply || isTransient(reply))) return answerOf(reply, asked, location)
        if (attempt >= patience.attempts) throw noAnswer(reply, asked, location, attempt)
        await sleep(patience.backoffMs * 2 ** (attempt - 1))
      }
    },
    close: () => connections.close(),
  }
}

async function replyTo(
  connections: Connections,
  location: S3Location,
  asked: S3Request,
  answerMs: number,
): Promise<S3Reply> {
  const { url, headers } = await sign(location, asked)
  // Node 20 collects `AbortSignal.timeout()` as garbage before it fires.
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new Error(`no whole answer within ${answerMs} ms`)), answerMs)
  try {
    const { method, body = null } = asked
    const response = await connections.request(url, { signal: limit.signal, method, headers, body })
    const { statusCode: status } = response
    const bytes = await readWhole(response, nameOf(asked, location))
    return { status, body: bytes, code: status < 300 ? null : errorCodeOf(bytes) }
  } catch (error) {
    if (error instanceof Refusal) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (UNREACHABLE.test(code))
      throw storageUnavailable(
        `the object store ${location.endpoint} cannot be reached (${code}): check DASH_STORE_URL`,
        error,
      )
    return { lost: error }
  } finally {
    clearTimeout(timer)
    // Of a body that was not read to its end, the rest.
    limit.abort()
  }
}

/** No connection was made, or none that could be trusted: asking again at once would not help. */
const UNREACHABLE =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPROTO|UND_ERR_CONNECT_TIMEOUT|(?:ERR_TLS|ERR_SSL|CERT)_\w+|\w*(?:SELF_SIGNED_CERT|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER)\w*)$/

/** Signature version 4 over the headers and the body, at the time of this attempt. */
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

/** The body, which must have the length it was announced with. */
async function readWhole(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  name: string,
): Promise<Buffer> {
  const announced = headers['content-length'] === undefined ? null : Number(headers['content-length'])
  // Without either, a connection that broke looks like the end of the body.
  if (statusCode === 200 && announced === null && headers['transfer-encoding'] === undefined)
    throw new Error('the answer does not say how long it is')
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength
    if (Math.max(size, announced ?? 0) > OBJECT_MAX_BYTES)
      throw storageDamaged(`${name} has more than ${OBJECT_MAX_BYTES} bytes, more than any object`)
    chunks.push(chunk)
  }
  if (announced !== null && announced !== size)
    throw new Error(`the answer has ${size} bytes and not ${announced}`)
  return Buffer.concat(chunks)
}
