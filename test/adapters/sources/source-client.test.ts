import type { ServerResponse } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import type { SourceClient, SourceRequest } from '../../../src/adapters/sources/source-client.ts'
import type { SourceUnavailable } from '../../../src/domain/feed/live-source.ts'
import { jsonSource, localSource } from '../../support/local-source.ts'
import { openFeed } from '../feed/open-feed.ts'
import { sleepingClock, sourceClient, USER_AGENT } from './client.ts'
import { NEVER_ABORTED } from '../provider/model-turns.ts'
import { SOURCE_UNAVAILABLE } from '../../support/refusals.ts'

/** Requests a JSON value of any form; null for a 404. */
function fetchJson(
  request: Partial<SourceRequest<unknown>> & { url: string },
  client: SourceClient = sourceClient(),
  signal = NEVER_ABORTED,
): Promise<unknown> {
  return client.fetchJson({ absent: null, shape: z.unknown(), ...request }, signal)
}

/** The error of a request that must fail. */
const failureOf = (...args: Parameters<typeof fetchJson>): Promise<SourceUnavailable> =>
  fetchJson(...args).then(
    () => expect.unreachable('it succeeded'),
    (error: unknown) => error as SourceUnavailable,
  )

const html = '<!doctype html><title>Just a moment...</title>'

