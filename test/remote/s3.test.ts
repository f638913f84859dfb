import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { unstorageObjects } from '../../src/adapters/objects/objects.ts'
import type { OpenObjects } from '../../src/adapters/objects/objects.ts'
import { s3Objects } from '../../src/adapters/objects/s3-driver.ts'
import type { S3Location, S3RetryPolicy } from '../../src/adapters/objects/s3-request.ts'
import { sha256Hex } from '../../src/domain/digest.ts'
import { Refusal, StorageFault } from '../../src/domain/refusal.ts'
import { headOf } from '../adapters/objects/objects-contract.ts'
import { DAMAGED, UNAVAILABLE } from '../support/refusals.ts'
import { unreachableUrl } from '../support/local-source.ts'
import { s3Error, startS3Server } from './s3-server.ts'
import type { S3Fault, S3Server } from './s3-server.ts'

const BYTES = new TextEncoder().encode('{"an":"object"}')
const DIGEST = sha256Hex(BYTES)
const KEY = `sha256/${DIGEST.slice(0, 2)}/${DIGEST}`

/** As patient as in production, but for the time it takes. */
const RETRY_POLICY: S3RetryPolicy = {
  connectTimeoutMs: 5_000,
  responseTimeoutMs: 10_000,
  attempts: 3,
  backoffMs: 1,
}
const NO_RETRIES: S3RetryPolicy = { ...RETRY_POLICY, responseTimeoutMs: 100 }

let server: S3Server
let prefixes = 0

beforeAll(async () => {
  server = await startS3Server()
})

afterAll(() => server.close())

beforeEach(() => {
  server.reset()
  prefixes += 1
})

const prefix = (): string => `of-test-${prefixes}`

function open(changes: Partial<S3Location> = {}, retryPolicy = RETRY_POLICY): OpenObjects {
  const { driver, prepare } = s3Objects(server.location({ prefix: prefix(), ...changes }), retryPolicy)
  const objects = unstorageObjects(driver, prepare)
  onTestFinished(() => objects.close())
  return objects
}

/** An archive that contains the object; the requests so far are not counted. */
async function openWithObject(retryPolicy = RETRY_POLICY): Promise<OpenObjects> {
  await server.plant(`${prefix()}/${KEY}`, BYTES)
  const objects = open({}, retryPolicy)
  await objects.prepare()
  server.reset()
  return objects
}

async function openPrepared(): Promise<OpenObjects> {
  const objects = open()
  await objects.prepare()
  server.reset()
  return objects
}

const requestCount = (method: string, target: RegExp): number =>
  server.requests.filter((question) => question.method === method && target.test(question.target)).length

/** Every operation of an archive. */
const OPERATIONS: Record<string, (objects: OpenObjects) => Promise<unknown>> = {
  get: (objects) => objects.get(DIGEST),
  put: (objects) => objects.put(DIGEST, BYTES),
  newestHead: (objects) => objects.newestHead(),
  putHead: (objects) => objects.putHead(headOf(1)),
  keys: (objects) => objects.keys('sha256'),
  prepare: (objects) => objects.prepare(),
  ping: (objects) => objects.ping(),
}

const each = Object.entries(OPERATIONS)

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.unreachable('it did not fail'),
    (error: unknown) => error,
  )
}

/** Returns the message of a fault, which server and commands report as unexpected. */
async function faultOf(promise: Promise<unknown>): Promise<string> {
  const failure = await failureOf(promise)
  if (failure instanceof Refusal || !(failure instanceof Error)) throw failure
  return failure.message
}

