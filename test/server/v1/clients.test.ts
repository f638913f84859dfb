import { APIError, OpenAI } from 'openai'
import { expect, test } from 'vitest'
import type { Behaviour, ModeName, ModelOutput } from '../../support/provider-wire.ts'
import { dayOf } from '../../../src/domain/time.ts'
import { CALLER_KEY, V1_RUN, errorBody, json, startV1, wholeCompletion } from '../../support/v1.ts'

const messages = [{ role: 'user' as const, content: 'Hello?' }]
const tools = [
  {
    type: 'function' as const,
    function: { name: 'look_up', parameters: { type: 'object', properties: {} } },
  },
]

test('the openai client lists auto models first, then ranked ids with their measurements', async () => {
  const { client } = await startV1()
  const models = []
  for await (const model of client.models.list()) models.push(model)
  expect(models.map(({ id }) => id)).toEqual([
    'auto',
    'auto-tools',
    'auto-json',
    'auto-long',
    'maker/first:free',
    'maker/second:free',
    'maker/json:free',
    'maker/talker:free',
  ])
  expect(models[2]).toMatchObject({ owned_by: 'dash', context_length: 131_072 })
  expect(models[4]).toMatchObject({
    owned_by: 'maker',
    context_length: 131_072,
    dash: { rank: 1, toolUse: 'proven', checkedAt: '2026-08-22T03:17:01.124Z' },
  })
})

test('the openai client retrieves every model that it lists', async () => {
  const { client, url } = await startV1()
  const { data } = await client.models.list()
  for (const model of data) expect(await client.models.retrieve(model.id)).toEqual(model)
  expect(await (await fetch(`${url}/v1/models/maker/first:free`)).json()).toEqual(data[4])
  for (const path of ['maker/other:free', 'dash', '%25FF'])
    expect((await fetch(`${url}/v1/models/${path}`)).status).toBe(404)
})

test('the model dash is listed only if the chat is set up', async () => {
  const answerAsDash = () => Promise.resolve(() => Promise.resolve(new Response('dash')))
  const { client } = await startV1({ ports: { answerAsDash } })
  expect((await client.models.list()).data[0]?.id).toBe('dash')
})

test('the openai client streams a completion of the best model', async () => {
  const { client, upstream } = await startV1()
  const { data, response } = await client.chat.completions
    .create({ model: 'auto', messages, stream: true, stream_options: { include_usage: true } })
    .withResponse()
  let text = ''
  let total = 0
  for await (const chunk of data) {
    text += chunk.choices[0]?.delta.content ?? ''
    total += chunk.usage?.total_tokens ?? 0
  }
  expect([text, total]).toEqual(['Hello Да 👩‍🚀 é', 120])
  expect(response.headers.get('x-dash-model')).toBe('maker/first:free')
  expect(response.headers.get('x-dash-ranking-version')).toMatch(/^2026-08-22\.v\d+$/)
  expect(response.headers.get('x-dash-attempts')).toBe('1')
  expect(upstream.requests[0]?.headers.authorization).toBe(`Bearer ${CALLER_KEY}`)
})

test('the openai client gets a whole completion, byte for byte', async () => {
  const { client, upstream, post } = await startV1()
  const body = `${wholeCompletion({ content: 'Hello.' })}  \n`
  upstream.behave(json(body))
  const { choices } = await client.chat.completions.create({ model: 'maker/first:free', messages })
  expect(choices[0]?.message.content).toBe('Hello.')
  expect(await (await post({ model: 'auto', messages })).text()).toBe(body)
})

test('the openai client gets tool calls from a model whose tool use is proven', async () => {
  const { client, upstream } = await startV1()
  const call: ModelOutput = { call: { id: 'call_1', name: 'look_up', arguments: '{"a":1}' } }
  upstream.behave({ rounds: [[call, { end: 'completed' }]] })
  const runner = client.chat.completions.stream({ model: 'auto', messages, tools })
  const { choices } = await runner.finalChatCompletion()
  expect(choices[0]?.message.tool_calls?.[0]).toMatchObject({
    function: { name: 'look_up', arguments: '{"a":1}' },
  })
  expect(upstream.requests[0]?.body['tools']).toEqual(tools)
})

test('the openai client gets JSON from a model with structured outputs', async () => {
  const { client, upstream } = await startV1()
  upstream.behave(json(wholeCompletion({ content: '{"a":1}' })))
  const { data, response } = await client.chat.completions
    .create({ model: 'auto', messages, response_format: { type: 'json_object' } })
    .withResponse()
  expect(data.choices[0]?.message.content).toBe('{"a":1}')
  expect(response.headers.get('x-dash-model')).toBe('maker/json:free')
  expect(upstream.requests[0]?.body['response_format']).toEqual({ type: 'json_object' })
})

