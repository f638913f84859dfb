import { describe, expect, test } from 'vitest'
import type { ChatModel } from '../../../src/domain/ports.ts'
import type { AgentSources } from '../../../src/server/agent/tools.ts'
import {
  chatEvents,
  chat,
  DAY_LIMITS,
  openAnswer,
  PRICES,
  chatBody,
  sessionOf,
  startAgent,
  textOf,
} from '../../support/agent.ts'
import type { AgentServer, AgentServerOptions } from '../../support/agent.ts'
import type { AgentEvent } from '../../../src/domain/agent/schema.ts'
import { modelAt } from '../../adapters/provider/model-turns.ts'
import type { ModelOutput, Behaviour } from '../../support/provider.ts'
import { startSearchProcess } from './agent-reads.ts'
import { sampleSignals } from '../../support/workspace.ts'

const NEWS = chatBody('What is new?')

const searchCall = (id: string): ModelOutput => ({
  call: {
    id,
    name: 'search_items',
    arguments: JSON.stringify({ query: 'title', sources: null, from: null, to: null, limit: 5 }),
  },
})

/** A provider that says what the test makes it say. */
const HELD = { provider: 'silence after headers' } as const

/** A model that searches, says a word, searches again and answers. */
const SEARCHING: Behaviour = {
  rounds: [
    [searchCall('call_a'), { end: 'completed' }],
    [{ text: 'Let me see. ' }, searchCall('call_b'), { end: 'completed' }],
    [{ text: 'Hello ' }, { text: 'you' }, { end: 'completed' }],
  ],
}

/** A server with stored items, so that the grounding has a revision. */
async function startWithItems(options?: AgentServerOptions): Promise<AgentServer> {
  const server = await startAgent(options)
  await server.workspace.feed.importSignals(sampleSignals())
  await startSearchProcess(server.workspace.search)
  return server
}

const never = <T>(): Promise<T> => new Promise<T>(() => undefined)

/** Sources of which one question is never answered. */
const stuckAt = (where: 'revision' | 'search'): AgentSources => {
  const refuse = (): Promise<never> => Promise.reject(new Error('not asked here'))
  return {
    items: {
      item: () => Promise.resolve(null),
      revision: where === 'revision' ? never : () => Promise.resolve('1'),
      article: refuse,
    },
    search: { by: () => ({ search: never, similar: refuse, itemTrend: refuse, termTrend: refuse }) },
    clock: Date.now,
    feed: () => Promise.resolve(null),
    recommendation: () => Promise.resolve(null),
    publication: () => Promise.resolve(null),
  }
}

/** Names of the events in their order, of a tool its status. */
const stepsOf = (events: readonly AgentEvent[]): string =>
  events.map((each) => (each.event === 'tool' ? each.data.status : each.event)).join(' ')

async function settledWell(server: AgentServer): Promise<Record<string, unknown>[]> {
  await server.settled()
  const turns = server.turns()
  const own = turns.filter(({ source }) => source === 'own')
  const settled = own.reduce((sum, turn) => sum + Number(turn['costMicroUsd']), 0)
  expect(await server.spending()).toEqual({ settled, reserved: 0 })
  return turns
}

describe('a turn', () => {
  test('a turn has its headers, meta first, deltas and one done, and is charged its usage', async () => {
    const limits = { ...DAY_LIMITS, messagesPerSession: 20, messagesPerDay: 60 }
    const server = await startAgent({ settings: { limits } })
    const response = await chat(server, NEWS)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
    const text = await response.text()
    expect(text).toMatch(/^event: meta\ndata: \{"remaining":\{"session":19,"day":59\},"tier":"free"\}\n\n/)
    expect(text).toContain('data: {"usage":{"in":100,"out":20,"cached":40}}')
    const [turn] = await settledWell(server)
    expect(turn).toMatchObject({ terminal: 'done', source: 'own', rounds: 1, costMicroUsd: 104 })
  })

  test('a turn sends meta before any read or model call, and costs nothing if its client leaves then', async () => {
    const server = await startAgent({ ports: { sources: stuckAt('revision') } })
    const answer = await openAnswer(server, chatBody('Hello'))
    await answer.until('event: meta')
    await answer.until(': ping\n\n')
    expect(server.provider.requests).toEqual([])
    answer.disconnect()
    expect(await settledWell(server)).toMatchObject([{ terminal: 'gone', costMicroUsd: 0, rounds: 0 }])
  })

  test('a turn sends pings while it is silent, between events only, and never after the last one', async () => {
    const server = await startAgent({ ...HELD, settings: { pingMs: 5 } })
    const { provider: gate } = server
    const answer = await openAnswer(server, chatBody('Hello'))
    await answer.until(': ping\n\n: ping\n\n: ping\n\n')
    await gate.arrived(1)
    gate.say('One ')
    await answer.until('"One "}\n\n: ping\n\n: ping\n\n')
    gate.finish()
    const events = await answer.events()
    expect(stepsOf(events)).toBe('meta delta done')
    expect(answer.text.slice(answer.text.indexOf('event: done'))).not.toContain('ping')
  })

  test('a turn shows text between tools as paragraphs, and only the six tool names', async () => {
    const server = await startAgent({ provider: SEARCHING })
    const events = await chatEvents(server, NEWS)
    expect(stepsOf(events)).toBe('meta start done delta start done delta delta done')
    expect(textOf(events)).toBe('Let me see. \n\nHello you')
    expect(await settledWell(server)).toMatchObject([
      { rounds: 3, calls: 2, usage: { in: 300, out: 60, cached: 120 } },
    ])
  })
})

