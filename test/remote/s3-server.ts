import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { request } from 'undici'
import type { S3Location } from '../../src/adapters/objects/s3-request.ts'
import { startSource } from '../support/local-source.ts'

const BUCKET = 'dash-archive'

const require = createRequire(import.meta.url)

/** One request to the server. */
interface S3Request {
  method: string
  /** Path and query of the request line. */
  target: string
  headers: IncomingHttpHeaders
  body: Buffer
}

interface S3Response {
  status: number
  headers?: Record<string, string>
  body?: string | Buffer
}

/**
 * The fault of a request: a foreign response, or
 *
 * - `reset`: the connection is cut before anything is done
 * - `lost-answer`: the request is executed, and the connection cut before the response
 * - `silence`: nothing is done and nothing is ever answered
 * - `cut`, `drip`: the connection is cut, or stands still, in the middle of the answer's body
 * - `unmeasured`: half of the body, with no word of its length, then the end of the connection
 */
export type S3Fault = S3Response | 'reset' | 'lost-answer' | 'silence' | 'cut' | 'drip' | 'unmeasured'

export interface S3Server {
  /** Base URL of an S3 server that honours `If-None-Match: *` and `If-Match`, verifies requests and can inject faults. */
  url: string
  /** Base URL of the same store without all that. */
  bareUrl: string
  requests: S3Request[]
  /** Makes the next requests of a kind fail, the first of the given faults first. */
  fail(method: 'GET' | 'PUT', target: RegExp, ...faults: S3Fault[]): void
  /** Clears recorded requests and unused faults. */
  reset(): void
  /** Where an archive of this server is; `prefix` keeps the tests apart. */
  location(changes?: Partial<S3Location>): S3Location
  /** Puts an object past every check, by its key in the bucket. */
  plant(key: string, bytes: Uint8Array): Promise<void>
  close(): Promise<void>
}

