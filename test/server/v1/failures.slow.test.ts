import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { localSource } from '../../support/local-source.ts'
import type { Behaviour, ModeName } from '../../support/provider.ts'
import { CALLER_KEY, errorBody, json, startV1 } from './v1.ts'

const REQUEST = { model: 'auto', stream: true, messages: [{ role: 'user', content: 'Hello?' }] }
const RESET_AT = Date.now() + 3_600_000

const ownLimit = { limit_source: 'upstream_provider_shared_pool' }

const stream = (body: string, ending: 'end' | 'hold' = 'end'): Behaviour => ({
  response: { status: 200, type: 'text/event-stream', body },
  ending,
})

describe('before the first data line', () => {
  const limitHeaders = {
    'x-ratelimit-limit': '50',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(RESET_AT),
  }
  const daily = json(errorBody(429, 'Rate limit exceeded: free-models-per-day. '), 429, limitHeaders)
  const firstEvent = `: processing\n\ndata: ${errorBody(502, 'SECRET', { provider_name: 'P' })}\n\n`
  test.each<[string, ModeName | Behaviour, number, string]>([
    ['a limit of the model', json(errorBody(429, 'SECRET', ownLimit), 429), 429, 'model_rate_limited'],
    ['a 404', json(errorBody(404, 'No endpoints found.'), 404), 404, 'model_unavailable'],
    ['a reset before the headers', 'reset before headers', 502, 'upstream_error'],
    ['an error as the first event', stream(firstEvent), 502, 'upstream_error'],
    ['a daily limit of the account', daily, 429, 'account_daily_limit'],
    ['a 429 without an owner', json(errorBody(429, 'SECRET'), 429), 429, 'account_minute_limit'],
    ['a 403 without a reason', json(errorBody(403, 'SECRET'), 403), 403, 'forbidden'],
    ['a rejected key', json(errorBody(401, 'No auth credentials found'), 401), 401, 'invalid_api_key'],
    ['an empty balance', json(errorBody(402, 'Insufficient credits'), 402), 402, 'insufficient_balance'],
    ['a data policy', json(errorBody(404, 'No endpoints: data policy'), 404), 403, 'account_data_policy'],
    ['a declined parameter', json(errorBody(400, 'SECRET'), 400), 400, 'unsupported_request'],
    ['a redirect', 'redirect', 502, 'upstream_error'],
    ['JSON in place of a stream', 'JSON 200', 502, 'invalid_upstream_response'],
    ['a content encoding', 'content encoding', 502, 'invalid_upstream_response'],
    ['silence before the headers', 'silence before headers', 504, 'timeout'],
    ['comments only', 'comments only', 504, 'timeout'],
  ])('%s ends the request at once', async (_name, behaviour, status, code) => {
    const { upstream, post } = await startV1(status === 504 ? { firstEventMs: 150 } : {})
    upstream.behave(behaviour)
    const response = await post(REQUEST)
    const text = await response.text()
    expect([response.status, JSON.parse(text)]).toMatchObject([status, { error: { code } }])
    expect(response.headers.get('x-should-retry')).toBe('false')
    expect(upstream.requests).toHaveLength(1)
    expect(text).not.toContain('SECRET')
    expect(text).not.toContain(CALLER_KEY)
  })

  test.each([
    ['reset after the headers', true, '', 'destroy'],
    ['closed after a comment', true, ': processing\n\n', 'end'],
    ['reset within a whole completion', false, '{"choices":', 'destroy'],
  ] as const)('a connection that is %s ends the request at once', async (_name, isStream, text, ending) => {
    const upstream = await localSource(async (_request, response) => {
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
      response.flushHeaders()
      await new Promise((resolve) => response.write(text, resolve))
      response[ending]()
    })
    const { post } = await startV1({ base: upstream.url })
    const response = await post({ ...REQUEST, stream: isStream })
    expect([response.status, await response.json()]).toMatchObject([
      502,
      { error: { code: 'invalid_upstream_response' } },
    ])
    expect(upstream.requests).toHaveLength(1)
  })

  test('a limit of the account carries its reset time', async () => {
    const { upstream, post } = await startV1()
    upstream.behave(daily)
    const { headers } = await post(REQUEST)
    expect(headers.get('x-ratelimit-reset')).toBe(String(RESET_AT))
    expect(headers.get('x-ratelimit-remaining')).toBe('0')
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(3_500)
  })
})

