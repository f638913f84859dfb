import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as sendRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { CHAT_KEY_BYTES, digestOfKey, formatChatKey } from '../../../src/domain/agent/credentials.ts'
import type { ChatKeyQuota } from '../../../src/domain/agent/credentials.ts'
import { DAY_LIMITS, sessionOf, startAgent, chat, chatBody } from '../../support/agent.ts'
import type { AgentServer, AgentServerOptions } from '../../support/agent.ts'
import { ranges } from '../../adapters/articles/pages.ts'

const ANSWER = 'Hello Да 👩‍🚀 é'
const MESSAGES: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'What is new?' }]

const STREAMED = { model: 'dash', messages: MESSAGES, stream: true } as const

function clientOf({ url }: AgentServer, apiKey: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
}

/** Stores a new key with a quota; the key. */
async function keyOf({ keys }: AgentServer, quota: Partial<ChatKeyQuota> & { name?: string } = {}) {
  const key = formatChatKey(randomBytes(CHAT_KEY_BYTES))
  const stored = { name: 'server', perDay: 1_000, perMinute: 1_000, ...quota }
  const digest = digestOfKey(key) ?? ''
  expect(await keys.create({ ...stored, digest, createdAt: Date.now() })).toBe(true)
  return key
}

async function startWithClient(
  options: AgentServerOptions = {},
): Promise<{ server: AgentServer; key: string; client: OpenAI }> {
  const server = await startAgent(options)
  const key = await keyOf(server)
  return { server, key, client: clientOf(server, key) }
}

const whole = (client: OpenAI, messages = MESSAGES): Promise<OpenAI.ChatCompletion> =>
  client.chat.completions.create({ model: 'dash', messages })

async function errorOf(promise: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof OpenAI.APIError)) throw new Error(`not an API error: ${String(error)}`)
  return error
}

/** Sends a raw request to the completions, with a body as text. */
const post = (
  { url, query = '' }: { url: string; query?: string },
  headers: Record<string, string>,
  body = JSON.stringify({ model: 'dash', messages: MESSAGES }),
): Promise<Response> => fetch(`${url}/v1/chat/completions${query}`, { method: 'POST', headers, body })

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })

