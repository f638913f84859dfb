import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openPublishedHistory } from '../../src/adapters/audited-hosts.ts'
import type { PublishedHistoryOptions } from '../../src/adapters/audited-hosts.ts'
import type { PublishedHistory } from '../../src/domain/year/ports.ts'
import { PUBLISHED_LEDGER } from '../../src/domain/year/published-ledger.ts'
import type { PublishedResponse } from '../../src/domain/year/published-ledger.ts'
import { summarizeBytes } from '../../src/domain/year/examine.ts'
import { localSource } from '../support/local-source.ts'
import type { LocalSource, SourceRequest } from '../support/local-source.ts'
import { SOURCE_UNAVAILABLE } from '../support/refusals.ts'

const AT = Date.UTC(2026, 2, 1, 0, 10, 0, 7)
const never = new AbortController().signal

function published(base: string, options: PublishedHistoryOptions = {}): PublishedHistory {
  const opened = openPublishedHistory(base, options)
  onTestFinished(() => opened.close())
  return opened
}

function bytesOf(response: PublishedResponse): Uint8Array | null {
  return response.is === 'text' ? response.bytes : null
}

/** Requests the ledger of a host. */
function ledgerOf(history: PublishedHistory, signal = never): ReturnType<PublishedHistory['file']> {
  return history.file(PUBLISHED_LEDGER, 1024 * 1024, signal)
}

function startHost(
  answer: (response: ServerResponse, question: SourceRequest) => void,
): Promise<LocalSource> {
  return localSource((question, response) => answer(response, question))
}

test('a host that needs more than a minute and two seconds a request is given up before its next request', async () => {
  let now = 0
  const host = await startHost((response) => {
    now += 17_000
    response.writeHead(200).end('x')
  })
  const slow = published(host.url, { clock: () => now })
  // The last one is sent after exactly that time.
  for (let request = 1; request <= 5; request += 1) expect(await ledgerOf(slow)).toMatchObject({ is: 'text' })
  await expect(ledgerOf(slow)).rejects.toMatchObject({
    ...SOURCE_UNAVAILABLE,
    detail: `the host ${host.url} is too slow: 5 requests took 85 s; run the audit again later`,
  })
  expect(host.requests).toHaveLength(5)
})

const TEXT = Buffer.from([0x7b, 0xc3, 0x28, 0x00, 0xff])
const validators = { etag: '"abc"', 'last-modified': 'Sun, 01 Mar 2026 00:10:00 GMT' }
const requestedAt = '2026-03-01T00:10:00.007Z'
const kept = { etag: '"abc"', lastModified: 'Sun, 01 Mar 2026 00:10:00 GMT', requestedAt }
const damaged = (part: string): string => `{"error":"year_${part}_archive_corrupt"}`

test.each<[number, string | Buffer, object, Record<string, string>?]>([
  [
    200,
    TEXT,
    { is: 'text', bytes: TEXT, ...summarizeBytes(TEXT), ...kept },
    { ...validators, 'x-year-history-requested-at': requestedAt },
  ],
  [200, 'x', { is: 'text', etag: null }, { etag: '"\u009b31m"' }],
  [
    304,
    '',
    { is: 'unchanged', etag: '"abc"', lastModified: null, requestedAt: null, description: '304' },
    { etag: '"abc"' },
  ],
  [404, '{"error":"year_history_not_found"}', { is: 'absent', description: '404 year_history_not_found' }],
  [503, damaged('history'), { is: 'other', damaged: 'history' }],
  [503, damaged('log'), { is: 'other', damaged: 'log' }],
  [500, damaged('history'), { is: 'other', damaged: null }],
  [503, '{"error":"busy"}', { is: 'other', damaged: null, description: '503 busy' }],
  [500, '{"error":"\\u001b[31mred"}', { is: 'other', description: '500' }],
  [502, '<html>bad gateway</html>', { is: 'other', damaged: null, description: '502' }],
  [500, 'null', { is: 'other', description: '500' }],
  [
    301,
    '',
    { is: 'other', description: '301 (moved to /elsewhere: audit the address that it has now)' },
    { location: '/elsewhere' },
  ],
  [
    400,
    '{"error":"invalid_at"}',
    {
      is: 'other',
      description: '400 invalid_at (the clock of this machine is ahead of the one of the host)',
    },
  ],
  [
    403,
    'denied',
    { is: 'other', description: '403 (a host must answer 404 for a file that it does not have)' },
  ],
])('status %i with the body %s is a response', async (status, body, expected, headers) => {
  const host = await startHost((response) => response.writeHead(status, headers).end(body))
  const byteSize = Buffer.byteLength(body)
  expect(await ledgerOf(published(host.url))).toMatchObject({ ...expected, byteSize })
  expect(host.requests).toHaveLength(1)
})

