import { onTestFinished, expect, test } from 'vitest'
import { openRouter } from '../../../src/adapters/router.ts'
import type { RouterOptions } from '../../../src/adapters/router.ts'
import type { ChatCall, ModelRouter } from '../../../src/domain/models/router.ts'
import { localSource, unreachableUrl } from '../../support/local-source.ts'

const NOW = Date.UTC(2026, 2, 1)
const LIVING = new AbortController().signal

const CALL: ChatCall = {
  model: 'example/model-1:free',
  question: {
    kind: 'tool',
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
    key: 'secret',
    referer: 'http://127.0.0.1:3000',
    clock: () => NOW,
    ...changes,
  })
  onTestFinished(() => router.close())
  return router
}

test('gives no answer that repeats the key', async () => {
  const source = await localSource(({ headers }, response) => {
    response.setHeader('x-echo', String(headers['authorization']))
    response.end(`<html>${String(headers['authorization'])}</html>`)
  })
  const router = routerAt(source.url)
  for (const answer of [await router.chat(CALL, LIVING), await router.key(LIVING)]) {
    expect(answer.body).toBe('<html>Bearer (key)</html>')
    expect(JSON.stringify(answer)).not.toContain('secret')
  }
})

test('asks a model for nothing that could cost anything, and for no other model', async () => {
  const source = await localSource((_question, response) => response.end('{"choices":[]}'))
  const answer = await routerAt(`${source.url}/api/v1`).chat(CALL, LIVING)
  expect(answer).toMatchObject({ status: 200, ending: 'whole', body: '{"choices":[]}', endedAt: NOW })
  expect(answer.latencyMs).toBeGreaterThanOrEqual(0)
  const [question] = source.questions
  expect(question).toMatchObject({
    method: 'POST',
    target: '/api/v1/chat/completions',
    headers: {
      authorization: 'Bearer secret',
      'content-type': 'application/json',
      'http-referer': 'http://127.0.0.1:3000',
      'x-openrouter-title': 'dash',
      'x-openrouter-cache': 'false',
    },
  })
  expect(JSON.parse(question?.body ?? '')).toEqual({
    model: 'example/model-1:free',
    messages: [{ role: 'user', content: 'write a file' }],
    tools: [{ type: 'function', function: CALL.question.tools[0] }],
    max_tokens: 3_000,
    temperature: 0,
    reasoning: { effort: 'low' },
    stream: false,
    provider: { max_price: { prompt: 0, completion: 0 } },
  })
})

test('sends no tools, temperature or effort to a model that gets none', async () => {
  const source = await localSource((_question, response) => response.end('{}'))
  const question = { ...CALL.question, kind: 'text' as const, tools: [] }
  await routerAt(source.url).chat({ ...CALL, question, temperature: false, lowEffort: false }, LIVING)
  const body = JSON.parse(source.questions[0]?.body ?? '') as object
  expect(Object.keys(body)).toEqual(['model', 'messages', 'max_tokens', 'stream', 'provider'])
})

test('reads catalogue, key and endpoints by their paths', async () => {
  const source = await localSource((_question, response) => response.end('{}'))
  const router = routerAt(`${source.url}/v1`)
  await router.catalogue(LIVING)
  await router.key(LIVING)
  await router.endpoints('odd vendor/..?:free', LIVING)
  expect(source.questions.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'GET /v1/models',
    'GET /v1/key',
    'GET /v1/models/odd%20vendor/..%3F%3Afree/endpoints',
  ])
})

test('sends no key when it has none', async () => {
  const source = await localSource((_question, response) => response.end('{}'))
  const router = routerAt(source.url, { key: null })
  expect(router.hasKey).toBe(false)
  await router.catalogue(LIVING)
  expect(source.questions[0]?.headers.authorization).toBeUndefined()
})

test('follows no redirect: the key goes nowhere else', async () => {
  const elsewhere = await localSource((_question, response) => response.end('{}'))
  const source = await localSource((_question, response) => {
    response.writeHead(307, { location: `${elsewhere.url}/v1/key` }).end()
  })
  expect(await routerAt(source.url).key(LIVING)).toMatchObject({ status: 307 })
  expect(elsewhere.questions).toEqual([])
})

test('gives an error as an answer, with its headers', async () => {
  const source = await localSource((_question, response) => {
    response.writeHead(429, { 'Retry-After': '7', 'X-RateLimit-Limit': '20' }).end('<html>')
  })
  expect(await routerAt(source.url).chat(CALL, LIVING)).toMatchObject({
    status: 429,
    ending: 'whole',
    headers: { 'retry-after': '7', 'x-ratelimit-limit': '20' },
    body: '<html>',
  })
})

test.each([
  ['cut', 'breaks off'],
  ['too-large', 'never ends'],
  ['timeout', 'stops in the middle'],
] as const)('tells that an answer ended as %s when it %s, and keeps what came', async (ending, how) => {
  const source = await localSource((_question, response) => {
    response.writeHead(200)
    response.write('{"choices":')
    if (how === 'breaks off') setImmediate(() => response.destroy())
    if (how === 'never ends') response.end(Buffer.alloc(2 * 1024 * 1024, ' '))
  })
  const router = routerAt(source.url, how === 'stops in the middle' ? { chatTimeoutMs: 200 } : {})
  const answer = await router.chat(CALL, LIVING)
  expect(answer).toMatchObject({ status: 200, ending })
  expect(answer.body).toMatch(/^\{"choices":/)
  expect(answer.body.length).toBeLessThanOrEqual(1024 * 1024)
})

test('tells that nobody is there', async () => {
  expect(await routerAt(await unreachableUrl()).catalogue(LIVING)).toMatchObject({
    status: null,
    ending: 'unreachable',
    body: '',
  })
})

test('ends at once when it is told to', async () => {
  const stopping = new AbortController()
  const source = await localSource(() => stopping.abort(new Error('stopped')))
  await expect(routerAt(source.url).chat(CALL, stopping.signal)).rejects.toThrow('stopped')
  await expect(routerAt(source.url).chat(CALL, stopping.signal)).rejects.toThrow('stopped')
})
