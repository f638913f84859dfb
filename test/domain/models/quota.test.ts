import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  mayRetry,
  parseKeyRequests,
  planCalls,
  REQUESTS_A_MODEL,
  requestsLeft,
  requestsLeftOfModel,
  RESERVED_REQUESTS,
} from '../../../src/domain/models/quota.ts'
import type { QuotaClaim } from '../../../src/domain/models/quota.ts'

const BOTH = ['tool', 'text'] as const

const claim = (model: string, changes: Partial<QuotaClaim> = {}): QuotaClaim => ({
  model,
  open: BOTH,
  left: REQUESTS_A_MODEL,
  canWin: false,
  lastEvaluatedAt: null,
  ...changes,
})

describe('the requests of a key', () => {
  test('are read from the answer', () => {
    const body = JSON.stringify({
      data: { free_model_daily_requests: { limit: 50, used: 52, remaining: 0 } },
    })
    expect(parseKeyRequests(body)).toEqual({ limit: 50, used: 52 })
  })

  test.each([
    ...['', '<html>', '{}', '{"data":{}}', '{"data":{"free_model_daily_requests":null}}'],
    '{"data":{"free_model_daily_requests":{"limit":"x"}}}',
  ])('are not told by %j', (body) => {
    expect(parseKeyRequests(body)).toBeNull()
  })

  test('leave what neither count has spent, less the reserve', () => {
    expect(requestsLeft({ limit: 50, used: 3 }, 0, 0)).toBe(37)
    expect(requestsLeft({ limit: 50, used: 3 }, 20, 0)).toBe(20)
    expect(requestsLeft({ limit: 50, used: 30 }, 20, 0)).toBe(10)
    expect(requestsLeft({ limit: 50, used: 52 }, 20, 0)).toBe(0)
    expect(requestsLeft({ limit: 1000, used: 0 }, 36, 0)).toBe(954)
  })

  test('are those of an account without credits when the service does not tell', () => {
    expect(requestsLeft(null, 0, 0)).toBe(50 - RESERVED_REQUESTS)
    expect(requestsLeft(null, 45, 0)).toBe(0)
  })

  test('take what the service may not know yet off', () => {
    expect(requestsLeft({ limit: 50, used: 0 }, 10, 10)).toBe(30)
    expect(requestsLeft({ limit: 50, used: 20 }, 10, 10)).toBe(10)
  })

  test('are never overdrawn, however stale the answer and however often a run begins', () => {
    const run = fc.record({ others: fc.nat(8), stale: fc.boolean(), killedAfter: fc.nat(30) })
    fc.assert(
      fc.property(fc.array(run, { maxLength: 12 }), fc.integer({ min: 0, max: 80 }), (runs, limit) => {
        let ours = 0
        let total = 0
        for (const { others, stale, killedAfter } of runs) {
          total += others
          const oursLately = stale ? ours : 0
          // A stale answer misses our last requests; those of others it may miss are what the reserve is for.
          const used = stale ? Math.max(0, total - oursLately) : total
          const left = requestsLeft({ limit, used }, ours, oursLately)
          const sent = Math.min(left, killedAfter)
          const most = Math.max(limit - RESERVED_REQUESTS, total)
          ours += sent
          total += sent
          expect(total).toBeLessThanOrEqual(most)
        }
      }),
    )
  })
})

describe('the requests of a model', () => {
  test('are three on a UTC day', () => {
    expect([0, 2, 3, 9].map((sent) => requestsLeftOfModel('fullEval', sent))).toEqual([3, 1, 0, 0])
  })

  test('are three in each forced run, however many it was sent that day', () => {
    expect([0, 3, 99].map((sent) => requestsLeftOfModel('forceEval', sent))).toEqual([3, 3, 3])
  })
})

describe('the plan of calls', () => {
  test('asks who can still win first, then whose evaluation is the oldest', () => {
    const claims = [
      claim('a/fresh', { lastEvaluatedAt: 900 }),
      claim('b/old', { lastEvaluatedAt: 100 }),
      claim('c/never'),
      claim('d/winner', { lastEvaluatedAt: 950, canWin: true }),
    ]
    const { calls, postponed } = planCalls(claims, 4)
    expect(calls).toEqual([
      { model: 'd/winner', kind: 'tool' },
      { model: 'd/winner', kind: 'text' },
      { model: 'c/never', kind: 'tool' },
      { model: 'c/never', kind: 'text' },
    ])
    expect(postponed).toEqual(['b/old', 'a/fresh'])
  })

  test('asks both questions of a model or none, and only those that are open', () => {
    const claims = [
      claim('a/one', { open: ['text'], left: 2 }),
      claim('b/two'),
      claim('c/done', { open: [] }),
    ]
    expect(planCalls(claims, 2)).toEqual({
      calls: [{ model: 'a/one', kind: 'text' }],
      postponed: ['b/two'],
      spent: [],
      budget: 2,
    })
  })

  test('leaves a model out that has no requests left today, without calling it postponed', () => {
    const claims = [claim('a/one', { left: 1 }), claim('b/two', { open: ['text'], left: 0 })]
    expect(planCalls(claims, 40)).toEqual({ calls: [], postponed: [], spent: ['a/one', 'b/two'], budget: 40 })
  })

  test('and its retries never exceed what is left, nor a model its three, in any order of failures', () => {
    const claims = fc.array(
      fc.record({
        left: fc.nat(3),
        open: fc.subarray<'tool' | 'text'>(['tool', 'text']),
        canWin: fc.boolean(),
        lastEvaluatedAt: fc.option(fc.nat(), { nil: null }),
      }),
      { maxLength: 25 },
    )
    fc.assert(
      fc.property(claims, fc.nat(60), fc.infiniteStream(fc.boolean()), (drawn, left, fails) => {
        const named = drawn.map((each, index) => ({ ...each, model: `v/${index}` }))
        const { calls, budget } = planCalls(named, left)
        const sent = new Map(named.map(({ model }) => [model, 0]))
        let sentInRun = 0
        let unsentFirstCalls = calls.length
        const queue = calls.map((call) => ({ ...call, retry: false }))
        for (let call = queue.shift(); call; call = queue.shift()) {
          const already = sent.get(call.model) ?? 0
          const mayBeSent = named.find(({ model }) => model === call.model)?.left ?? 0
          if (call.retry && !mayRetry({ left: mayBeSent - already, budget, sentInRun, unsentFirstCalls }))
            continue
          if (!call.retry) unsentFirstCalls -= 1
          sentInRun += 1
          sent.set(call.model, already + 1)
          if (fails.next().value && !call.retry) queue.push({ ...call, retry: true })
        }
        expect(sentInRun).toBeLessThanOrEqual(left)
        for (const [model, count] of sent) {
          expect(count).toBeLessThanOrEqual(named.find((each) => each.model === model)?.left ?? 0)
        }
      }),
    )
  })
})
