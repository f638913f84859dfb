import { readFileSync } from 'node:fs'
import { OpenAI } from 'openai'
import { describe, expect, test } from 'vitest'
import { MODES } from '../../support/provider-wire.ts'
import type { Behaviour, ModeName } from '../../support/provider-wire.ts'
import { dayOf } from '../../../src/domain/time.ts'
import { CALLER_KEY, V1_RUN, errorBody, json, startV1, wholeCompletion } from '../../support/v1.ts'

const messages = [{ role: 'user' as const, content: 'Hello?' }]

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

test('HEAD asks for the headers of the list of models and of a model', async () => {
  const { url } = await startV1()
  for (const path of ['/v1/models', '/v1/models/auto']) {
    const [head, get] = await Promise.all(['HEAD', 'GET'].map((method) => fetch(url + path, { method })))
    expect([head?.status, await head?.text()]).toEqual([200, ''])
    expect(head?.headers.get('content-length')).toBe(get?.headers.get('content-length'))
  }
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

test('a byte order mark before a request or a whole completion is left out', async () => {
  const { post, upstream } = await startV1()
  const body = wholeCompletion({ content: 'Hi' })
  upstream.behave(json(`\uFEFF${body}`))
  const response = await post(`\uFEFF${JSON.stringify({ model: 'auto', messages })}`)
  expect(Buffer.from(await response.arrayBuffer()).toString()).toBe(body)
})

test('the reasoning of a message with calls is passed on', async () => {
  const { upstream, post } = await startV1()
  const file = new URL('../../fixtures/engines/reasoning_content.json', import.meta.url)
  const body = readFileSync(file, 'utf8')
  await (await post(body)).text()
  const sent = upstream.requests[0]?.body['messages']
  expect(sent).toEqual((JSON.parse(body) as { messages: unknown }).messages)
  expect(JSON.stringify(sent)).toContain('my thoughts')
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

test.each<[string, Behaviour | ModeName, number, string]>([
  ['a daily limit', json(errorBody(429, 'free-models-per-day'), 429), 429, 'account_daily_limit'],
  ['a failure of the service', '500 with HTML', 502, 'upstream_error'],
])(
  'the openai client with its default retries throws at once after %s',
  async (_name, behaviour, status, code) => {
    const { url, upstream } = await startV1()
    upstream.behave(behaviour)
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: CALLER_KEY })
    const error = await client.chat.completions
      .create({ model: 'auto', messages })
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ status, code })
    expect(upstream.requests).toHaveLength(1)
  },
)

test('a list names the best three models that meet the needs, and a ranked id is sent alone', async () => {
  const { upstream, post } = await startV1()
  const json_object = { response_format: { type: 'json_object' } }
  for (const request of [
    { model: 'auto' },
    { model: 'auto-json' },
    { model: 'auto', ...json_object },
    { model: 'maker/talker:free' },
  ])
    await (await post({ ...request, messages, stream: true })).text()
  const sent = upstream.requests.map(({ body }) => [body['model'], body['models']])
  expect(sent).toEqual([
    [undefined, ['maker/first:free', 'maker/second:free', 'maker/json:free']],
    [undefined, ['maker/json:free']],
    [undefined, ['maker/json:free']],
    ['maker/talker:free', undefined],
  ])
})

describe('the model that responds', () => {
  const end = dayOf(Date.now() + 5 * 86_400_000)
  const run = { ...V1_RUN, expirations: { 'maker/second:free': end } }
  const namedIn = async (response: Response): Promise<(string | null)[]> => {
    await response.text()
    return ['x-dash-model', 'sunset'].map((name) => response.headers.get(name))
  }

  test.each([true, false])(
    'the model that responds is the one that the service names (stream: %s)',
    async (stream) => {
      const { upstream, post } = await startV1({ run })
      const second = 'maker/second:free'
      upstream.behave(
        stream ? { ...MODES.answer, model: second } : json(wholeCompletion({ content: 'Hi' }, second)),
      )
      expect(await namedIn(await post({ model: 'auto', messages, stream }))).toEqual([
        second,
        new Date(end).toUTCString(),
      ])
    },
  )

  test('the model that responds is not stated if the service names none of the list', async () => {
    const { upstream, post } = await startV1({ run })
    for (const model of ['maker/talker:free', 'maker/second', 'other/paid\r\nset-cookie: a=b']) {
      upstream.behave({ ...MODES.answer, model })
      expect(await namedIn(await post({ model: 'auto', messages, stream: true }))).toEqual([null, null])
    }
  })

  test('the model that responds is the requested one if it was sent alone', async () => {
    const { upstream, post } = await startV1({ run })
    upstream.behave({ ...MODES.answer, model: 'maker/second-20260822' })
    const request = { model: 'maker/second:free', messages, stream: true }
    expect(await namedIn(await post(request))).toEqual(['maker/second:free', new Date(end).toUTCString()])
  })
})

test('a request declined with status 400 is repeated once without the id it names', async () => {
  const first = 'maker/first:free'
  const others = ['maker/second:free', 'maker/json:free']
  const { upstream, post } = await startV1()
  upstream.behave(json(errorBody(400, `${first} is not a valid model ID`), 400))
  const sent = post({ model: 'auto', messages, stream: true })
  await upstream.arrived(1)
  upstream.behave('answer')
  const response = await sent
  expect([response.status, response.headers.get('x-dash-model')]).toEqual([200, 'maker/second:free'])
  expect(upstream.requests.map(({ body }) => body['models'])).toEqual([[first, ...others], others])
  upstream.behave(json(errorBody(502, `${first} is down`), 502))
  expect((await post({ model: 'auto', messages })).status).toBe(502)
  expect(upstream.requests).toHaveLength(3)
  expect(new Set(upstream.requests.map(({ body }) => JSON.stringify(body['provider'])))).toEqual(
    new Set([JSON.stringify({ max_price: { prompt: 0, completion: 0, request: 0, image: 0 } })]),
  )
})