test.each(['silence before headers', 'silence after headers', 'silence after first event'] as const)(
  'a client that leaves at %s aborts the model call, which is charged for what was sent',
  async (mode) => {
    const server = await startAgent({ provider: mode })
    const answer = await openAnswer(server, chatBody('Hello'))
    await answer.until('event: meta')
    await server.provider.arrived(1)
    answer.disconnect()
    await server.provider.requests[0]?.closed
    const [turn] = await settledWell(server)
    expect(turn).toMatchObject({ terminal: 'gone', rounds: 1 })
    // A micro-dollar a token, three bytes a token; the request on the wire has other names around the same texts.
    const sent = Buffer.byteLength(JSON.stringify(server.provider.requests[0]?.body))
    expect(Number(turn?.['costMicroUsd']) * 3).toBeGreaterThan(sent * 0.8)
    expect(Number(turn?.['costMicroUsd']) * 3).toBeLessThan(sent * 1.2)
  },
)

test('a turn that times out during a tool call sends the end of the tool before the error', async () => {
  const ports = { sources: stuckAt('search') }
  const server = await startAgent({ provider: SEARCHING, ports, settings: { turnMs: 300 } })
  expect(stepsOf(await chatEvents(server, chatBody('Hello')))).toBe('meta start done error')
  await settledWell(server)
})

test('a server that stops ends every open turn after the grace time, with its event, settlement and end of stream', async () => {
  const server = await startAgent(HELD)
  const { provider: gate } = server
  const answers = [await openAnswer(server, chatBody('Hello')), await openAnswer(server, chatBody('Hi'))]
  await gate.arrived(2)
  await server.close(20)
  const last = { event: 'error', data: { error: 'timeout', code: 'total' } }
  for (const answer of answers) expect((await answer.events()).at(-1)).toEqual(last)
  expect((await server.spending()).reserved).toBe(0)
  await gate.idle()
  const ended = { terminal: 'error', code: 'total' }
  expect(await settledWell(server)).toMatchObject([ended, ended])
})

test('a server that stops lets an open answer finish within the grace time', async () => {
  const server = await startAgent(HELD)
  const { provider: gate } = server
  const answer = await openAnswer(server, chatBody('Hello'))
  await gate.arrived(1)
  const closed = server.close(60_000)
  gate.say('Good bye')
  gate.finish()
  expect(stepsOf(await answer.events())).toBe('meta delta done')
  await closed
  await settledWell(server)
})

test('a budget that an open turn holds refuses the next turn until the open one has ended, while the status says soft', async () => {
  const server = await startAgent({
    ...HELD,
    settings: { limits: { ...DAY_LIMITS, budgetPerDay: 35_000 } },
  })
  const { provider: gate } = server
  const first = await openAnswer(server, chatBody('One'))
  await gate.arrived(1)
  const response = await chat(server, chatBody('Two'))
  const { error, scope, retryAfterSeconds } = (await response.json()) as Record<string, unknown>
  expect([response.status, error, scope]).toEqual([429, 'rate_limited', 'global-budget'])
  expect(response.headers.get('retry-after')).toBe(String(retryAfterSeconds))
  // Sixty seconds for the turn and thirty for its settlement, minus the elapsed time.
  expect(retryAfterSeconds).toBeGreaterThan(60)
  expect(retryAfterSeconds).toBeLessThanOrEqual(90)
  expect(await budgetOf(server)).toBe('soft')
  gate.finish('Hello')
  await first.events()
  await server.settled()
  expect(await budgetOf(server)).toBe('ok')
  const second = await openAnswer(server, chatBody('Two'))
  await gate.arrived(2)
  second.disconnect()
})

