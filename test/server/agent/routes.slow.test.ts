import { describe, expect, test } from 'vitest'
import { AGENT_ERRORS, configSchema, sessionSchema, statusSchema } from '../../../src/domain/agent/schema.ts'
import { sessionSigner } from '../../../src/domain/agent/credentials.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { AGENT_CONTRACTS } from '../../../src/server/agent/contracts.ts'
import { chat, DAY_LIMITS, chatBody, SECRET, sessionOf, startAgent } from '../../support/agent.ts'
import type { AgentServer } from '../../support/agent.ts'
import { ranges } from '../../adapters/articles/pages.ts'

const EVIL = 'https://evil.example'

interface Refused {
  status: number
  headers: Headers
  body: { error: string; reason?: string; scope?: string; retryAfterSeconds?: number }
}

/** A refusal, held to the contract of its route. */
async function refused(response: Response): Promise<Refused> {
  const { status, headers } = response
  const body = (await response.json()) as Refused['body']
  const contract = AGENT_CONTRACTS.find(({ path }) => path === new URL(response.url).pathname)
  const known = Object.entries(contract?.refusals ?? {}).filter(
    ([name, { error = name }]) => error === body.error,
  )
  if (contract) expect(known.map(([, refusal]) => refusal.status)).toContain(status)
  expect(AGENT_ERRORS).toContain(body.error)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('vary')).toBe('Origin')
  return { status, headers, body }
}

/** Status and code of a refusal, and its reason where it has one. */
async function codeOf(response: Response | Promise<Response>): Promise<string> {
  const { status, body } = await refused(await response)
  return [status, body.error, ...(body.reason === undefined ? [] : [body.reason])].join(' ')
}

type HeaderFields = Record<string, string>

const get = ({ url }: AgentServer, path: string, headers: HeaderFields = {}): Promise<Response> =>
  fetch(url + path, { headers })

const post = (
  { url }: AgentServer,
  path: string,
  body: string | Buffer | null,
  headers: HeaderFields = {},
): Promise<Response> => fetch(url + path, { method: 'POST', body, headers: { origin: url, ...headers } })