test('an abort of the openai client ends the request to the routing service', async () => {
  const { client, upstream } = await startV1()
  upstream.behave('silence after first event')
  const stream = await client.chat.completions.create({ model: 'auto', messages, stream: true })
  for await (const _chunk of stream) stream.controller.abort()
  await upstream.requests[0]?.closed
  expect(upstream.requests).toHaveLength(1)
})

test('an abort before the first event ends the request to the routing service', async () => {
  const { client, upstream } = await startV1()
  upstream.behave('silence before headers')
  const controller = new AbortController()
  const sent = client.chat.completions.create(
    { model: 'auto', messages, stream: true },
    { signal: controller.signal },
  )
  await Promise.all([
    expect(sent).rejects.toThrow('aborted'),
    upstream.arrived(1).then(() => controller.abort()),
  ])
  await upstream.requests[0]?.closed
})

test('the openai client throws an error when a stream breaks off', async () => {
  const { client, upstream } = await startV1()
  upstream.behave('reset')
  const stream = await client.chat.completions.create({ model: 'auto', messages, stream: true })
  let text = ''
  const read = async (): Promise<void> => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
  }
  const error = await read().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(APIError)
  expect([text, (error as APIError).code]).toEqual(['Hello ', 'truncated'])
})

const RESET = { 'x-ratelimit-reset': String(Date.now() + 3_600_000) }

test.each<[string, Behaviour | ModeName, number, string, number]>([
  ['a daily limit', json(errorBody(429, 'free-models-per-day'), 429), 429, 'account_daily_limit', 1],
  ['a reset in an hour', json(errorBody(429, 'Slow down'), 429, RESET), 429, 'account_daily_limit', 1],
  [
    'limits of three models',
    json(errorBody(429, 'Busy', { provider_name: 'P' }), 429),
    429,
    'model_rate_limited',
    3,
  ],
  ['failures of three models', '500 with HTML', 502, 'upstream_error', 3],
  ['HTML', 'HTML 200', 502, 'invalid_upstream_response', 1],
])(
  'the openai client with its default retries throws at once after %s',
  async (_name, behaviour, status, code, sent) => {
    const { url, upstream } = await startV1()
    upstream.behave(behaviour)
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: CALLER_KEY })
    const error = await client.chat.completions
      .create({ model: 'auto', messages })
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ status, code })
    expect(upstream.requests).toHaveLength(sent)
  },
)

test('a conversation keeps its model after that model was rate-limited once', async () => {
  const { upstream, post } = await startV1()
  const limited = json(
    JSON.stringify({ error: { code: 429, metadata: { limit_source: 'upstream_provider_shared_pool' } } }),
    429,
  )
  upstream.behave(limited, 'maker/first:free')
  const modelOf = async (body: object): Promise<string | null> => {
    const response = await post({ model: 'auto', stream: true, ...body })
    await response.text()
    return response.headers.get('x-dash-model')
  }
  const answer = { role: 'assistant', content: 'Hi' }
  expect(await modelOf({ messages })).toBe('maker/second:free')
  upstream.behave('answer', 'maker/first:free')
  expect(await modelOf({ messages: [...messages, answer, ...messages] })).toBe('maker/second:free')
  expect(await modelOf({ messages: [...messages, answer, ...messages, answer, ...messages] })).toBe(
    'maker/second:free',
  )
  expect(await modelOf({ messages: [{ role: 'user', content: 'Another one' }] })).toBe('maker/first:free')
})

test('a request for a ranked id does not change the model of auto', async () => {
  const { post } = await startV1()
  const models = []
  for (const model of ['auto', 'maker/talker:free', 'auto']) {
    const response = await post({ model, messages, stream: true })
    await response.text()
    models.push(response.headers.get('x-dash-model'))
  }
  expect(models).toEqual(['maker/first:free', 'maker/talker:free', 'maker/first:free'])
})

test('a model that ends within 14 days is announced by Deprecation and Sunset, and no other', async () => {
  const end = dayOf(Date.now() + 5 * 86_400_000)
  const { client } = await startV1({ run: { ...V1_RUN, expirations: { 'maker/first:free': end } } })
  for (const [model, sunset] of [
    ['auto', new Date(end).toUTCString()],
    ['maker/second:free', null],
  ] as const) {
    const { response } = await client.chat.completions
      .create({ model, messages, stream: true })
      .withResponse()
    const { headers } = response
    const deprecated = sunset === null ? null : `@${Date.parse(end) / 1000 - 14 * 86_400}`
    expect([headers.get('sunset'), headers.get('deprecation')]).toEqual([sunset, deprecated])
  }
})
