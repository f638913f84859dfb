import { connect } from 'node:net'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { agentMeter, requestMeter, exposition } from '../../../src/server/metrics/instruments.ts'
import type { Meter } from '../../../src/server/metrics/instruments.ts'
import { DAY_LIMITS, chatEvents, chat, chatBody, sessionOf, startAgent } from '../../support/agent.ts'
import type { AgentServer } from '../../support/agent.ts'

async function linesOf(meter: Meter, name: string): Promise<string[]> {
  const lines = (await meter.metrics()).split('\n')
  return lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
}

/** Requests as they were counted; an answer is counted when its connection has it, after the reader may have it. */
async function countedRequests({ meters }: AgentServer, count: number): Promise<string[]> {
  const total = (lines: readonly string[]): number =>
    lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  for (;;) {
    const lines = await linesOf(meters.requests, 'dash_http_requests_total')
    if (total(lines) >= count) return lines
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('requests', () => {
  test('requests are counted by route template, never by input of a caller', async () => {
    const server = await startAgent()
    const items = ['/item?key=hn%3A1', '/item?key=hn%3A2']
    const paths = ['/healthz', ...items, '/docs', '/secret-1', '/secret-2', '/docs/secret-3']
    for (const path of paths) await (await fetch(`${server.url}${path}`)).text()
    await (await fetch(`${server.url}/healthz`, { method: 'DELETE' })).text()
    const lines = await countedRequests(server, paths.length + 1)
    expect(lines.join('\n')).not.toMatch(/secret|hn%3A|DELETE/)
    expect(lines).toContain('dash_http_requests_total{route="/healthz",method="GET",status="2xx"} 1')
    expect(lines).toContain('dash_http_requests_total{route="none",method="GET",status="4xx"} 3')
    expect(lines).toContain('dash_http_requests_total{route="none",method="other",status="4xx"} 1')
    expect(lines.filter((line) => line.includes('route="/item"'))).toEqual([
      'dash_http_requests_total{route="/item",method="GET",status="5xx"} 0',
      expect.stringMatching(/\{route="\/item",method="GET",status="\dxx"\} 2$/),
    ])
    const open = await linesOf(server.meters.requests, 'dash_http_requests_open')
    expect(open).toEqual(['dash_http_requests_open 0'])
  })

  test('requests whose client leaves before a response are counted as left', async () => {
    const server = await startAgent()
    const socket = connect(server.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write(
      `POST /api/agent/session HTTP/1.1\r\nhost: x\r\norigin: ${server.url}\r\ncontent-length: 5\r\n\r\n`,
    )
    while (!(await linesOf(server.meters.requests, 'dash_http_requests_open'))[0]?.endsWith(' 1'))
      await new Promise((resolve) => setImmediate(resolve))
    socket.destroy()
    expect(await countedRequests(server, 1)).toEqual([
      'dash_http_requests_total{route="none",method="POST",status="5xx"} 0',
      'dash_http_requests_total{route="none",method="POST",status="left"} 1',
    ])
  })
})

test('servers of one process count on their own, each time in every bucket it fits, bounds included', async () => {
  const [meter, other] = [requestMeter(), requestMeter()]
  for (const durationMs of [0.5, 1, 5, 100_000]) {
    meter.recordStart()
    meter.recordEnd({ route: '/x', method: 'GET', status: 200, hasResponse: true, durationMs })
  }
  const name = 'dash_http_request_duration_seconds'
  const lines = (await linesOf(meter, `${name}_bucket`)).join('\n')
  for (const [bound, count] of Object.entries({ '0.001': 2, '0.0025': 2, '0.005': 3, '90': 3, '\\+Inf': 4 }))
    expect(lines).toMatch(new RegExp(`le="${bound}".* ${count}$`, 'm'))
  expect(await linesOf(meter, `${name}_sum`)).toEqual([`${name}_sum{route="/x",status="2xx"} 100.0065`])
  expect(await linesOf(other, `${name}_bucket`)).toEqual([])
})

describe('turns of the chat', () => {
  test('chat turns are counted by admission, by source of the answer, and by end', async () => {
    const server = await startAgent({ settings: { limits: { ...DAY_LIMITS, messagesPerSession: 2 } } })
    const token = await sessionOf(server)
    for (const _time of [1, 2]) await chatEvents(server, chatBody('What is new?'), { token })
    const refused = await chat(server, chatBody('And now?'), { token })
    expect([refused.status, await refused.json()]).toMatchObject([429, { scope: 'session' }])
    await server.settled()
    const { settled } = await server.spending()
    const lines = (await server.meters.agent.metrics()).split('\n').toSorted()
    expect(lines.filter((line) => /^dash_chat_(admissions|answers|cost|streams)/.test(line))).toEqual([
      'dash_chat_admissions_total{outcome="degraded"} 0',
      'dash_chat_admissions_total{outcome="global-budget"} 0',
      'dash_chat_admissions_total{outcome="ip"} 0',
      'dash_chat_admissions_total{outcome="normal"} 2',
      'dash_chat_admissions_total{outcome="session"} 1',
      'dash_chat_answers_total{source="cache"} 1',
      'dash_chat_answers_total{source="own"} 1',
      `dash_chat_cost_usd_total ${settled / 1_000_000}`,
      'dash_chat_streams_open 0',
    ])
    expect(lines).toContain('dash_chat_turns_total{terminal="done",code=""} 2')
  })

  test("chat turns that end with a provider's status have few codes, and each code a zero before its first error", async () => {
    const meter = agentMeter()
    const before = await linesOf(meter, 'dash_chat_turns_total')
    for (const code of ['idle', 'connect', 'http_5xx', 'failed'])
      expect(before).toContain(`dash_chat_turns_total{terminal="error",code="${code}"} 0`)
    const ended = { source: 'own', firstDeltaMs: null, durationMs: 10, costMicroUsd: 0 } as const
    for (let status = 400; status < 600; status += 1) {
      meter.recordStart()
      const outcome = { kind: 'error', error: 'upstream_error', code: `http_${status}` } as const
      meter.recordEnd({ outcome, ...ended })
    }
    const lines = await linesOf(meter, 'dash_chat_turns_total')
    expect(lines.filter((line) => line.includes('error') && !line.endsWith(' 0'))).toEqual([
      'dash_chat_turns_total{terminal="error",code="http_4xx"} 100',
      'dash_chat_turns_total{terminal="error",code="http_5xx"} 100',
    ])
  })
})

test('an exposition has exactly the samples, each with its help and type', async () => {
  const text = await exposition([
    ['dash_gaps', 0.25],
    ['dash_store_up', 1, { store: 'ledger' }],
    ['dash_store_up', 0, { store: 'feed' }],
  ])
  expect(text.split('\n').filter((line) => line !== '')).toEqual([
    '# HELP dash_gaps Days that are permanent gaps.',
    '# TYPE dash_gaps gauge',
    'dash_gaps 0.25',
    '# HELP dash_store_up 1 if a store is ready.',
    '# TYPE dash_store_up gauge',
    'dash_store_up{store="ledger"} 1',
    'dash_store_up{store="feed"} 0',
  ])
  expect(await exposition([])).toBe('')
})
