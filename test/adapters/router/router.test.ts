import { expect, onTestFinished, test } from 'vitest'
import { openRouter } from '../../../src/adapters/router/router.ts'
import type { RouterOptions } from '../../../src/adapters/router/router.ts'
import type { ChatCall } from '../../../src/domain/models/evaluation.ts'
import type { ModelRouter } from '../../../src/domain/ports.ts'
import { jsonSource, localSource, unreachableUrl } from '../../support/local-source.ts'
import { SOURCE_UNAVAILABLE } from '../../support/refusals.ts'

const NOW = Date.UTC(2026, 2, 1)
const LIVING = new AbortController().signal

const CALL: ChatCall = {
  model: 'example/model-1:free',
  prompt: {
    messages: [{ role: 'user', content: 'write a file' }],
    tools: [{ name: 'write_file', description: 'writes', parameters: { type: 'object' } }],
    maxTokens: 900,
  },
  maxTokens: 3_000,
  temperature: true,
  lowEffort: true,
}

function routerAt(base: string, changes: Partial<RouterOptions> = {}): ModelRouter {
  const router = openRouter({
    base,
    key: 'sk-secret',
    referer: 'http://127.0.0.1:3000',
    userAgent: 'dash/test',
    clock: () => NOW,
    ...changes,
  })
  onTestFinished(() => router.close())
  return router
}

test('the router returns no text that contains the key', async () => {
  const source = await localSource(({ headers, target }, response) => {
    const key = String(headers['authorization']).replace('Bearer ', '')
    const error = { code: 403, message: key, metadata: { provider_name: key, headers: { [key]: key } } }
    response.writeHead(target === '/key' ? 403 : 200, { 'x-echo': key, 'retry-after': key })
    response.end(JSON.stringify(target === '/key' ? { error } : { choices: [{ message: { content: key } }] }))
  })
  const router = routerAt(source.url)
  const responses = [await router.chat(CALL, LIVING), await router.key(LIVING)]
  expect(responses).toMatchObject([{ response: { text: '(key)' } }, { failed: { providerName: '(key)' } }])
  expect(JSON.stringify(responses)).not.toContain('secret')
})

test('the router requests a model without cost and without fallback models', async () => {
  const source = await localSource((_question, response) => response.end('{"choices":[]}'))
  const response = await routerAt(`${source.url}/api/v1`).chat(CALL, LIVING)
  expect(response).toMatchObject({ class: 'invalid_answer', preview: '{"choices":[]}', endedAt: NOW })
  expect(response.latencyMs).toBeGreaterThanOrEqual(0)
  const [question] = source.requests
  expect(question).toMatchObject({
    method: 'POST',
    target: '/api/v1/chat/completions',
    headers: {
      authorization: 'Bearer sk-secret',
      'content-type': 'application/json',
      'http-referer': 'http://127.0.0.1:3000',
      'x-openrouter-title': 'dash',
      'x-openrouter-cache': 'false',
    },
  })
  expect(JSON.parse(question?.body ?? '')).toEqual({
    model: 'example/model-1:free',
    messages: [{ role: 'user', content: 'write a file' }],
    tools: [{ type: 'function', function: CALL.prompt.tools[0] }],
    max_tokens: 3_000,
    temperature: 0,
    reasoning: { effort: 'low' },
    stream: false,
    provider: { max_price: { prompt: 0, completion: 0 } },
  })
})

test('the router sends no tools, temperature or effort if a call has none', async () => {
  const source = await localSource((_question, response) => response.end('{}'))
  const prompt = { ...CALL.prompt, kind: 'text' as const, tools: [] }
  await routerAt(source.url).chat({ ...CALL, prompt, temperature: false, lowEffort: false }, LIVING)
  const body = JSON.parse(source.requests[0]?.body ?? '') as object
  expect(Object.keys(body)).toEqual(['model', 'messages', 'max_tokens', 'stream', 'provider'])
})

test('the router reads catalogue, key and endpoints by their paths, and sends no key if none is configured', async () => {
  const source = await localSource((_question, response) => response.end('{"data":[]}'))
  const router = routerAt(`${source.url}/v1`)
  await router.catalogue(LIVING)
  await router.key(LIVING)
  await router.endpoints('odd vendor/..?:free', LIVING)
  expect(source.requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'GET /v1/models',
    'GET /v1/key',
    'GET /v1/models/odd%20vendor/..%3F%3Afree/endpoints',
  ])
  const withoutKey = routerAt(source.url, { key: null })
  await withoutKey.catalogue(LIVING)
  expect([router.hasKey, withoutKey.hasKey]).toEqual([true, false])
  expect(source.requests.at(-1)?.headers.authorization).toBeUndefined()
})

test('the router returns the classification of an error, using its headers too', async () => {
  const source = await localSource((_question, response) => {
    response.writeHead(429, { 'Retry-After': '7', 'X-RateLimit-Limit': '20' }).end('<html>')
  })
  expect(await routerAt(source.url).chat(CALL, LIVING)).toMatchObject({
    class: 'account_minute',
    status: 429,
    retryAt: NOW + 7_000,
    limit: 20,
    preview: '<html>',
  })
})

