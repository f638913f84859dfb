import { expect, test } from 'vitest'
import { MODES } from '../../support/provider.ts'

import { dayOf } from '../../../src/domain/time.ts'
import { CALLER_KEY, V1_RUN, errorBody, json, startV1, wholeCompletion } from './v1.ts'

const messages = [{ role: 'user' as const, content: 'Hello?' }]

test('the openai client lists auto models, then ranked ids with their measurements, and retrieves each', async () => {
  const { client, url } = await startV1()
  const { data } = await client.models.list()
  const ranked = ['first', 'second', 'json', 'talker'].map((name) => `maker/${name}:free`)
  expect(data.map(({ id }) => id)).toEqual(['auto', 'auto-tools', 'auto-json', 'auto-long', ...ranked])
  expect(data[2]).toMatchObject({ owned_by: 'dash', context_length: 131_072 })
  expect(data[4]).toMatchObject({
    owned_by: 'maker',
    context_length: 131_072,
    dash: { rank: 1, toolUse: 'proven', checkedAt: '2026-08-22T03:17:01.124Z' },
  })
  for (const model of data) expect(await client.models.retrieve(model.id)).toEqual(model)
  expect(await (await fetch(`${url}/v1/models/maker/first:free`)).json()).toEqual(data[4])
  for (const path of ['maker/other:free', 'dash', '%25FF'])
    expect((await fetch(`${url}/v1/models/${path}`)).status).toBe(404)
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

test('a whole completion is passed on byte for byte, but for a byte order mark before it or its request', async () => {
  const { post, upstream } = await startV1()
  const body = `${wholeCompletion({ content: 'Hi' })}  \n`
  upstream.behave(json(`\uFEFF${body}`))
  const response = await post(`\uFEFF${JSON.stringify({ model: 'auto', messages })}`)
  expect(Buffer.from(await response.arrayBuffer()).toString()).toBe(body)
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

const SECOND = 'maker/second:free'

test.each([
  ['the one that the service names in a stream', 'auto', SECOND, true, SECOND],
  ['the one that the service names in a whole completion', 'auto', SECOND, false, SECOND],
  ['not stated if the service names another of the ranking', 'auto', 'maker/talker:free', true, null],
  ['not stated if the service names a part of an id', 'auto', 'maker/second', true, null],
  ['not stated if the service names a header', 'auto', 'other/paid\r\nset-cookie: a=b', true, null],
  ['the requested one if it was sent alone', SECOND, 'maker/second-20260822', true, SECOND],
])('the model that responds is %s', async (_what, model, named, stream, expected) => {
  const end = dayOf(Date.now() + 5 * 86_400_000)
  const { upstream, post } = await startV1({ run: { ...V1_RUN, expirations: { [SECOND]: end } } })
  const whole = json(wholeCompletion({ content: 'Hi' }, named))
  upstream.behave(stream ? { ...MODES.answer, model: named } : whole)
  const response = await post({ model, messages, stream })
  await response.text()
  const sunset = expected === null ? null : new Date(end).toUTCString()
  expect(['x-dash-model', 'sunset'].map((name) => response.headers.get(name))).toEqual([expected, sunset])
})

test('a request is sent at a price of zero and without unknown fields, and repeated once without an id that a 400 names', async () => {
  const list = ['maker/first:free', 'maker/second:free', 'maker/json:free']
  const { upstream, post } = await startV1()
  upstream.behave(json(errorBody(400, 'maker/first:free is not a valid model ID'), 400))
  const sent = post({ model: 'auto', messages, stream: true, route: 'fallback' })
  await upstream.arrived(1)
  upstream.behave('answer')
  const response = await sent
  expect([response.status, response.headers.get('x-dash-model')]).toEqual([200, 'maker/second:free'])
  upstream.behave(json(errorBody(502, 'maker/first:free is down'), 502))
  expect((await post({ model: 'auto', messages })).status).toBe(502)
  const provider = { max_price: { prompt: 0, completion: 0, request: 0, image: 0 } }
  expect(upstream.requests.map(({ body }) => body)).toEqual([
    { models: list, messages, stream: true, provider },
    { models: list.slice(1), messages, stream: true, provider },
    { models: list, messages, stream: false, provider },
  ])
})
