import { onTestFinished, expect, test } from 'vitest'
import { openWebhook, openJobPings } from '../../src/adapters/notifications.ts'
import type { WebhookMessage, WebhookOptions, JobMonitor } from '../../src/adapters/notifications.ts'
import { parseIpRange } from '../../src/domain/address.ts'
import type { RunStep, ChangeDelivery } from '../../src/domain/models/changes.ts'
import { localSource, unreachableUrl, startPingService } from '../support/local-source.ts'

const KEY = Buffer.alloc(32, 7)
const NOW = Date.UTC(2026, 7, 22, 3, 17, 1, 900)
const LOOPBACK = parseIpRange('127.0.0.0/8')
const MESSAGES: WebhookMessage[] = [
  { id: 'urn:uuid:1', body: '{"text":"ü 😀"}' },
  { id: 'urn:uuid:2', body: '{}' },
]
const STEP: RunStep = {
  previousVersion: '2026-08-21.v1',
  rankingVersion: '2026-08-22.v1',
  updatedAt: '2026-08-22T03:17:01.124Z',
  changes: ['maker/one:free', 'maker/two:free'].map((model) => ({
    kind: 'model_new',
    model,
    name: model,
    rank: 2,
    previousRank: null,
    previousPrimary: null,
    reason: 'It is new in the catalogue.',
  })),
  missedDays: [],
  unreadable: [],
}

/** Sends both messages; the pauses are recorded instead of waited for. */
async function send(
  url: string,
  changes: Partial<WebhookOptions> = {},
  signal = new AbortController().signal,
): Promise<ChangeDelivery & { pauses: number[] }> {
  const pauses: number[] = []
  const sleep = async (ms: number): Promise<void> => void pauses.push(ms)
  const webhook = openWebhook({
    url,
    key: KEY,
    allowed: LOOPBACK ? [LOOPBACK] : [],
    messagesOf: () => MESSAGES,
    clock: () => NOW,
    sleep,
    ...changes,
  })
  onTestFinished(() => webhook.close())
  return { ...(await webhook.send(STEP, signal)), pauses }
}

test('a webhook posts each message once, with its id and time', async () => {
  const { url, requests } = await localSource((_request, response) => response.writeHead(204).end())
  expect(await send(`${url}/hook/?token=a`)).toEqual({ changes: 2, delivered: 2, failure: null, pauses: [] })
  expect(requests.map(({ method, target, body }) => [method, target, body])).toEqual(
    MESSAGES.map(({ body }) => ['POST', '/hook/?token=a', body]),
  )
  for (const [index, request] of requests.entries()) {
    expect(request.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': MESSAGES[index]?.id,
      'webhook-timestamp': String(Math.floor(NOW / 1000)),
    })
  }
})