describe('a tool round', () => {
  /** With these tokens, a call with results exceeds the first reservation, and one without fits. */
  const rounds: ModelOutput[][] = [
    [searchCall('call_a'), { end: 'completed', usage: { in: 12_300, out: 1_000, cached: 0 } }],
    [{ text: 'Hello' }, { end: 'completed' }],
  ]

  test('a tool round extends the reservation, which is settled with the real usage of all calls', async () => {
    const server = await startWithItems({ provider: { rounds } })
    expect((await chatEvents(server, NEWS)).at(-1)).toMatchObject({ event: 'done' })
    const [turn] = await settledWell(server)
    expect(turn).toMatchObject({ degraded: false, rounds: 2, costMicroUsd: 14_300 + 104 })
    expect(turn?.['reservedMicroUsd']).toBeGreaterThan(30_600)
    expect(server.provider.requests.map(({ body }) => Array.isArray(body['tools']))).toEqual([true, true])
  })

  test('a tool round beyond the budget is followed by a last call without tools, within the reservation', async () => {
    const limits = { ...DAY_LIMITS, budgetPerDay: 30_600 }
    const server = await startWithItems({ provider: { rounds }, settings: { limits } })
    const events = await chatEvents(server, NEWS)
    expect(textOf(events)).toBe('Hello')
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { degraded: true } })
    const [turn] = await settledWell(server)
    expect(turn).toMatchObject({ degraded: true, rounds: 2, costMicroUsd: 14_300 + 104 })
    expect(turn?.['reservedMicroUsd']).toBeLessThan(30_600)
    const [, last] = server.provider.requests
    expect(last?.body['tools']).toBeUndefined()
    // The tool and its result are left out.
    expect(JSON.stringify(last?.body)).not.toContain('call_a')
  })

  test('a tool round whose extension cannot be written is followed by a call without tools', async () => {
    const server = await startWithItems({ provider: { rounds } })
    server.ledger.extend = () => Promise.reject(new Error('the database is locked'))
    expect((await chatEvents(server, NEWS)).at(-1)).toMatchObject({
      event: 'done',
      data: { degraded: true },
    })
    await settledWell(server)
    expect(server.lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  })
})

test('a turn in the soft band of the budget has no tools, says so, and its answer is not cached', async () => {
  const usage = { in: 850_000, out: 0, cached: 0 }
  const server = await startAgent({
    provider: { rounds: [[{ text: 'Hello' }, { end: 'completed', usage }]] },
    settings: { limits: { ...DAY_LIMITS, budgetPerDay: 1_000_000 } },
  })
  await chatEvents(server, chatBody('Hello'))
  await server.settled()
  server.provider.behave('answer')
  for (let turn = 0; turn < 2; turn += 1) {
    const events = await chatEvents(server, NEWS)
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { degraded: true } })
  }
  expect(server.provider.requests.slice(1).map(({ body }) => body['tools'])).toEqual([undefined, undefined])
  await server.settled()
  expect(server.turns().map(({ degraded }) => degraded)).toEqual([false, true, true])
  expect(await budgetOf(server)).toBe('soft')
})

const budgetOf = async (server: AgentServer): Promise<unknown> =>
  ((await (await fetch(`${server.url}/api/agent/status`)).json()) as { budget: unknown }).budget

