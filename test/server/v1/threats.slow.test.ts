import { once } from 'node:events'
import { expect, test, vi } from 'vitest'
import { Refusal } from '../../../src/domain/refusal.ts'
import { localSource } from '../../support/local-source.ts'
import { CALLER_KEY, errorBody, json, startV1, wholeCompletion } from './v1.ts'

const messages = [{ role: 'user', content: 'Hello?' }]

const codeOf = async (response: Response): Promise<[number, unknown]> => {
  const { error } = (await response.json()) as { error: { code: string; message: string; type: string } }
  expect([typeof error.message, typeof error.type]).toEqual(['string', 'string'])
  return [response.status, error.code]
}

test.each(['openai/gpt-5', 'maker/first:free:online', 'Maker/First:free', '@preset/mine'])(
  'the model %j is not found and is never requested',
  async (model) => {
    const { upstream, post } = await startV1()
    expect(await codeOf(await post({ model, messages }))).toEqual([404, 'model_not_found'])
    expect(upstream.requests).toEqual([])
  },
)

test('a request beyond the bounds of JSON, and one with a tool of the service, is refused and never sent', async () => {
  const { upstream, post } = await startV1()
  const deep = `{"model":"auto","tools":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`
  const server = { model: 'auto', messages, tools: [{ type: 'openrouter:web_search' }] }
  for (const body of [deep, server]) expect(await codeOf(await post(body))).toEqual([400, 'invalid_request'])
  expect(upstream.requests).toEqual([])
})

test('headers of the caller other than the key do not pass', async () => {
  const { upstream, post } = await startV1()
  const headers = {
    'x-title': 'mine',
    cookie: 'a=b',
    'x-openrouter-cache': 'true',
    'openai-organization': 'o',
  }
  await post({ model: 'auto', messages, stream: true }, headers)
  expect(
    Object.keys(upstream.requests[0]?.headers ?? {})
      .toSorted()
      .join(' '),
  ).toBe(
    'accept accept-encoding authorization connection content-length content-type host http-referer user-agent x-openrouter-title',
  )
})

test('a key counts in its header alone, and headers of the routing service do not pass', async () => {
  const { upstream, url, lines, post } = await startV1()
  const response = await fetch(`${url}/v1/chat/completions?api_key=${CALLER_KEY}`, {
    method: 'POST',
    headers: { authorization: `Basic ${CALLER_KEY}` },
    body: JSON.stringify({ model: 'auto', messages }),
  })
  expect(await codeOf(response)).toEqual([401, 'missing_api_key'])
  expect(upstream.requests).toEqual([])
  expect(lines.join()).not.toContain(CALLER_KEY)
  const extra = { 'set-cookie': 'a=b', 'x-echo': CALLER_KEY, 'access-control-allow-origin': '*' }
  upstream.behave(json(wholeCompletion({ content: 'Hi' }), 200, extra))
  const { status, headers } = await post({ model: 'auto', messages }, { origin: 'https://other.example' })
  expect([status, ...Object.keys(extra).filter((name) => headers.has(name))]).toEqual([200])
})

const refuse = () => Promise.reject(new Refusal('disabled'))
const answerAsAny = () => Promise.resolve(() => Promise.resolve(new Response('dash')))
test.each([
  ['dash without a chat', 'dash', {}, 404],
  ['another model with a key of this server', 'auto', { answerAsDash: answerAsAny }, 401],
  ['dash that is switched off', 'dash', { answerAsDash: refuse }, 503],
])('requests for %s count by their address', async (_name, model, ports, status) => {
  const now = Date.UTC(2026, 7, 22, 12)
  const { post } = await startV1({ ports: { clock: () => now, ...ports } })
  const statuses = []
  for (let index = 0; index < 61; index += 1) {
    const headers = { authorization: `Bearer dck_${String(index).padStart(43, 'A')}` }
    statuses.push((await post({ model, messages }, headers)).status)
  }
  expect(statuses).toEqual([...Array<number>(60).fill(status), 429])
})

test('a request that no model fits gets its needs and the reason for each model', async () => {
  const { post, upstream } = await startV1()
  const tools = [{ type: 'function', function: {} }]
  const whole = await post({ model: 'auto', messages, max_tokens: 200_000, tools })
  const { error } = (await whole.json()) as { error: { needs: string[]; rejected: Record<string, string> } }
  expect([whole.status, error]).toMatchObject([422, { code: 'no_free_model' }])
  expect(error.needs).toContain('tools')
  expect(error.rejected['maker/first:free']).toMatch(/^a context of 131072 tokens, but about 200\d\d\d are/)
  expect(error.rejected['maker/talker:free']).toContain('tool use is disproven')
  expect(upstream.requests).toEqual([])
})

test('no request is passed on without a stored ranking', async () => {
  const { post, client, upstream } = await startV1({ run: null })
  expect(await codeOf(await post({ model: 'auto', messages }))).toEqual([503, 'no_ranking'])
  const ids = (await client.models.list()).data.map(({ id }) => id)
  expect(ids).toEqual(['auto', 'auto-tools', 'auto-json', 'auto-long'])
  expect(upstream.requests).toEqual([])
})

test('keys that the routing service rejects close the address', async () => {
  const { upstream, post } = await startV1()
  upstream.behave(json(errorBody(401, 'No auth credentials found'), 401))
  const codes: unknown[] = []
  for (let index = 0; index < 11; index += 1)
    codes.push((await codeOf(await post({ model: 'auto', messages })))[1])
  expect(codes).toEqual([...Array<string>(10).fill('invalid_api_key'), 'too_many_rejected_keys'])
  expect(upstream.requests).toHaveLength(10)
})

test('an address has 25 open streams, whose places are free once its client leaves', async () => {
  const { post, upstream } = await startV1()
  upstream.behave('silence after first event')
  const request = { model: 'auto', messages, stream: true }
  const open = await Promise.all(Array.from({ length: 25 }, () => post(request)))
  expect(open.every(({ status }) => status === 200)).toBe(true)
  expect(await codeOf(await post(request))).toEqual([429, 'too_many_streams'])
  for (const { body } of open) await body?.cancel()
  await Promise.all(upstream.requests.map(({ closed }) => closed))
  upstream.behave('answer')
  expect((await post(request)).status).toBe(200)
})

test('a client that stops reading stops the routing service, and its end closes the connection', async () => {
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(60_000) } }] })}\n\n`
  let written = 0
  let closed: Promise<unknown> = Promise.resolve()
  const upstream = await localSource(async (_request, response) => {
    closed = once(response, 'close')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let isOpen = true; isOpen; written += event.length)
      if (!response.write(event))
        isOpen = await Promise.race([once(response, 'drain').then(() => true), closed.then(() => false)])
  })
  const { post } = await startV1({ base: upstream.url })
  // Nothing reads its body.
  const { body } = await post({ model: 'auto', messages, stream: true })
  await vi.waitFor(() => expect(written).toBeGreaterThan(event.length), 60_000)
  const mostBytes = 32 * 1024 * 1024
  await vi.waitUntil(async () => {
    const before = written
    await pause(200)
    return written === before || written >= mostBytes
  }, 60_000)
  // Only the buffers of the system and of the two connections are filled.
  expect(written).toBeLessThan(mostBytes)
  await body?.cancel()
  await closed
})

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