test('a webhook is signed as the example of the specification', async () => {
  const { url, requests } = await localSource((_request, response) => response.end())
  const key = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' }
  await send(url, { key, messagesOf: () => [message], clock: () => 1_614_265_330_000 })
  expect(requests[0]?.headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
})

test('a message that fails twice is sent a third time with the same id, a new time and a new signature', async () => {
  let now = NOW
  const { url, requests } = await localSource((_request, response) => {
    now += 10_000
    response.writeHead(requests.length < 3 ? 503 : 200).end()
  })
  const delivery = await send(url, { clock: () => now })
  expect(delivery).toEqual({ changes: 2, delivered: 2, failure: null, pauses: [1_000, 5_000] })
  const [first, second, third] = requests
  expect([second, third].map((each) => each?.headers['webhook-id'])).toEqual(['urn:uuid:1', 'urn:uuid:1'])
  expect(first?.headers['webhook-timestamp']).not.toBe(third?.headers['webhook-timestamp'])
  expect(new Set(requests.slice(0, 3).map(({ headers }) => headers['webhook-signature'])).size).toBe(3)
})

test.each([
  [500, '3 tries'],
  [429, '3 tries'],
  [408, '3 tries'],
  [400, '1 try'],
  [410, '1 try'],
  [300, '1 try', '; redirects are not followed'],
])('a message that gets %i is given up after %s, and no other is sent', async (status, tries, why = '') => {
  const { url, requests } = await localSource((_request, response) => response.writeHead(status).end())
  const { changes, delivered, failure } = await send(`${url}/a-key`)
  expect([changes, delivered]).toEqual([2, 0])
  expect(failure).toBe(`${new URL(url).host} responded with ${status}${why} (${tries})`)
  const ids = requests.map(({ headers }) => headers['webhook-id'])
  expect(ids).toEqual(Array(Number.parseInt(tries)).fill('urn:uuid:1'))
})

test('a webhook that never responds is given up after three tries', async () => {
  const { url } = await localSource(() => undefined)
  const { delivered, failure } = await send(url, { timeoutMs: 50 })
  expect(delivered).toBe(0)
  expect(failure).toBe(`${new URL(url).host} gave no complete response within 50 ms (3 tries)`)
})

test('a webhook that cannot be reached is reported without the path of its address', async () => {
  const url = await unreachableUrl()
  const { failure } = await send(`${url}/a-key`)
  expect(failure).toMatch(/^127\.0\.0\.1:\d+ cannot be reached \((?!.*a-key).*\) \(3 tries\)$/)
})

test.each(['127.0.0.1', 'localhost'])(
  'a webhook at the private address %s is refused unless it is allowed',
  async (host) => {
    const { url, requests } = await localSource((_request, response) => response.end())
    const address = url.replace('127.0.0.1', host)
    const { delivered, failure, pauses } = await send(`${address}/a-key`, { allowed: [] })
    expect([delivered, pauses, requests.length]).toEqual([0, [], 0])
    expect(failure).toMatch(
      /is refused: .+ is not a public web address; see DASH_MODEL_WEBHOOK_ALLOW_PRIVATE \(1 try\)$/,
    )
  },
)

test('a delivery begins no message after a minute, and ends when it is interrupted', async () => {
  let now = NOW
  const slow = await localSource((_request, response) => {
    now += 61_000
    response.end()
  })
  const failure = `${new URL(slow.url).host} took more than 60 s`
  expect(await send(slow.url, { clock: () => now })).toMatchObject({ delivered: 1, failure })
  const controller = new AbortController()
  const hanging = await localSource(() => controller.abort())
  const interrupted = { delivered: 0, failure: 'the delivery was interrupted' }
  expect(await send(hanging.url, {}, controller.signal)).toMatchObject(interrupted)
})

function watchAt(url: string, pingMs = 60_000): JobMonitor {
  const watch = openJobPings({ url, timeoutMs: pingMs })
  onTestFinished(() => watch.close())
  return watch
}

test('the monitor receives the start, the end with exit status and message, and the note of a skipped run', async () => {
  const { url, pings } = await startPingService()
  const watch = watchAt(`${url}/ping/0c9a/`)
  await watch.started('collect')
  await watch.ended('collect', 69, 'lobsters failed: é')
  await watch.notify('collect', 'another works')
  expect(pings).toEqual([
    { what: 'POST /ping/0c9a/start', body: '' },
    { what: 'POST /ping/0c9a/69', body: 'lobsters failed: é' },
    { what: 'POST /ping/0c9a/log', body: 'another works' },
  ])
})

test("the monitor has one check per job if the URL names the job, and the URL's query is kept", async () => {
  const { url, pings } = await startPingService()
  const watch = watchAt(`${url}/KEY/dash-{job}?create=1`)
  await watch.ended('publish-year', 0, '')
  expect(pings).toMatchObject([{ what: 'POST /KEY/dash-publish-year/0?create=1' }])
})

test('the monitor receives the end of a message that is too long, in whole characters', async () => {
  const { url, pings } = await startPingService()
  await watchAt(url).ended('collect', 0, `${'é'.repeat(20_000)}the end`)
  expect(pings[0]?.body).toMatch(/^é{4000,}the end$/)
  expect(Buffer.byteLength(pings[0]?.body ?? '')).toBeLessThanOrEqual(10_000)
})

test('the monitor receives the end once more after a failure, and no third time', async () => {
  const flaky = await startPingService((response, count) => response.writeHead(count > 1 ? 200 : 502).end())
  await watchAt(flaky.url).ended('collect', 0, 'done')
  expect(flaky.pings.map(({ what }) => what)).toEqual(['POST /0', 'POST /0'])
  const down = await startPingService((response) => response.writeHead(404).end())
  await expect(watchAt(down.url).ended('collect', 0, 'done')).rejects.toThrow('responded with 404')
  expect(down.pings).toHaveLength(2)
})

test('a monitor that never responds is given up', async () => {
  const { url, pings } = await startPingService(() => undefined)
  await expect(watchAt(url, 200).started('collect')).rejects.toThrow('no complete response within 200 ms')
  expect(pings).toHaveLength(1)
})
