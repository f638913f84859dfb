import { describe, expect, onTestFinished, test } from 'vitest'
import { chat, DAY_LIMITS, chatBody, sessionOf, startAgent } from '../../support/agent.ts'
import type { AgentServer } from '../../support/agent.ts'
import { ranges } from '../../adapters/articles/pages.ts'

/** A server behind a proxy that has eight places for streams, none of which ends by itself. */
async function startWithPlaces(maxOpenTurns = 8): Promise<AgentServer> {
  return startAgent({
    provider: 'silence after headers',
    firstEventMs: 600_000,
    settings: { limits: { ...DAY_LIMITS, maxOpenTurns }, trustedProxies: ranges('127.0.0.1') },
  })
}

interface Opened {
  status: number
  body: unknown
  leave(): void
}

/** Asks from an address; the answer stays open until it is left or the test ends. */
async function openFrom(server: AgentServer, address: string): Promise<Opened> {
  const headers = { 'x-forwarded-for': address }
  const token = await sessionOf(server, headers)
  const controller = new AbortController()
  const response = await chat(server, chatBody('What is new?'), { token, headers, signal: controller.signal })
  // A response that nothing refers to is collected, which closes its connection.
  onTestFinished(() => (controller.abort(), response.body?.cancel().catch(() => undefined)))
  const body: unknown = response.status === 200 ? null : await response.json()
  if (body !== null) expect(response.headers.get('retry-after')).toBe('5')
  return { status: response.status, body, leave: () => controller.abort() }
}

const FULL = { status: 429, body: { error: 'rate_limited', scope: 'ip', retryAfterSeconds: 5 } }

describe('the places for streams', () => {
  test('one IPv6 /48 has at most a quarter of the stream slots and one /32 half, and the rest stays for other networks', async () => {
    const server = await startWithPlaces()
    const OPEN = { status: 200 }
    for (const [address, expected] of [
      ['2001:db8:1::1', OPEN],
      ['2001:db8:1:8000::1', OPEN],
      ['2001:db8:1:ffff::1', FULL],
      ['2001:db8:2::1', OPEN],
      ['2001:db8:2::2', OPEN],
      ['2001:db8:3::1', FULL],
      ['2001:db9:1::1', OPEN],
    ] as const)
      expect(await openFrom(server, address), address).toMatchObject(expected)
  })

  test('a network has at least one stream slot, which a turn that ended or was refused frees', async () => {
    const server = await startWithPlaces(2)
    const open = await openFrom(server, '198.51.100.7')
    const before = await server.spending()
    for (let tries = 0; tries < 3; tries += 1)
      expect(await openFrom(server, '198.51.100.7')).toMatchObject(FULL)
    expect(await server.spending()).toEqual(before)
    open.leave()
    await server.provider.requests[0]?.closed
    await server.settled()
    expect(await openFrom(server, '198.51.100.7')).toMatchObject({ status: 200 })
  })

  test('a turn refused by the quotas takes no stream slot', async () => {
    const server = await startWithPlaces(4)
    server.ledger.admit = () => Promise.resolve({ admitted: false, scope: 'session', retryAfterSeconds: 5 })
    for (let tries = 0; tries < 3; tries += 1)
      expect(await openFrom(server, '198.51.100.7')).toMatchObject({ body: { scope: 'session' } })
  })
})