describe('an unusable S3 store', () => {
  const KEYS = /AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY/
  const MISSING = /^the bucket no-such-bucket does not exist .*DASH_STORE_URL/
  /** Each unusable store, with the expected message. */
  const UNUSABLE: [string, () => Promise<Partial<S3Location>> | Partial<S3Location>, RegExp][] = [
    ['nothing listens', async () => ({ endpoint: await unreachableUrl() }), /127\.0\.0\.1:\d/],
    ['its endpoint speaks no TLS', () => ({ endpoint: server.url.replace('http:', 'https:') }), /./],
    ['the bucket is missing', () => ({ bucket: 'no-such-bucket' }), MISSING],
    ['the secret is another', () => ({ secretAccessKey: 'another' }), KEYS],
    ['the access key is unknown', () => ({ accessKeyId: 'another' }), /./],
  ]

  test.each(
    UNUSABLE.flatMap(([why, ...rest]) => each.map(([name, ask]) => [name, why, ask, ...rest] as const)),
  )('the store is unavailable to %s if %s', async (_name, _why, ask, changes, message) => {
    const detail = expect.stringMatching(message) as string
    await expect(ask(open(await changes()))).rejects.toMatchObject({ ...UNAVAILABLE, detail })
  })

  test('a bucket that may not be listed is not written', async () => {
    server.fail('GET', /max-keys/, s3Error(403, 'AccessDenied'))
    await expect(open().put(DIGEST, BYTES)).rejects.toMatchObject(UNAVAILABLE)
    expect(requestCount('PUT', /./)).toBe(0)
  })

  test('the messages of the store never contain the secret', async () => {
    const failure = await failureOf(open({ secretAccessKey: 'very-secret' }).ping())
    expect(`${String(failure)} ${JSON.stringify(failure)}`).not.toContain('very-secret')
  })

  test.each<[string, S3Fault, RegExp]>([
    ['a clock that is wrong', s3Error(403, 'RequestTimeTooSkewed'), /clock/],
    ['another region', s3Error(400, 'AuthorizationHeaderMalformed'), /region \(us-east-1\)/],
    ['another endpoint', s3Error(301, 'PermanentRedirect'), /endpoint/],
    ['a key that is refused', s3Error(401, 'Unauthorized'), /AWS_SECRET_ACCESS_KEY/],
    ['no right to read', s3Error(403, 'AccessDenied'), /their permissions/],
  ])('the message names the remedy for %s', async (_what, fault, detail) => {
    server.fail('GET', /sha256/, fault)
    await expect(open().get(DIGEST)).rejects.toMatchObject({
      ...UNAVAILABLE,
      detail: expect.stringMatching(detail) as string,
    })
  })
})

describe('an S3 store that ignores If-None-Match', () => {
  test.each(['prepare', 'put', 'putHead'])(
    'the store that ignores conditional writes is refused by %s before anything is written',
    async (name) => {
      const objects = open({ endpoint: server.bareUrl })
      await expect(OPERATIONS[name]?.(objects)).rejects.toMatchObject({
        ...UNAVAILABLE,
        detail: `the object store ${server.bareUrl} ignores If-None-Match: *, which protects objects from being overwritten; use a store that supports conditional writes`,
      })
      expect(await objects.keys('sha256')).toEqual([])
      expect(await objects.keys('heads')).toEqual([])
    },
  )

  test('the store that reports conditional writes as unknown is refused', async () => {
    server.fail('PUT', /probe/, s3Error(501, 'NotImplemented'))
    await expect(open().prepare()).rejects.toMatchObject(UNAVAILABLE)
  })

  test('the store that ignores conditional writes can be read', async () => {
    await server.plant(`${prefix()}/${KEY}`, BYTES)
    const objects = open({ endpoint: server.bareUrl })
    await objects.ping()
    expect(await objects.get(DIGEST)).toEqual(Buffer.from(BYTES))
  })
})

describe('an S3 store that honours If-None-Match', () => {
  test('the store is probed once, and the next process probes it with one write', async () => {
    const first = open()
    await Promise.all([first.prepare(), first.prepare(), first.put(DIGEST, BYTES)])
    await first.putHead(headOf(1))
    expect(requestCount('PUT', /probe\/conditional-write/)).toBe(2)
    server.reset()
    await open().prepare()
    expect(requestCount('PUT', /probe\/conditional-write/)).toBe(1)
  })

  test('the store is probed again after it was unreachable', async () => {
    const objects = open()
    server.fail('GET', /list-type/, s3Error(403, 'AccessDenied'))
    await expect(objects.prepare()).rejects.toMatchObject(UNAVAILABLE)
    await expect(objects.prepare()).resolves.toBeUndefined()
  })

  test('the store may be a whole bucket', async () => {
    const objects = open({ prefix: '' })
    await objects.put(DIGEST, BYTES)
    expect(await objects.get(DIGEST)).toEqual(Buffer.from(BYTES))
    expect(await objects.keys('sha256')).toContain(KEY)
  })

  test('the store keeps objects below its prefix, and does not list those of a similar prefix', async () => {
    const objects = open()
    await objects.put(DIGEST, BYTES)
    await server.plant(`${prefix()}-2/heads/1`, BYTES)
    await server.plant(`${prefix()}/heads-2/1`, BYTES)
    expect(server.requests.at(-1)?.target).toBe(`/dash-archive/${prefix()}/${KEY}`)
    expect(await objects.keys('heads')).toEqual([])
  })
})