describe('the openai client', () => {
  test('a whole answer has its text, usage and model', async () => {
    const { client, server, key } = await startWithClient({ provider: 'three rounds of tools' })
    const completion = await whole(client)
    const message = { role: 'assistant', content: `Let me see. \n\n${ANSWER}` }
    expect(completion).toMatchObject({
      object: 'chat.completion',
      model: 'dash',
      choices: [{ index: 0, finish_reason: 'stop', message }],
      usage: { prompt_tokens: 300, completion_tokens: 60, total_tokens: 360 },
    })
    await server.settled()
    expect(completion.id).toBe(`chatcmpl-${String(server.turns()[0]?.['turn'])}`)
    expect(server.turns()).toMatchObject([{ terminal: 'done', calls: 2 }])
    expect(JSON.stringify([server.lines, server.provider.requests])).not.toContain(key)
  })

  test('a streamed answer begins with the role, and ends with the reason, the usage and [DONE]', async () => {
    const { client, server, key } = await startWithClient()
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of await client.chat.completions.create(STREAMED)) chunks.push(chunk)
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' })
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(ANSWER)
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
    expect(chunks.at(-1)?.usage?.total_tokens).toBeGreaterThanOrEqual(0)
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    const raw = await post(server, bearer(key), JSON.stringify(STREAMED))
    expect(raw.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect((await raw.text()).endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('contents are texts or lists of parts, and a system message has no more authority than a user', async () => {
    const { client, server } = await startWithClient()
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } } as const
    await whole(client, [
      { role: 'system', content: 'Answer in rhymes.' },
      { role: 'assistant', content: null },
      { role: 'user', content: [{ type: 'text', text: 'What is' }, image, { type: 'text', text: 'new?' }] },
    ])
    const input = server.provider.requests[0]?.body['messages'] as { role: string; content: string }[]
    const sent = input.filter(({ content }) => /rhymes|What is/.test(JSON.stringify(content)))
    expect(sent.map(({ role }) => role)).toEqual(['user'])
    expect(JSON.stringify(sent[0])).toContain('What is\\nnew?')
  })

  test.each([
    ['aborted by its client', 60_000, 'gone'],
    ['that takes too long', 100, 'error'],
  ])(
    'a whole answer %s ends the request to the provider and settles the turn',
    async (why, turnMs, terminal) => {
      const { client, server } = await startWithClient({
        provider: 'silence before headers',
        settings: { turnMs },
      })
      const controller = new AbortController()
      const sent = errorOf(
        client.chat.completions.create({ model: 'dash', messages: MESSAGES }, { signal: controller.signal }),
      )
      if (terminal === 'gone') await server.provider.arrived(1).then(() => controller.abort())
      const error = await sent
      if (terminal === 'error') expect([why, error.status, error.code]).toEqual([why, 504, 'timeout'])
      await server.provider.requests[0]?.closed
      await server.settled()
      expect(server.turns()).toMatchObject([{ terminal }])
      expect((await server.spending()).reserved).toBe(0)
    },
  )

  test('a failed stream ends with an error and without [DONE]', async () => {
    const { client, server, key } = await startWithClient({ provider: 'reset' })
    const error = await errorOf(whole(client))
    expect(error).toMatchObject({ status: 502, code: 'upstream_error', type: 'api_error' })
    expect(error.headers?.get('x-should-retry')).toBe('false')
    const stream = await client.chat.completions.create(STREAMED)
    const read = async (): Promise<void> => {
      for await (const _chunk of stream);
    }
    expect(await errorOf(read())).toMatchObject({ code: 'upstream_error' })
    const text = await (await post(server, bearer(key), JSON.stringify(STREAMED))).text()
    expect(text).toMatch(
      /data: \{"error":\{"message":"[^"]+","type":"api_error","code":"upstream_error"\}\}\n\n$/,
    )
    expect(text).not.toContain('[DONE]')
  })
})

describe('a refusal of /v1 in the shape of OpenAI', () => {
  const refusal = async (response: Response): Promise<unknown[]> => {
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(Object.keys(error)).toEqual(['message', 'type', 'code'])
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    return [response.status, error['type'], error['code']]
  }

  const invalid = 'invalid_request_error'
  test.each([
    ['{', 400, invalid, 'invalid_request'],
    ['null', 400, invalid, 'invalid_request'],
    ['{"messages":[]}', 401, 'authentication_error', 'wrong_kind_of_key'],
    ['{"model":"dash"}', 400, invalid, 'no_user_message'],
    ['{"model":"dash","messages":[{"role":"user","content":7}]}', 400, invalid, 'invalid_json'],
    [' '.repeat(4 * 1024 * 1024 + 1), 413, invalid, 'payload_too_large'],
  ])('names what is wrong with the body %.60s', async (body, ...expected) => {
    const { server, key } = await startWithClient()
    expect(await refusal(await post(server, bearer(key), body))).toEqual(expected)
    expect(server.provider.requests).toEqual([])
  })

  test('names an unknown path and method', async () => {
    const { url } = await startAgent()
    const completions = await fetch(`${url}/v1/chat/completions`)
    expect(await refusal(completions)).toEqual([405, invalid, 'method_not_allowed'])
    expect(await refusal(await fetch(`${url}/v1/embeddings`))).toEqual([404, invalid, 'not_found'])
  })

  test.each<[string, AgentServerOptions]>([
    ['disabled', { settings: { disabled: true } }],
    ['misconfigured', { ports: { provider: null } }],
  ])('of a server whose chat is %s has status 503', async (code, options) => {
    const { server, key } = await startWithClient(options)
    expect(await refusal(await post(server, bearer(key)))).toEqual([503, 'api_error', code])
  })
})

describe('a key', () => {
  test('is required: a session, an own origin or a key in the query are not enough', async () => {
    const { server, key } = await startWithClient()
    const token = await sessionOf(server)
    const session = { origin: server.url, 'x-agent-session': token }
    for (const [headers, code, query = ''] of [
      [{}, 'missing_api_key'],
      [session, 'missing_api_key'],
      [{ ...session, authorization: `Bearer ${token}` }, 'invalid_api_key'],
      [{}, 'missing_api_key', `?key=${key}&authorization=${key}`],
      [{ authorization: key }, 'missing_api_key'],
    ] as const) {
      const response = await post({ url: server.url, query }, headers)
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
      expect(await response.json()).toMatchObject({ error: { code } })
    }
    expect(server.provider.requests).toEqual([])
  })

  test('that is revoked admits nothing from then on, not even a request that was verified before', async () => {
    const { server, client } = await startWithClient()
    await whole(client)
    const { admit } = server.ledger
    // The key is revoked between its lookup and its admission.
    server.ledger.admit = async (claim) => {
      await server.keys.revoke('server', Date.now())
      return admit(claim)
    }
    for (const _attempt of ['verified before', 'revoked'])
      expect(await errorOf(whole(client))).toMatchObject({ status: 401, code: 'invalid_api_key' })
    expect(server.provider.requests).toHaveLength(1)
    await server.settled()
    expect(server.turns()).toHaveLength(1)
  })

  test.each([
    [{ perMinute: 2 }, null],
    [{ perDay: 2 }, 'false'],
  ])('has its own quota %j, beside the addresses and the other keys', async (quota, shouldRetry) => {
    const server = await startAgent({
      settings: { limits: { ...DAY_LIMITS, burstPerMinute: 1, messagesPerDay: 1 } },
      // Far from the end of the day, after which a request may be sent again.
      ports: { clock: () => Date.UTC(2026, 7, 22, 12) },
    })
    const small = clientOf(server, await keyOf(server, { name: 'small', ...quota }))
    await whole(small)
    await whole(small)
    const error = await errorOf(whole(small))
    expect([error.status, error.code, error.type]).toEqual([429, 'rate_limited', 'rate_limit_error'])
    expect(Number(error.headers?.get('retry-after'))).toBeGreaterThan(0)
    expect(error.headers?.get('x-should-retry')).toBe(shouldRetry)
    await whole(clientOf(server, await keyOf(server, { name: 'other' })))
    const ofAddress = await chat(server, chatBody('Hi'))
    await ofAddress.text()
    expect([ofAddress.status, (await chat(server, chatBody('Hi'))).status]).toEqual([200, 429])
  })

  test('of wrong ones ten a minute are looked up, twenty of an IPv6 /48, and the right key works from another address', async () => {
    const now = Date.UTC(2026, 7, 22, 12)
    const server = await startAgent({
      settings: { trustedProxies: ranges('127.0.0.1') },
      ports: { clock: () => now },
    })
    const from = (address: string, key = `dck_${'A'.repeat(43)}`): Promise<number> =>
      post(server, { ...bearer(key), 'x-forwarded-for': address }).then(({ status }) => status)
    const statuses = await Promise.all(Array.from({ length: 12 }, () => from('192.0.2.1')))
    expect(statuses.toSorted()).toEqual([...Array<number>(10).fill(401), 429, 429])
    expect(await from('192.0.2.2', await keyOf(server))).toBe(200)
    const ofNetwork = await Promise.all(
      Array.from({ length: 22 }, (_, index) => from(`2001:db8:1:${index}::1`)),
    )
    expect(ofNetwork.toSorted()).toEqual([...Array<number>(20).fill(401), 429, 429])
  })

  test('that is wrong is refused before the body is read', async () => {
    const { url } = await startAgent()
    const headers = { ...bearer(`dck_${'A'.repeat(43)}`), 'content-length': 1_000_000 }
    const sent = sendRequest(`${url}/v1/chat/completions`, { method: 'POST', headers })
    sent.on('error', () => undefined)
    sent.flushHeaders()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    sent.destroy()
    expect(response.statusCode).toBe(401)
  })
})