/** An error response of S3. */
export function s3Error(status: number, code: string): S3Response {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>x</Message></Error>`
  return { status, headers: { 'content-type': 'application/xml' }, body }
}

/**
 * Starts the S3 server of npm, which verifies signatures but neither digests nor `If-None-Match`, and in front of it a
 * server that does. The caller must close it.
 */
export async function startS3Server(): Promise<S3Server> {
  const bare = await startBareServer()
  const requests: S3Request[] = []
  const faults: { method: string; target: RegExp; fault: S3Fault }[] = []
  const inOrder = oneAtATime()

  const { url, close } = await startSource(({ method, target, headers }, response, body) => {
    const s3Request = { method, target, headers, body }
    requests.push(s3Request)
    const index = faults.findIndex((fault) => fault.method === method && fault.target.test(target))
    const fault = index === -1 ? undefined : faults.splice(index, 1)[0]?.fault
    const handle = (): Promise<S3Response> => inOrder(target, () => respondTo(s3Request, bare.url))
    return respond(s3Request, response, fault, handle)
  })
  return {
    url,
    bareUrl: bare.url,
    requests,
    fail(method, target, ...list) {
      for (const fault of list) faults.push({ method, target, fault })
    },
    reset() {
      requests.length = 0
      faults.length = 0
    },
    location: (changes = {}) => ({
      kind: 's3',
      bucket: BUCKET,
      prefix: 'archive',
      endpoint: url,
      region: 'us-east-1',
      accessKeyId: 'S3RVER',
      secretAccessKey: 'S3RVER',
      ...changes,
    }),
    async plant(key, bytes) {
      const path = key.split('/').map(encodeURIComponent).join('/')
      const { statusCode, body } = await request(`${bare.url}/${BUCKET}/${path}`, {
        method: 'PUT',
        body: bytes,
      })
      await body.dump()
      if (statusCode !== 200) throw new Error(`the S3 server answered ${statusCode}`)
    },
    async close() {
      await close()
      await bare.close()
    },
  }
}

/** Runs in a process of its own, since the server makes the tokens of its pages with a cipher Node has locked away. */
const BARE_SERVER = `
  const S3rver = require(process.argv[1])
  const server = new S3rver({
    address: '127.0.0.1', port: 0, silent: true, directory: process.argv[2],
    vhostBuckets: false, configureBuckets: [{ name: process.argv[3] }],
  })
  server.run().then(({ port }) => console.log(port))
  process.stdin.resume().on('end', () => process.exit())`

async function startBareServer(): Promise<{ url: string; close(): Promise<void> }> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'dash-test-s3-'))
  const program = require.resolve('@20minutes/s3rver')
  const flags = ['--openssl-legacy-provider', '--no-deprecation', '--eval', BARE_SERVER]
  const child = spawn(process.execPath, [...flags, program, folder, BUCKET], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const first = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()
  if (first.done === true) throw new Error('the S3 server did not start')
  return {
    url: `http://127.0.0.1:${first.value}`,
    async close() {
      child.stdin.end()
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function respond(
  s3Request: S3Request,
  response: ServerResponse,
  fault: S3Fault | undefined,
  handle: () => Promise<S3Response>,
): Promise<void> {
  if (fault === 'silence') return
  if (fault === 'reset') {
    response.destroy()
    return
  }
  const { status, headers = {}, body = '' } = typeof fault === 'object' ? fault : await handle()
  if (fault === 'lost-answer') {
    response.destroy()
    return
  }
  if (fault === 'unmeasured') {
    const half = Buffer.from(body).subarray(0, Buffer.byteLength(body) / 2)
    response.socket?.end(
      `HTTP/1.1 ${status} OK\r\nconnection: close\r\n\r\n${half.toString('latin1')}`,
      'latin1',
    )
    return
  }
  response.writeHead(status, { 'content-length': String(Buffer.byteLength(body)), ...headers })
  if (fault === 'cut' || fault === 'drip') {
    response.write(Buffer.from(body).subarray(0, -1), () => {
      if (fault === 'cut') response.destroy()
    })
    return
  }
  response.end(s3Request.method === 'HEAD' ? undefined : body)
}

/** The response of a strict S3 server, which verifies signature and digests. */
async function respondTo(s3Request: S3Request, bareUrl: string): Promise<S3Response> {
  const { method, headers, body } = s3Request
  const signed = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1]?.split(';') ?? []
  const mustBeSigned = ['host', 'x-amz-date', 'x-amz-content-sha256']
  if (method === 'PUT')
    mustBeSigned.push(
      'x-amz-checksum-sha256',
      ...['if-none-match', 'if-match'].filter((name) => headers[name] !== undefined),
    )
  if (!mustBeSigned.every((name) => signed.includes(name))) return s3Error(403, 'AccessDenied')
  const digest = createHash('sha256').update(body).digest()
  if (headers['x-amz-content-sha256'] !== digest.toString('hex'))
    return s3Error(400, 'XAmzContentSHA256Mismatch')
  if (method === 'PUT' && headers['x-amz-checksum-sha256'] !== digest.toString('base64'))
    return s3Error(400, 'BadDigest')
  const { 'if-none-match': ifNoneMatch, 'if-match': ifMatch } = headers
  if (method === 'PUT' && (ifNoneMatch === '*' || ifMatch !== undefined)) {
    const present = await forward(
      { ...s3Request, method: 'HEAD', headers: {}, body: Buffer.alloc(0) },
      bareUrl,
    )
    if (present.status === 200 && ifNoneMatch === '*') return s3Error(412, 'PreconditionFailed')
    if (present.status !== 200 && ifMatch !== undefined) return s3Error(404, 'NoSuchKey')
    if (ifMatch !== undefined && ifMatch !== present.headers?.['etag'])
      return s3Error(412, 'PreconditionFailed')
  }
  return forward(s3Request, bareUrl)
}

async function forward({ method, target, headers, body }: S3Request, bareUrl: string): Promise<S3Response> {
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string' && !/^(?:connection|content-length)$/.test(name) ? [[name, value]] : [],
  )
  const response = await request(`${bareUrl}${target}`, {
    method: method,
    headers: Object.fromEntries(sent) as Record<string, string>,
    body: method === 'PUT' ? body : null,
  })
  const bytes = Buffer.from(await response.body.arrayBuffer())
  const kept = ['content-type', 'etag'].flatMap((name) => {
    const value = response.headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return {
    status: response.statusCode,
    headers: Object.fromEntries(kept) as Record<string, string>,
    body: bytes,
  }
}

/** Runs the tasks of each name one after another, so that a conditional write sees the previous one. */
function oneAtATime(): <T>(name: string, task: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return (name, task) => {
    const running = (last.get(name) ?? Promise.resolve()).then(task, task)
    last.set(name, running)
    return running
  }
}
