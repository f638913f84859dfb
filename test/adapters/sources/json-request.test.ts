import type { ServerResponse } from 'node:http'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openSourceAgent, requestJson } from '../../../src/adapters/sources/json-request.ts'
import type { JsonRequest } from '../../../src/adapters/sources/json-request.ts'
import { jsonSource, localSource, unreachableUrl } from '../../support/local-source.ts'
import { SOURCE_UNAVAILABLE } from '../refusals.ts'

const MIB = 1024 * 1024

function ask(request: JsonRequest, signal: AbortSignal = new AbortController().signal): Promise<unknown> {
  const agent = openSourceAgent()
  onTestFinished(() => agent.destroy())
  return requestJson(agent, request, signal)
}

const html = '<!doctype html><title>Just a moment...</title>'

/** Ways to answer that are no answer. */
const MISBEHAVIOURS: Record<string, (response: ServerResponse) => void> = {
  'a server error': (response) => response.writeHead(500).end('{"error":"internal"}'),
  'a server error of two megabytes': (response) => response.writeHead(502).end('x'.repeat(2 * MIB)),
  'a rate limit': (response) => response.writeHead(429, { 'retry-after': '60' }).end('{}'),
  'a refusal': (response) => response.writeHead(403).end('{}'),
  'a redirection': (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
  'no content': (response) => response.writeHead(204).end(),
  'another success': (response) => response.writeHead(201).end('{}'),
  'an HTML page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(html),
  'an HTML page that says it is JSON': (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(html),
  nothing: (response) => response.writeHead(200).end(),
  'half a document': (response) => response.writeHead(200).end('{"id":1,"title":"a'),
  'two documents': (response) => response.writeHead(200).end('{}{}'),
  'bytes that are not UTF-8': (response) =>
    response.writeHead(200).end(Buffer.from([0x22, 0xc3, 0x28, 0x22])),
  'a body that ends too early': (response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('{"id":1}')
    response.socket?.end()
  },
  'a chunked body that is cut': (response) => {
    response.writeHead(200)
    response.write('{"id":1}')
    response.socket?.resetAndDestroy()
  },
  'a reset connection': (response) => response.socket?.resetAndDestroy(),
  'a closed connection': (response) => response.socket?.destroy(),
  'something that is not HTTP': (response) => response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n'),
  'a body of two megabytes': (response) => response.writeHead(200).end(JSON.stringify('x'.repeat(2 * MIB))),
  'a body that never ends': (response) => {
    response.writeHead(200)
    const more = (): void => {
      while (!response.destroyed && response.write('"'.padEnd(64 * 1024, 'x'))) continue
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  },
}

describe('a question to a source', () => {
  test.each([
    ['an object', { id: 8863, title: 'Größe “quoted” 😀 \u2028' }],
    ['a list', [1, 2, 3]],
    ['null', null],
    ['a text', 'x'],
  ])('is answered by %s', async (_what, document) => {
    const { url, questions } = await jsonSource(document)
    expect(await ask({ url: `${url}/item/8863.json` })).toEqual(document)
    expect(questions).toEqual([
      expect.objectContaining({ method: 'GET', target: '/item/8863.json', body: '' }),
    ])
    expect(questions[0]?.headers).toMatchObject({
      accept: 'application/json',
      'user-agent': expect.stringContaining('dash') as string,
    })
  })

  test('with a body is sent as JSON', async () => {
    const { url, questions } = await jsonSource({})
    await ask({ url, body: { query: 'q', variables: { id: 'ä' } } })
    expect(questions[0]).toMatchObject({ method: 'POST', body: '{"query":"q","variables":{"id":"ä"}}' })
    expect(questions[0]?.headers['content-type']).toBe('application/json')
  })

  test.each([404, 410])('answered with %i finds nothing', async (status) => {
    const { url } = await localSource((_question, response) => response.writeHead(status).end(html))
    expect(await ask({ url })).toBeNull()
  })

  test('takes an answer of nearly a megabyte', async () => {
    const { url } = await jsonSource('x'.repeat(MIB - 2))
    expect(await ask({ url })).toHaveLength(MIB - 2)
  })

  test.each(Object.entries(MISBEHAVIOURS))(
    'answered with %s makes the source unavailable',
    async (_what, answer) => {
      const { url } = await localSource((_question, response) => answer(response))
      await expect(ask({ url: `${url}/item/1.json` })).rejects.toMatchObject({
        ...SOURCE_UNAVAILABLE,
        detail: expect.stringContaining(`${url}/item/1.json: `) as string,
      })
    },
  )

  test('to a port nobody listens on makes the source unavailable', async () => {
    await expect(ask({ url: await unreachableUrl() })).rejects.toMatchObject(SOURCE_UNAVAILABLE)
  })

  test.each(['http://name.invalid/', 'not a URL', 'ftp://127.0.0.1/'])(
    'to %s makes the source unavailable',
    async (url) => {
      await expect(ask({ url })).rejects.toMatchObject(SOURCE_UNAVAILABLE)
    },
  )

  test('is asked anew after a failure, on the same connections', async () => {
    let asked = 0
    const { url } = await localSource((_question, response) => {
      asked += 1
      if (asked === 1) response.socket?.resetAndDestroy()
      else response.end('{"id":1}')
    })
    const agent = openSourceAgent()
    onTestFinished(() => agent.destroy())
    const signal = new AbortController().signal
    await expect(requestJson(agent, { url }, signal)).rejects.toMatchObject(SOURCE_UNAVAILABLE)
    expect(await requestJson(agent, { url }, signal)).toEqual({ id: 1 })
    expect(asked).toBe(2)
  })
})

test('an answer that drips in for ever is given up when its time is over', async () => {
  const source = await localSource((_question, response) => {
    response.writeHead(200)
    const drip = setInterval(() => response.write(' '), 5)
    response.once('close', () => clearInterval(drip))
  })
  const agent = openSourceAgent()
  onTestFinished(() => agent.destroy())
  const { signal } = new AbortController()
  await expect(requestJson(agent, { url: source.url }, signal, 60)).rejects.toMatchObject({
    ...SOURCE_UNAVAILABLE,
    detail: expect.stringContaining('no answer within 60 ms') as string,
  })
})

describe('an aborted question to a source', () => {
  const reason = new Error('the run was ended')

  test.each([
    ['before any answer', () => undefined],
    [
      'in the middle of an answer',
      (response: ServerResponse) => {
        response.writeHead(200)
        response.write('{"id":')
      },
    ],
  ])('rejects with the reason at once: %s', async (_what, answer) => {
    const { url, questions } = await localSource((_question, response) => answer(response))
    const controller = new AbortController()
    const asking = ask({ url }, controller.signal)
    const outcome = expect(asking).rejects.toBe(reason)
    await vi.waitUntil(() => questions.length === 1, { interval: 1, timeout: 5_000 })
    const abortedAt = performance.now()
    controller.abort(reason)
    await outcome
    // Far from the ten seconds after which it would have ended by itself.
    expect(performance.now() - abortedAt).toBeLessThan(3_000)
  })

  test('is never sent when it was aborted before', async () => {
    const { url, questions } = await jsonSource({})
    await expect(ask({ url }, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(questions).toEqual([])
  })
})