describe('an answer that was given', () => {
  test('a cached answer is sent again without a model call or tool, at no cost', async () => {
    const server = await startWithItems({ provider: SEARCHING })
    const first = await chatEvents(server, NEWS)
    await server.settled()
    const second = await chatEvents(server, NEWS)
    expect([textOf(second), stepsOf(second)]).toEqual([textOf(first), 'meta delta done'])
    expect(second.at(-1)).toEqual({
      event: 'done',
      data: { usage: { in: 0, out: 0, cached: 0 }, cached: true },
    })
    expect(server.provider.requests).toHaveLength(3)
    expect((await settledWell(server)).map(({ source }) => source)).toEqual(['own', 'cache'])
  })

  test('a cached answer is not sent to a request with another input, nor after a change of the data', async () => {
    const server = await startWithItems()
    await chatEvents(server, NEWS)
    await server.settled()
    const kind = chatBody('What is new?', { settings: { prePrompt: 'Be kind' } })
    for (const again of [kind, kind]) await chatEvents(server, again)
    expect(server.provider.requests).toHaveLength(3)
    const [signal] = sampleSignals()
    if (signal) await server.workspace.feed.importSignals([{ ...signal, points: 999 }])
    await chatEvents(server, NEWS)
    expect(server.provider.requests).toHaveLength(4)
  })

  test.each(['refusal', 'failed', 'clean end without terminal', 'bad arguments'] as const)(
    'an answer after %s is not cached',
    async (provider) => {
      const server = await startWithItems({ provider })
      await chatEvents(server, NEWS)
      const before = server.provider.requests.length
      await server.settled()
      await chatEvents(server, NEWS)
      expect(server.provider.requests.length).toBeGreaterThan(before)
    },
  )

  test('an answer by another model than the named one is not cached', async () => {
    const behind = await startAgent()
    const real = modelAt(behind.provider.url, { model: 'second' })
    const model: ChatModel = { ...real, name: () => Promise.resolve('first') }
    const server = await startWithItems({
      ports: { provider: { model, prices: PRICES, url: 'http://model.example' } },
    })
    for (let times = 0; times < 2; times += 1) {
      expect((await chatEvents(server, NEWS)).at(-1)?.event).toBe('done')
      await server.settled()
    }
    expect(behind.provider.requests).toHaveLength(2)
  })

  test('a turn fails if the cache cannot be read, but not if it cannot be written', async () => {
    const broken = (): Promise<never> => Promise.reject(new Error('the cache is broken'))
    const kept = await startWithItems({ ports: { cache: { get: () => Promise.resolve(null), put: broken } } })
    expect((await chatEvents(kept, chatBody('Hello'))).at(-1)?.event).toBe('done')
    await kept.settled()
    expect(kept.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    const read = await startWithItems({ ports: { cache: { get: broken, put: broken } } })
    expect((await chatEvents(read, chatBody('Hello'))).at(-1)?.data).toEqual({
      error: 'upstream_error',
      code: 'failed',
    })
    await settledWell(read)
  })
})

test('a round without reported usage is charged its input and its whole output limit', async () => {
  const server = await startAgent({ provider: { rounds: [[{ text: 'Hello' }]], ending: 'reset' } })
  await chatEvents(server, chatBody('Hello'))
  const [turn] = await settledWell(server)
  expect(turn).toMatchObject({ code: 'truncated' })
  // Its bytes, and all that it was allowed to write.
  expect(turn?.['costMicroUsd']).toBeGreaterThan(5_000 + 2 * 1_000)
})

test('a chat about an item starts from the item, or from the site if the key is unknown or item chats are off', async () => {
  const server = await startWithItems()
  const scope = (key: string): object => ({ scope: { type: 'item', key } })
  await chatEvents(server, chatBody('What is it?', scope('hn-hn1')))
  await chatEvents(server, chatBody('What is it?', scope('hn-404')))
  const off = await startWithItems({ settings: { itemChat: false } })
  await chatEvents(off, chatBody('What is it?', scope('hn-hn1')))
  await Promise.all([server.settled(), off.settled()])
  const kinds = [...server.turns(), ...off.turns()].map(({ scope: kind }) => kind)
  expect(kinds).toEqual(['item', 'site', 'site'])
})

test('no text of the conversation and no data of the caller is logged', async () => {
  for (const provider of [SEARCHING, 'failed', 'bad arguments', 'HTML 200'] as const) {
    const server = await startAgent({ provider })
    const token = await sessionOf(server)
    await chatEvents(server, chatBody('Wolfram Schmidt asks', { settings: { prePrompt: 'Heinrich' } }), {
      token,
    })
    await chat(server, '{"messages":[{"role":"user","content":"Wolfram"', { token })
    await server.settled()
    const logged = JSON.stringify(server.lines, (_key, value: unknown) =>
      value instanceof Error ? `${value.stack} ${JSON.stringify(value)}` : value,
    )
    expect(logged).toContain('chat turn')
    const texts = ['Wolfram', 'Heinrich', 'Hello', 'Let me see', '127.0.0.1', 'SECRET']
    for (const secret of [...texts, token, token.split('.')[1] ?? '']) expect(logged).not.toContain(secret)
  }
})