const TRANSIENT: [string, S3Fault][] = [
  ['503', s3Error(503, 'SlowDown')],
  ['500', s3Error(500, 'InternalError')],
  ['a connection that is reset', 'reset'],
  ['an answer that is lost', 'lost-answer'],
]

describe('a read from an S3 store', () => {
  const readFaults: [string, S3Fault][] = [
    ...TRANSIENT,
    ['a body that is cut', 'cut'],
    ['an answer that does not say how long it is', 'unmeasured'],
  ]

  test.each(readFaults)(
    'a read is repeated after %s, and fails after three attempts',
    async (_what, fault) => {
      const objects = await openWithObject()
      server.fail('GET', /sha256/, fault, fault)
      expect(await objects.get(DIGEST)).toEqual(Buffer.from(BYTES))
      server.reset()
      server.fail('GET', /sha256/, fault, fault, fault)
      expect(await faultOf(objects.get(DIGEST))).toMatch(/in 3 attempts/)
      expect(requestCount('GET', /sha256/)).toBe(3)
    },
  )

  test.each<[string, S3Fault]>([
    ['is never answered', 'silence'],
    ['stands still in the middle of its body', 'drip'],
  ])('a read fails if it %s', async (_what, fault) => {
    const objects = await openWithObject(NO_RETRIES)
    server.fail('GET', /sha256/, fault, fault, fault)
    expect(await faultOf(objects.get(DIGEST))).toMatch(/in 3 attempts: no complete response within 100 ms/)
  })

  const tooLong = { 'content-length': String(64 * 1024 * 1024 + 1) }
  test.each<[string, S3Fault, object | RegExp]>([
    [
      'a 404 of a proxy, which proves no object absent',
      { status: 404, body: '<html>no</html>' },
      UNAVAILABLE,
    ],
    ['a 404 without a body', { status: 404 }, UNAVAILABLE],
    ['a missing bucket', s3Error(404, 'NoSuchBucket'), UNAVAILABLE],
    ['an object over the size limit', { status: 200, headers: tooLong, body: 'x' }, DAMAGED],
    ['a part', { status: 206, body: '{"an"' }, /responded with 206 without a code /],
    [
      'not modified to a question without a condition',
      s3Error(412, 'PreconditionFailed'),
      /responded with 412 /,
    ],
    ['a bad request', s3Error(400, 'InvalidRequest'), /responded with 400 /],
  ])('a read fails for %s', async (_what, fault, expected) => {
    const objects = await openWithObject()
    server.fail('GET', /sha256/, fault)
    if (expected instanceof RegExp) expect(await faultOf(objects.get(DIGEST))).toMatch(expected)
    else await expect(objects.get(DIGEST)).rejects.toMatchObject(expected)
  })
})

