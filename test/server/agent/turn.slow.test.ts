import { describe, expect, test } from 'vitest'
import type { TurnClaim } from '../../../src/domain/agent/bounds.ts'
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
    const { admit } = server.ledger
    const claims: TurnClaim[] = []
    server.ledger.admit = (claim) => (claims.push(claim), admit(claim))
    const response = await chat(server, NEWS)
    // The lease is that of the longest turn, and half a minute for its settlement.
    expect(claims).toMatchObject([{ leaseMs: 90_000, server: 'test', network: null, formerAddress: null }])
    const { firstCall, shortestCall } = claims[0]!
    expect(firstCall.withTools).toBeGreaterThan(shortestCall.withTools)
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
    const server = await startAgent({ ports: { sources: stuckAt('revision') }, settings: { pingMs: 5 } })
    const answer = await openAnswer(server, chatBody('Hello'))
    await answer.until('event: meta')
    await answer.until(': ping\n\n: ping\n\n')
    expect(server.provider.requests).toEqual([])
    answer.disconnect()
    expect(await settledWell(server)).toMatchObject([{ terminal: 'gone', costMicroUsd: 0, rounds: 0 }])
  })
})

test('a turn that times out during a tool call sends the end of the tool before the error', async () => {
  const ports = { sources: stuckAt('search') }
  const server = await startAgent({ provider: SEARCHING, ports, settings: { turnMs: 300 } })
  expect(stepsOf(await chatEvents(server, chatBody('Hello')))).toBe('meta start done error')
  await settledWell(server)
  // The aborted read is no failure.
  expect(server.lines.filter(({ level }) => level === 'error')).toEqual([])
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

test('a tool round whose extension cannot be written is followed by a call without tools', async () => {
  const server = await startWithItems({ provider: SEARCHING })
  server.ledger.extend = () => Promise.reject(new Error('the database is locked'))
  const data: unknown = expect.objectContaining({ degraded: true })
  expect((await chatEvents(server, NEWS)).at(-1)).toEqual({ event: 'done', data })
  expect(await settledWell(server)).toMatchObject([{ degraded: true, rounds: 2 }])
  expect(server.lines.filter(({ level }) => level === 'error')).toHaveLength(1)
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
  test('an answer with paragraphs between its tools is cached, and sent again without a model call or tool, at no cost', async () => {
    const server = await startWithItems({ provider: SEARCHING })
    const first = await chatEvents(server, NEWS)
    await server.settled()
    const second = await chatEvents(server, NEWS)
    expect([textOf(first), stepsOf(first)]).toEqual([
      'Let me see. \n\nHello you',
      'meta start done delta start done delta delta done',
    ])
    expect([textOf(second), stepsOf(second)]).toEqual([textOf(first), 'meta delta done'])
    expect(second.at(-1)).toEqual({
      event: 'done',
      data: { usage: { in: 0, out: 0, cached: 0 }, cached: true },
    })
    expect(server.provider.requests).toHaveLength(3)
    expect(await settledWell(server)).toMatchObject([
      { source: 'own', rounds: 3, calls: 2, usage: { in: 300, out: 60, cached: 120 } },
      { source: 'cache', rounds: 0 },
    ])
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