test.each([
  ['invalid_answer', 'breaks off'],
  ['invalid_answer', 'never ends'],
  ['timeout', 'stops in the middle'],
] as const)('the router reports %s when it %s, and keeps the received data', async (kind, how) => {
  const source = await localSource((_question, response) => {
    response.writeHead(200)
    response.write('{"choices":')
    if (how === 'breaks off') setImmediate(() => response.destroy())
    if (how === 'never ends') response.end(Buffer.alloc(2 * 1024 * 1024, ' '))
  })
  const router = routerAt(source.url, how === 'stops in the middle' ? { chatTimeoutMs: 200 } : {})
  const response = await router.chat(CALL, LIVING)
  expect(response).toMatchObject({ status: null, class: kind, preview: '{"choices":' })
})

test('the router reports an unreachable service', async () => {
  const outcome = await routerAt(await unreachableUrl()).chat(CALL, LIVING)
  expect(outcome).toMatchObject({ status: null, correlated: 'service_down', preview: 'unreachable' })
})

const ROW = { id: 'a/b:free', pricing: { prompt: '0', completion: '0' } }
const LATER = 'try again later, or correct OPENROUTER_BASE_URL'

test('the catalogue contains every model that the service lists', async () => {
  const source = await jsonSource({ data: [ROW, {}] })
  const catalogue = await routerAt(source.url).catalogue(LIVING)
  expect(catalogue).toMatchObject({ models: [{ id: 'a/b:free' }], badRows: 1 })
})

test('a placeholder for a key, as for a gateway, alters no id', async () => {
  const source = await jsonSource({ data: [ROW] })
  expect(await routerAt(source.url, { key: 'b' }).catalogue(LIVING)).toMatchObject({ badRows: 0 })
})

async function brokenUrl(): Promise<string> {
  const source = await localSource((_question, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy())
  })
  return source.url
}

test.each([
  ['an error', 503, '{"data":[]}', `: responded with 503; ${LATER}`],
  ['HTML', 200, '<html>', ' is not a model catalogue; correct OPENROUTER_BASE_URL'],
  ['another list', 200, '{"models":[]}', ' is not a model catalogue; correct OPENROUTER_BASE_URL'],
  ['too much', 200, ' '.repeat(33 * 1024 * 1024), `: the response is larger than 32 MiB; ${LATER}`],
])('the catalogue is unavailable if the service sends %s', async (_what, status, body, why) => {
  const source = await localSource((_question, response) => response.writeHead(status).end(body))
  await expect(routerAt(source.url).catalogue(LIVING)).rejects.toMatchObject({
    code: 'source_unavailable',
    detail: `${source.url}/models${why}`,
  })
})

test.each([
  ['the service is unreachable', unreachableUrl, String.raw`cannot be reached \(connect ECONNREFUSED .+\)`],
  ['its response breaks off', brokenUrl, String.raw`the response broke off \(.+\)`],
])('the catalogue is unavailable if %s, with the reason', async (_what, urlOf, reason) => {
  const url = await urlOf()
  const detail = expect.stringMatching(`^${url}/models: ${reason}; ${LATER}$`) as string
  await expect(routerAt(url).catalogue(LIVING)).rejects.toMatchObject({ ...SOURCE_UNAVAILABLE, detail })
})

test.each([
  [200, '{"data":{"free_model_daily_requests":{"limit":50,"used":3}}}', { facts: { limit: 50, used: 3 } }],
  [200, '<html>', { facts: null }],
  [401, '{"error":{"code":401,"message":"No"}}', { failed: { class: 'account_key', status: 401 } }],
  [503, '<html>', { failed: { class: 'ambiguous', status: 503 } }],
])(
  'the router reports the requests left for a key, or the reason they are unknown: %i %s',
  async (status, body, expected) => {
    const source = await localSource((_question, response) => response.writeHead(status).end(body))
    expect(await routerAt(source.url).key(LIVING)).toMatchObject(expected)
  },
)

const OF_ENDPOINTS = { model: 'a/b:free', checkedAt: NOW, latencyMs: null }

test.each([
  [200, '{"data":{"endpoints":[{"status":0}]}}', { facts: { ...OF_ENDPOINTS, usable: true } }],
  [200, '<html>', { facts: null }],
  [404, '<html>', { facts: { ...OF_ENDPOINTS, usable: false } }],
  [503, '<html>', { facts: null }],
  [401, '<html>', { failed: { preview: '<html>' } }],
])(
  'the router reports the endpoints of a model, or that the key is rejected: %i %s',
  async (status, body, expected) => {
    const source = await localSource((_question, response) => response.writeHead(status).end(body))
    expect(await routerAt(source.url).endpoints('a/b:free', LIVING)).toMatchObject(expected)
  },
)

test('the router ends at once when it is aborted', async () => {
  const stopping = new AbortController()
  const source = await localSource(() => stopping.abort(new Error('stopped')))
  await expect(routerAt(source.url).chat(CALL, stopping.signal)).rejects.toThrow('stopped')
  await expect(routerAt(source.url).chat(CALL, stopping.signal)).rejects.toThrow('stopped')
})