describe('the configuration', () => {
  test('the configuration holds what a client must know, and no site key if no verification is required', async () => {
    const server = await startAgent()
    const response = await get(server, '/api/agent/config')
    const body = await response.json()
    expect(configSchema.parse(body)).toEqual({
      enabled: true,
      requireVerification: false,
      itemChat: true,
      briefEnabled: false,
      model: 'test-model',
      quotas: { messagesPerSession: 10_000, messagesPerDay: 10_000 },
    })
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test.each([
    ['the kill switch is set', { settings: { disabled: true } }, 'test-model'],
    ['there is no secret', { ports: { signer: null } }, 'test-model'],
    ['there is no model', { ports: { modelName: () => Promise.resolve('') } }, ''],
    ['the model cannot be named', { ports: { modelName: () => Promise.reject(new Error('down')) } }, ''],
  ])('the configuration reports a disabled chat while %s', async (_when, changes, model) => {
    const server = await startAgent(changes)
    expect(await (await get(server, '/api/agent/config')).json()).toMatchObject({ enabled: false, model })
  })
})

const statusOf = async (server: AgentServer): Promise<unknown> =>
  statusSchema.parse(await (await get(server, '/api/agent/status')).json())

test('the status is not ok with the kill switch set, and unknown while the quotas cannot be read, when the chat calls no model', async () => {
  const off = await startAgent({ settings: { disabled: true, itemChat: false } })
  expect(await statusOf(off)).toEqual({ ok: false, service: 'agent-worker', budget: 'ok', itemChat: false })
  const down = (): Promise<never> => Promise.reject(new Refusal('storage_unavailable', 'the disk is gone'))
  const server = await startAgent()
  const token = await sessionOf(server)
  const broken = await startAgent({
    ports: { ledger: { ...server.ledger, spending: down, admit: down } },
  })
  expect(await statusOf(broken)).toMatchObject({ ok: false, budget: 'unknown' })
  expect(await codeOf(chat(broken, chatBody('Hello'), { token }))).toBe('503 internal_error')
  expect(broken.provider.requests).toEqual([])
})

describe('a session', () => {
  test('a session is a token with its expiry and quotas, without a cookie', async () => {
    const server = await startAgent()
    const bodyOf = (length: number): string => `{"a":"${'x'.repeat(length - 8)}"}`
    expect(await codeOf(post(server, '/api/agent/session', bodyOf(4_097)))).toBe('400 invalid_json')
    const before = Date.now()
    const response = await post(server, '/api/agent/session', bodyOf(4_096))
    const session = sessionSchema.parse(await response.json())
    const lasts = Date.parse(session.expiresAt) - before
    expect(lasts).toBeGreaterThan(1_798_000)
    expect(lasts).toBeLessThanOrEqual(1_830_000)
    expect(session).toMatchObject({ tier: 'free', quotas: { messagesPerSession: 10_000 } })
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(sessionSigner(SECRET).verify(session.sessionToken, before).ok).toBe(true)
  })

  test('a session requires a verification if configured, and an address may attempt only so many', async () => {
    let now = Date.UTC(2026, 7, 22, 12)
    const verifications: string[][] = []
    const isHuman = (token: string, hostname: string): Promise<boolean> => {
      verifications.push([token, hostname])
      return Promise.resolve(token === 'good')
    }
    const ports = { clock: () => now, verification: { siteKey: 'site', verifier: { isHuman } } }
    const server = await startAgent({ ports })
    expect(await (await get(server, '/api/agent/config')).json()).toMatchObject({
      requireVerification: true,
      verificationSiteKey: 'site',
    })
    const tokenOf = (token: unknown): Promise<Response> =>
      post(server, '/api/agent/session', JSON.stringify({ verificationToken: token }))
    for (const none of [undefined, '', 5, null]) {
      expect(await codeOf(tokenOf(none))).toBe('403 human_verification_failed')
    }
    expect(verifications).toEqual([])
    expect((await tokenOf('good')).status).toBe(200)
    expect(verifications).toEqual([['good', '127.0.0.1']])
    for (let tries = 0; tries < 30; tries += 1) {
      const { status, headers } = await refused(await tokenOf('bad'))
      expect([status, headers.get('retry-after')]).toEqual([403, null])
    }
    expect(verifications).toHaveLength(10)
    now += 60_000
    expect((await tokenOf('good')).status).toBe(200)
  })
})

describe('the checks of a turn, in their order', () => {
  /** A request that is wrong in every way at once, mended one way after the other. */
  test('a turn checks kill switch, configuration, origin, token, size, JSON, last message and throttling, in this order', async () => {
    const limits = { ...DAY_LIMITS, messagesPerSession: 0 }
    const ports = { signer: null }
    const server = await startAgent({ settings: { limits } })
    const good = { 'x-agent-session': await sessionOf(server) }
    const bad = { 'x-agent-session': 'nonsense' }
    const big = 'x'.repeat(32_769)
    for (const [at, body, headers, refusal] of [
      [
        await startAgent({ settings: { disabled: true, limits }, ports }),
        big,
        { origin: EVIL, ...bad },
        '503 disabled',
      ],
      [await startAgent({ settings: { limits }, ports }), big, { origin: EVIL, ...bad }, '503 misconfigured'],
      [server, big, { origin: EVIL, ...bad }, '403 forbidden_origin'],
      [server, big, bad, '401 invalid_session malformed'],
      [server, big, good, '413 payload_too_large'],
      [server, '{"messages":', good, '400 invalid_json'],
      [server, '{"messages":[]}', good, '400 no_user_message'],
      [server, chatBody('Hello'), good, '429 rate_limited'],
    ] as const)
      expect(await codeOf(post(at, '/api/agent/chat', body, headers))).toBe(refusal)
    expect(server.provider.requests).toEqual([])
  })

  test('a token made before midnight stays valid until it expires, and bursts count across midnight', async () => {
    let now = Date.parse('2026-11-20T23:59:30Z')
    const limits = { ...DAY_LIMITS, burstPerMinute: 1 }
    const server = await startAgent({ ports: { clock: () => now }, settings: { limits } })
    const token = await sessionOf(server)
    const told = []
    for (const at of ['20T23:59:40Z', '21T00:00:20Z', '21T00:00:40Z', '21T00:29:29Z', '21T00:29:30Z']) {
      now = Date.parse(`2026-11-${at}`)
      const response = await chat(server, chatBody(at), { token })
      told.push(response.status)
      await response.text()
      await server.settled()
    }
    expect(told).toEqual([200, 429, 200, 200, 401])
  })
})

test('a token that is missing or of another address is refused with its reason', async () => {
  const server = await startAgent({ settings: { trustedProxies: ranges('127.0.0.1') } })
  const token = await sessionOf(server, { 'x-forwarded-for': '192.0.2.1' })
  const sent = (headers: HeaderFields) => codeOf(post(server, '/api/agent/chat', chatBody('Hello'), headers))
  expect(await sent({})).toBe('401 invalid_session missing')
  const mismatch = { 'x-forwarded-for': '192.0.2.2', 'x-agent-session': token }
  expect(await sent(mismatch)).toBe('401 invalid_session ip_mismatch')
})

test('allowed origins may read every response, and other and missing origins are refused and read nothing', async () => {
  const server = await startAgent()
  const origin = `http://localhost:${server.port}`
  const token = await sessionOf(server)
  for (const response of [
    await get(server, '/api/agent/config', { origin }),
    await get(server, '/api/agent/nowhere', { origin }),
    await post(server, '/api/agent/session', '[', { origin }),
    await chat(server, chatBody('Hello'), { token, headers: { origin } }),
  ]) {
    expect(response.headers.get('access-control-allow-origin'), response.url).toBe(origin)
    expect(response.headers.get('access-control-expose-headers')).toBe('Retry-After')
    expect(response.headers.get('vary')).toBe('Origin')
    await response.text()
  }
  for (const other of ['null', EVIL, `${server.url}.evil.example`]) {
    const response = await post(server, '/api/agent/session', null, { origin: other })
    expect(await codeOf(response)).toBe('403 forbidden_origin')
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  }
  const none = fetch(`${server.url}/api/agent/session`, { method: 'POST' })
  expect(await codeOf(none)).toBe('403 forbidden_origin')
})

test.each([
  ['/api/agent/status', 'GET', 'GET, HEAD'],
  ['/api/agent/chat', 'POST', 'POST'],
])(
  'a preflight of %s allows %s to allowed origins, and other methods are refused',
  async (path, method, allow) => {
    const server = await startAgent({ settings: { disabled: true }, ports: { signer: null } })
    const preflight = (origin: string): Promise<Response> =>
      fetch(`${server.url}${path}`, { method: 'OPTIONS', headers: { origin } })
    const { status, headers } = await preflight(server.url)
    expect([status, Object.fromEntries(headers)]).toMatchObject([
      204,
      {
        'access-control-allow-origin': server.url,
        'access-control-allow-methods': `${method}, OPTIONS`,
        'access-control-allow-headers': 'content-type, x-agent-session',
        'access-control-max-age': '600',
        vary: 'Origin',
      },
    ])
    expect((await preflight(EVIL)).headers.get('access-control-allow-origin')).toBeNull()
    const wrong = await refused(await fetch(`${server.url}${path}`, { method: 'PUT' }))
    expect([wrong.status, wrong.headers.get('allow'), wrong.body]).toEqual([
      405,
      allow,
      { error: 'not_found' },
    ])
    expect(await codeOf(fetch(`${server.url}/api/agent/x/y`, { method }))).toBe('404 not_found')
  },
)

test('an unexpected error is internal_error, logged once and never shown', async () => {
  const verifier = { isHuman: () => Promise.reject(new Error('SECRET')) }
  const server = await startAgent({ ports: { verification: { siteKey: 'site', verifier } } })
  const response = await post(server, '/api/agent/session', '{"verificationToken":"t"}')
  const { status, body } = await refused(response)
  expect([status, body]).toEqual([500, { error: 'internal_error' }])
  expect(server.lines.filter(({ level }) => level === 'error')).toHaveLength(1)
})

test('a body that is not UTF-8, or begins with a byte order mark, is invalid_json', async () => {
  const server = await startAgent()
  expect(await codeOf(chat(server, `\uFEFF${chatBody('Hello')}`))).toBe('400 invalid_json')
  const headers = { 'x-agent-session': await sessionOf(server) }
  const broken = Buffer.from(chatBody('ÿ'), 'latin1')
  expect(await codeOf(post(server, '/api/agent/chat', broken, headers))).toBe('400 invalid_json')
})