describe('after the first data line', () => {
  test.each<[ModeName, string]>([
    ['reset', 'truncated'],
    ['clean end without terminal', 'truncated'],
    ['silence after first event', 'idle'],
    ['200 MiB line', 'invalid_stream'],
  ])('%s ends with an error event and without the end mark', async (mode, code) => {
    const { upstream, post } = await startV1({ idleMs: code === 'idle' ? 150 : 60_000 })
    upstream.behave(mode)
    const text = await (await post(REQUEST)).text()
    const [last = ''] = text.trimEnd().split('\n\n').slice(-1)
    expect(JSON.parse(last.replace('data: ', ''))).toMatchObject({ error: { type: 'api_error', code } })
    expect(text).not.toContain('[DONE]')
    expect(text.length).toBeLessThan(2 * 1024 * 1024)
    await upstream.requests[0]?.closed
    expect(upstream.requests).toHaveLength(1)
  })

  test('the time limit of the whole answer ends it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { upstream, post } = await startV1({ ports: { turnMs: 200 } })
    upstream.behave('silence after first event')
    const response = await post(REQUEST)
    vi.advanceTimersByTime(200)
    expect(await response.text()).toContain('"code":"total"')
  })

  const END = 'data: {"choices":[]}\n\ndata: [DONE]\n\n'
  const COMMENT = `: ${'bye '.repeat(30)}\n\n`
  test('a comment that arrives after the end mark passes without an error', async () => {
    let end: () => unknown = () => undefined
    const upstream = await localSource((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(END)
      end = () => response.end(COMMENT)
    })
    const { post } = await startV1({ base: upstream.url })
    const { body } = await post(REQUEST)
    let text = ''
    for await (const chunk of body ?? []) {
      text += Buffer.from(chunk).toString()
      if (text === END) end()
    }
    expect(text).toBe(END + COMMENT)
  })

  test('a stream that is held open after its end mark ends', async () => {
    const { upstream, post } = await startV1()
    upstream.behave('held open after its end')
    expect(await (await post(REQUEST)).text()).toMatch(/\[DONE\]\n\n$/)
  })
})

describe('a stream without its end mark', () => {
  const chunk = (finish: string | null): string =>
    `data: ${JSON.stringify({ choices: [{ delta: { content: 'Hi' }, finish_reason: finish }] })}\n\n`

  test.each(['end', 'hold'] as const)(
    'a stream after a finish reason is complete and gets the mark: %s',
    async (ending) => {
      const { upstream, post } = await startV1({ afterReasonMs: 150 })
      upstream.behave(stream(chunk('stop'), ending))
      expect(await (await post(REQUEST)).text()).toBe(`${chunk('stop')}data: [DONE]\n\n`)
    },
  )

  test.each<[string, string, string]>([
    ['has no finish reason', chunk(null), chunk(null)],
    ['ends within an event', `${chunk('stop')}data: {"choi`, `${chunk('stop')}data: {"choi`],
    ['failed', chunk('error'), chunk('error')],
  ])('a stream that %s ends with an error event', async (_what, body, begin) => {
    const { upstream, post } = await startV1()
    upstream.behave(stream(body))
    const text = await (await post(REQUEST)).text()
    expect(text.startsWith(begin)).toBe(true)
    expect(text).toContain('"code":"truncated"')
    expect(text).not.toContain('[DONE]')
  })
})