test('the client requests paths below the base, bypasses caches, refuses compression and sends the known ETags', async () => {
  const host = await startHost((response) => response.end('x'))
  const history = published(`${host.url}/some/place/`)
  await ledgerOf(history)
  await history.at(AT, ['a', 'b'], never)
  await history.at(AT, [], never)
  expect(history.base).toBe(`${host.url}/some/place`)
  expect(host.requests.map(({ target }) => target)).toEqual([
    '/some/place/api/feed/history/ledger',
    '/some/place/api/feed/history?sort=year&at=2026-03-01T00:10:00.007Z',
    '/some/place/api/feed/history?sort=year&at=2026-03-01T00:10:00.007Z',
  ])
  const [, conditional, plain] = host.requests
  expect(conditional?.headers).toMatchObject({
    'if-none-match': '"a", "b"',
    'cache-control': 'no-cache',
    'accept-encoding': 'identity',
  })
  expect(plain?.headers['if-none-match']).toBeUndefined()
})

describe('an unavailable host', () => {
  const cases: Record<string, [(response: ServerResponse) => void, RegExp]> = {
    'drops the connection': [(response) => response.socket?.destroy(), /cannot be reached/],
    'never ends its answer': [
      (response) => {
        const drip = setInterval(() => response.write('x'), 10)
        response.on('close', () => clearInterval(drip))
      },
      /no complete response within 150 ms/,
    ],
    'compresses although nobody asked': [
      (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x')),
      /compressed with gzip/,
    ],
  }
  test.each(Object.entries(cases))(
    'the host is unavailable after two attempts if it %s',
    async (_what, [answer, message]) => {
      const host = await startHost(answer)
      const attempt = ledgerOf(published(host.url, { responseTimeoutMs: 150 }))
      await expect(attempt).rejects.toMatchObject({
        ...SOURCE_UNAVAILABLE,
        message: expect.stringMatching(message),
      })
      await expect(attempt).rejects.toThrow(host.url)
      expect(host.requests).toHaveLength(2)
    },
  )
})

describe('the size limit of a body', () => {
  const MIB = 1024 * 1024
  test.each<[string, number, (history: PublishedHistory) => ReturnType<PublishedHistory['file']>]>([
    ['ledger', MIB, ledgerOf],
    ['publication', 64 * MIB, (history) => history.at(AT, [], never)],
  ])('a %s of more than %i bytes makes the host unavailable', async (_what, bound, ask) => {
    const sizes = [bound, bound + 1, bound + 1]
    const host = await startHost((response) => response.end(Buffer.alloc(sizes.shift() ?? 0)))
    const history = published(host.url)
    expect(bytesOf(await ask(history))?.byteLength).toBe(bound)
    await expect(ask(history)).rejects.toMatchObject({
      ...SOURCE_UNAVAILABLE,
      detail: expect.stringContaining(`sent more than ${bound} bytes for /`),
    })
  })
})

test('a connection that drops once is retried without an error', async () => {
  let requestCount = 0
  const host = await startHost((response) => {
    requestCount += 1
    if (requestCount === 1) response.socket?.destroy()
    else response.end('here')
  })
  expect(await ledgerOf(published(host.url))).toMatchObject({ is: 'text', bytes: Buffer.from('here') })
})

test('an abort takes effect at once, and no request is sent again', async () => {
  const stop = new AbortController()
  const host = await startHost(() => stop.abort(new Error('told to stop')))
  await expect(ledgerOf(published(host.url), stop.signal)).rejects.toThrow('told to stop')
  await expect(ledgerOf(published(host.url), stop.signal)).rejects.toThrow('told to stop')
  expect(host.requests).toHaveLength(1)
})
