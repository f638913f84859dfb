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
  let last: Promise<unknown> = Promise.resolve()

  const { url, close } = await startSource(({ method, target, headers }, response, body) => {
    const s3Request = { method, target, headers, body }
    requests.push(s3Request)
    const index = faults.findIndex((fault) => fault.method === method && fault.target.test(target))
    const fault = index === -1 ? undefined : faults.splice(index, 1)[0]?.fault
    // One after another, so that a conditional write sees the previous one.
    const handle = (): Promise<S3Response> => {
      const answer = last.then(() => respondTo(s3Request, bare.url))
      last = answer.catch(() => undefined)
      return answer
    }
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
  { method }: S3Request,
  response: ServerResponse,
  fault: S3Fault | undefined,
  handle: () => Promise<S3Response>,
): Promise<unknown> {
  if (fault === 'silence') return
  if (fault === 'reset') return response.destroy()
  const { status, headers = {}, body = '' } = typeof fault === 'object' ? fault : await handle()
  if (fault === 'lost-answer') return response.destroy()
  const bytes = Buffer.from(body)
  if (fault === 'unmeasured') {
    response.socket?.write(`HTTP/1.1 ${status} OK\r\nconnection: close\r\n\r\n`)
    return response.socket?.end(bytes.subarray(0, bytes.length / 2))
  }
  response.writeHead(status, { 'content-length': `${bytes.length}`, ...headers })
  if (fault === 'drip') return response.write(bytes.subarray(0, -1))
  if (fault === 'cut') return response.write(bytes.subarray(0, -1), () => response.destroy())
  return response.end(method === 'HEAD' ? undefined : bytes)
}

/** The response of a strict S3 server, which verifies signature and digests. */
async function respondTo(s3Request: S3Request, bareUrl: string): Promise<S3Response> {
  const { method, headers, body } = s3Request
  const { 'if-match': ifMatch } = headers
  const isWrite = method === 'PUT'
  const conditions = ['if-none-match', 'if-match'].filter((name) => headers[name] !== undefined)
  const mustBeSigned = ['host', 'x-amz-date', 'x-amz-content-sha256']
  if (isWrite) mustBeSigned.push('x-amz-checksum-sha256', ...conditions)
  const signed = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1]?.split(';') ?? []
  if (!mustBeSigned.every((name) => signed.includes(name))) return s3Error(403, 'AccessDenied')
  const digest = createHash('sha256').update(body).digest()
  if (headers['x-amz-content-sha256'] !== digest.toString('hex'))
    return s3Error(400, 'XAmzContentSHA256Mismatch')
  if (isWrite && headers['x-amz-checksum-sha256'] !== digest.toString('base64'))
    return s3Error(400, 'BadDigest')
  if (isWrite && conditions.length > 0) {
    const question = { ...s3Request, method: 'HEAD', headers: {}, body: Buffer.alloc(0) }
    const { status, headers: present } = await forward(question, bareUrl)
    if (status !== 200 && ifMatch !== undefined) return s3Error(404, 'NoSuchKey')
    const isMet = ifMatch === undefined ? status !== 200 : ifMatch === present?.['etag']
    if (!isMet) return s3Error(412, 'PreconditionFailed')
  }
  return forward(s3Request, bareUrl)
}

async function forward({ method, target, headers, body }: S3Request, bareUrl: string): Promise<S3Response> {
  const { connection: _connection, 'content-length': _length, ...sent } = headers
  const response = await request(`${bareUrl}${target}`, {
    method: method,
    headers: sent,
    body: method === 'PUT' ? body : null,
  })
  const { 'content-type': type, etag } = response.headers as Record<string, string | undefined>
  return {
    status: response.statusCode,
    headers: { ...(type !== undefined && { 'content-type': type }), ...(etag !== undefined && { etag }) },
    body: Buffer.from(await response.body.arrayBuffer()),
  }
}