describe('a write to an S3 store', () => {
  const writeFaults: [string, S3Fault][] = [
    ...TRANSIENT,
    ['a conflict', s3Error(409, 'ConditionalRequestConflict')],
  ]

  test.each(writeFaults)(
    'a write is repeated after %s, and fails after three attempts',
    async (_what, fault) => {
      const objects = await openPrepared()
      server.fail('PUT', /sha256/, fault, fault, fault)
      expect(await faultOf(objects.put(DIGEST, BYTES))).toMatch(/in 3 attempts/)
      expect(requestCount('PUT', /sha256/)).toBe(3)
      server.reset()
      server.fail('PUT', /sha256/, fault, fault)
      await objects.put(DIGEST, BYTES)
      expect(await objects.get(DIGEST)).toEqual(Buffer.from(BYTES))
      expect(await objects.keys('sha256')).toEqual([KEY])
    },
  )

  test('a head whose response was lost counts as written', async () => {
    const objects = await openPrepared()
    server.fail('PUT', /heads/, 'lost-answer')
    await objects.putHead(headOf(1))
    expect(await objects.newestHead()).toEqual(headOf(1))
  })

  test.each([
    ['a bucket that went missing', s3Error(404, 'NoSuchBucket')],
    ['a 404 of any kind', { status: 404 }],
    ['a right that is missing', s3Error(403, 'AccessDenied')],
  ])('a write is unavailable after %s', async (_what, fault) => {
    const objects = await openPrepared()
    server.fail('PUT', /sha256/, fault)
    await expect(objects.put(DIGEST, BYTES)).rejects.toMatchObject(UNAVAILABLE)
    expect(await objects.get(DIGEST)).toBeNull()
  })
})

describe('a listing of an S3 store', () => {
  const listing = (keys: string[], token: string | null): S3Fault => ({
    status: 200,
    body: `<ListBucketResult>${keys.map((key) => `<Contents><Key>${prefix()}/${key}</Key></Contents>`).join('')}${
      token === null
        ? '<IsTruncated>false</IsTruncated>'
        : `<IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>`
    }</ListBucketResult>`,
  })

  test('a listing requests page after page, also an empty one, with the token of the last', async () => {
    server.fail(
      'GET',
      /list-type/,
      listing(['heads/1'], 'first+/='),
      listing([], 'second'),
      listing(['heads/2'], null),
    )
    expect(await open().keys('heads')).toEqual(['heads/1', 'heads/2'])
    const tokens = server.requests.map(({ target }) =>
      new URL(target, server.url).searchParams.get('continuation-token'),
    )
    expect(tokens).toEqual([null, 'first+/=', 'second'])
  })

  test.each<[string, () => S3Fault[]]>([
    ['gives a token again', () => [listing(['heads/1'], 'a'), listing([], 'b'), listing([], 'a')]],
    ['gives a key again', () => [listing(['heads/1'], 'a'), listing(['heads/1'], 'b')]],
    ['strays from the prefix', () => [listing(['sha256/1'], null)]],
    ['is cut off', () => [{ status: 200, body: '<ListBucketResult><IsTruncated>false</IsTruncated>' }]],
    ['is a page of another server', () => [{ status: 200, body: '<!doctype html><title>Console</title>' }]],
    ['says that there is no such key', () => [s3Error(404, 'NoSuchKey')]],
  ])('a listing fails if it %s', async (_what, faults) => {
    server.fail('GET', /list-type/, ...faults())
    const failure = await failureOf(open().newestHead())
    expect(failure).toBeInstanceOf(StorageFault)
    expect(String(failure)).toMatch(/object store (?:returned|listed|responded)/)
  })
})

describe('recommendations in an S3 store', () => {
  test('the current recommendation is replaced by one request, even if its response is lost', async () => {
    const { recommendations: store } = open()
    await store.put('2026-08-22.v1', BYTES)
    server.reset()
    server.fail('PUT', /free-llm\/current/, 'lost-answer')
    await store.put('2026-08-23.v1', new TextEncoder().encode('the next'))
    expect(Buffer.from((await store.current()) ?? []).toString()).toBe('the next')
    const writes = server.requests.filter(
      ({ method, target }) => method === 'PUT' && target.endsWith('/current'),
    )
    expect(writes.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, undefined])
  })

  test('the recommendations stay unchanged while the run cannot be stored', async () => {
    const { recommendations: store } = open()
    await store.put('2026-08-22.v1', BYTES)
    server.fail('PUT', /free-llm\/runs/, s3Error(403, 'AccessDenied'))
    const next = new TextEncoder().encode('next')
    await expect(store.put('2026-08-23.v1', next)).rejects.toMatchObject(UNAVAILABLE)
    expect(await store.current()).toEqual(Buffer.from(BYTES))
  })
})