const sends =
  (status: number, body?: string | Buffer, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    response.writeHead(status, headers).end(body)

/** Invalid responses, with the expected message of each. */
const MISBEHAVIOURS: Record<string, [RegExp, (response: ServerResponse) => void]> = {
  'a server error': [/responded with 500$/, sends(500, '{"error":"internal"}')],
  'a redirect': [/ 302 and redirects to "\/x", which is not followed$/, sends(302, '', { location: '/x' })],
  '"not modified" that nobody asked for': [/responded with 304$/, sends(304)],
  'an HTML page': [/a web page \(text\/html\) instead of/, sends(200, html, { 'content-type': 'text/html' })],
  nothing: [/is empty$/, sends(200)],
  'half a document': [/ends early after 18 characters/, sends(200, '{"id":1,"title":"a')],
  'two documents': [/\(no content type\) is not JSON/, sends(200, '{}{}')],
  'bytes that are not UTF-8': [/not UTF-8/, sends(200, Buffer.from([0x22, 0xc3, 0x28, 0x22]))],
  'an unknown compression': [
    /unsupported compression zstd$/,
    sends(200, '{}', { 'content-encoding': 'zstd' }),
  ],
  'a body that ends too early': [
    /./,
    (response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{"id":1}')
      response.socket?.end()
    },
  ],
  'a reset connection': [/./, (response) => response.socket?.resetAndDestroy()],
  'a body that never ends': [
    /larger than 1048576 bytes$/,
    (response) => {
      response.writeHead(200)
      const more = (): void => {
        while (!response.destroyed && response.write('"'.padEnd(64 * 1024, 'x'))) continue
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    },
  ],
}

describe('a request to a source', () => {
  test.each([[{ id: 8863, title: 'Größe “quoted” 😀 \u2028' }], [null]])(
    'a request returns %j',
    async (document) => {
      const { url, requests } = await jsonSource(document)
      expect(await fetchJson({ url: `${url}/item/8863.json` })).toEqual(document)
      expect(requests).toEqual([
        expect.objectContaining({ method: 'GET', target: '/item/8863.json', body: '' }),
      ])
      expect(requests[0]?.headers).toMatchObject({ accept: 'application/json', 'user-agent': USER_AGENT })
    },
  )

  test('a request with a body is sent as JSON', async () => {
    const { url, requests } = await jsonSource({})
    await fetchJson({ url, body: { query: 'q', variables: { id: 'ä' } } })
    expect(requests[0]).toMatchObject({ method: 'POST', body: '{"query":"q","variables":{"id":"ä"}}' })
    expect(requests[0]?.headers['content-type']).toBe('application/json')
  })

  test.each([404, 410])('a request with the response %i finds nothing', async (status) => {
    const { url } = await localSource((_question, response) => response.writeHead(status).end(html))
    expect(await fetchJson({ url })).toBeNull()
  })

  test.each(Object.entries(MISBEHAVIOURS))(
    'a response with %s makes the source unavailable, and is not retried',
    async (_what, [expected, answer]) => {
      const { url, requests } = await localSource((_question, response) => answer(response))
      const error = await failureOf({ url: `${url}/item/1.json` })
      expect(error).toMatchObject(SOURCE_UNAVAILABLE)
      expect(error.detail).toContain(`${url}/item/1.json: `)
      expect(error.detail).toMatch(expected)
      expect(requests).toHaveLength(1)
    },
  )
})

test('a response that drips forever is given up at its time limit', async () => {
  const source = await localSource((_question, response) => {
    response.writeHead(200)
    const drip = setInterval(() => response.write(' '), 5)
    response.once('close', () => clearInterval(drip))
  })
  const error = await failureOf({ url: source.url }, sourceClient({ responseTimeoutMs: 60 }))
  expect(error).toMatchObject(SOURCE_UNAVAILABLE)
  expect(error.detail).toContain('no complete response within 60 ms')
})

describe('an aborted request to a source', () => {
  const reason = new Error('the run was ended')

  test('an aborted request rejects with the reason at once, in the middle of an answer', async () => {
    const { url, requests } = await localSource((_question, response) => {
      response.writeHead(200)
      response.write('{"id":')
    })
    const controller = new AbortController()
    const pending = fetchJson({ url }, sourceClient(), controller.signal)
    const outcome = expect(pending).rejects.toBe(reason)
    await vi.waitUntil(() => requests.length === 1, { interval: 1, timeout: 5_000 })
    controller.abort(reason)
    await outcome
  })

  test('a request that was aborted before is never sent', async () => {
    const { url, requests } = await jsonSource({})
    await expect(fetchJson({ url }, sourceClient(), AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(requests).toEqual([])
  })
})

describe('a busy source', () => {
  const from = Date.UTC(2026, 10, 21, 12)

  const limits = { concurrency: 4, maxWaitMs: 60_000 }
  /** A client with a total waiting time and a simulated clock. */
  function waitingClient() {
    const { slept, ...time } = sleepingClock(from)
    return { slept, client: sourceClient({ ...time, limits }) }
  }

  /** A source that responds with each of the given heads once, then with an object. */
  async function busyFor(...heads: [number, Record<string, string>][]) {
    const left = [...heads]
    return localSource((_question, response) => {
      const head = left.shift()
      if (head) response.writeHead(...head).end('{}')
      else response.end('{"id":1}')
    })
  }

  const busy: [number, Record<string, string>] = [503, {}]
  const wait = (seconds: string): Record<string, string> => ({ 'retry-after': seconds })
  const reset = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(from / 1000 + 30) }

  test.each<[string, [number, Record<string, string>][], number[], object | null]>([
    ['after its Retry-After', [[429, wait('7')]], [7_000], null],
    ['after the Retry-After of a 503', [[503, wait('7')]], [7_000], null],
    ['like GitHub, after the reset of its limit', [[403, reset]], [30_000], null],
    [
      'three times in total, with growing pauses, if it names no wait',
      [busy, busy, busy, busy],
      [1_000, 2_000],
      { retryAt: null },
    ],
    [
      'only up to a total wait',
      [
        [429, wait('35')],
        [429, wait('35')],
        [429, wait('35')],
      ],
      [35_000],
      { retryAt: from + 70_000 },
    ],
  ])('a busy source is requested again %s', async (_when, heads, pauses, failure) => {
    const { url, requests } = await busyFor(...heads)
    const { slept, client } = waitingClient()
    if (failure) expect(await failureOf({ url }, client)).toMatchObject({ ...SOURCE_UNAVAILABLE, ...failure })
    else expect(await fetchJson({ url }, client)).toEqual({ id: 1 })
    expect([slept, requests.length]).toEqual([pauses, pauses.length + 1])
  })

  test('a busy source alone is left alone, with the end of the pause, if its wait is too long', async () => {
    const { url, requests } = await busyFor([429, { 'retry-after': '3600' }])
    const { slept, client } = waitingClient()
    const retryAt = from + 3_600_000
    const error = await failureOf({ url }, client)
    expect(error.retryAt).toBe(retryAt)
    expect(error.detail).toContain('next request at 2026-11-21T13:00:00.000Z')
    expect(await failureOf({ url: `${url}/other` }, client)).toMatchObject({ retryAt })
    const { url: otherHost } = await jsonSource({ id: 2 })
    expect(await fetchJson({ url: otherHost }, client)).toEqual({ id: 2 })
    expect([slept, requests.length]).toEqual([[], 1])
  })

  test('a busy source is left alone by the next run too, for a day at most, and then requested again', async () => {
    const { url, requests } = await busyFor([429, { 'retry-after': '99999' }])
    const { feed: memory } = await openFeed()
    const clientAt = (now: number) => sourceClient({ ...sleepingClock(now), limits, memory })
    expect(await failureOf({ url }, clientAt(from))).toMatchObject(SOURCE_UNAVAILABLE)
    const aDayLater = from + 24 * 3_600_000
    const error = await failureOf({ url }, clientAt(aDayLater - 60_001))
    expect(error.retryAt).toBe(aDayLater)
    expect(error.detail).toContain('not requested; it allows the next request at')
    expect(requests).toHaveLength(1)
    expect(await fetchJson({ url }, clientAt(aDayLater - 60_000))).toEqual({ id: 1 })
  })

  test('the pause of a busy source ends with the run', async () => {
    const { url, requests } = await busyFor([429, { 'retry-after': '30' }])
    const controller = new AbortController()
    const reason = new Error('the run was ended')
    const sleep = (_ms: number, signal: AbortSignal): Promise<void> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
        controller.abort(reason)
      })
    const client = sourceClient({ sleep, limits })
    await expect(fetchJson({ url }, client, controller.signal)).rejects.toBe(reason)
    expect(requests).toHaveLength(1)
  })
})

test('a host has at most four open requests, and the next is sent when one is done', async () => {
  const open: ServerResponse[] = []
  let most = 0
  const { url, requests } = await localSource((_question, response) => {
    open.push(response)
    most = Math.max(most, open.length)
    if (requests.length < 4) return
    // All four are open: each response lets one more request start.
    setImmediate(() => open.shift()?.end('{}'))
    if (requests.length === 12) for (const last of open.splice(0)) last.end('{}')
  })
  const client = sourceClient()
  await Promise.all(Array.from({ length: 12 }, (_, id) => fetchJson({ url: `${url}/${id}` }, client)))
  expect([most, requests.length]).toEqual([4, 12])
})

test('a token refused with 403 is reported by its setting', async () => {
  const { url } = await localSource((_question, response) => response.writeHead(403).end('{}'))
  const { detail } = await failureOf({ url, credential: 'X_TOKEN' })
  expect(detail).toBe(`${url}: responded with 403; check X_TOKEN`)
})

describe('a response with validators', () => {
  const PLAIN = { conditional: true, shape: z.unknown() }
  const validators = { etag: 'W/"1"', 'last-modified': 'Sat, 21 Nov 2026 10:00:00 GMT' }

  /** Responds 304 to a request with validators. */
  async function unchanging(value: unknown, headers: Partial<typeof validators> = validators) {
    return localSource(({ headers: request }, response) => {
      if (request['if-none-match'] ?? request['if-modified-since']) response.writeHead(304, headers).end()
      else response.writeHead(200, headers).end(JSON.stringify(value))
    })
  }

  test('a response with validators is kept, requested conditionally, and reused while it is unchanged', async () => {
    const { url, requests } = await unchanging([1, 2])
    const client = sourceClient({ memory: (await openFeed()).feed })
    const counts = { requests: 0, notModified: 0, skews: [] }
    for (let time = 0; time < 2; time += 1)
      expect(await client.fetchJson({ ...PLAIN, url }, NEVER_ABORTED, counts)).toEqual([1, 2])
    expect(counts).toMatchObject({ requests: 2, notModified: 1 })
    expect(requests[1]?.headers).toMatchObject({
      'if-none-match': 'W/"1"',
      'if-modified-since': validators['last-modified'],
    })
  })

  test('an unchanged response and a refused request tell the time of the source too', async () => {
    const now = Date.UTC(2026, 10, 21, 12)
    const at = (ms: number): string => new Date(now + ms).toUTCString()
    const { url } = await localSource(({ target, headers }, response) => {
      if (target === '/gone') response.writeHead(500, { date: at(-600_000) }).end()
      else if (headers['if-none-match']) response.writeHead(304, { date: at(0), age: '1800' }).end()
      else response.writeHead(200, { ...validators, date: at(3_600_000) }).end('[]')
    })
    const client = sourceClient({ memory: (await openFeed()).feed, clock: () => now })
    const counts = { requests: 0, notModified: 0, skews: [] }
    const fetch = (path = '') => client.fetchJson({ ...PLAIN, url: `${url}${path}` }, NEVER_ABORTED, counts)
    await fetch()
    await fetch()
    await expect(fetch('/gone')).rejects.toMatchObject(SOURCE_UNAVAILABLE)
    expect(counts.skews).toEqual([3_600_000, 1_800_000, -599_000])
  })

  test('an unexpected response is not kept, so that no error is ever "not modified"', async () => {
    const { feed: memory } = await openFeed()
    const { url, requests } = await unchanging({ error: 'overloaded' })
    const client = sourceClient({ memory })
    const shape = z.array(z.unknown())
    for (let time = 0; time < 2; time += 1) {
      const { detail } = await failureOf({ url, conditional: true, shape }, client)
      expect(detail).toContain(`${url}: the response does not have the expected fields (row: `)
    }
    expect(await memory.keptResponse(url, 0, Date.now())).toBeNull()
    expect(requests[1]?.headers['if-none-match']).toBeUndefined()
  })

  test.each(['once it is a day old', 'when what was kept can no longer be read'])(
    'a kept response is requested again %s',
    async (when) => {
      const { feed: memory } = await openFeed()
      const { url, requests } = await unchanging([1])
      let now = Date.UTC(2026, 10, 21)
      const client = sourceClient({ memory, clock: () => now })
      await fetchJson({ url, conditional: true }, client)
      if (when.endsWith('old')) now += 24 * 3_600_000
      else await memory.keepResponse(url, { etag: '"1"', lastModified: null, body: '[1', keptAt: now }, 0)
      expect(await fetchJson({ url, conditional: true }, client)).toEqual([1])
      expect(requests[1]?.headers['if-none-match']).toBeUndefined()
    },
  )

  test.each([
    ['of more than a million characters', 'x'.repeat(1_000_000), validators, true],
    ['without validators', [1], {}, true],
    ['of a request that is not conditional', [1], validators, false],
  ])('a response %s is not kept', async (_what, value, headers, conditional) => {
    const { feed: memory } = await openFeed()
    const { url } = await unchanging(value, headers)
    await fetchJson({ url, conditional }, sourceClient({ memory }))
    expect(await memory.keptResponse(url, 0, Date.now())).toBeNull()
  })
})
