import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  learnedRate,
  mayRetry,
  nextStart,
  planCalls,
  REQUESTS_A_MODEL,
  requestsLeft,
  requestsLeftOfModel,
  RESERVED_REQUESTS,
  STARTS_A_MINUTE,
  vendorOf,
  WINDOW_MS,
} from '../../../src/domain/models/quota.ts'
import type { Pace, QuotaClaim, Waiting } from '../../../src/domain/models/quota.ts'

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
  test.each([
    ['what neither count has spent, less the reserve', { limit: 50, used: 3 }, 0, 0, 37],
    ['what our count has not spent', { limit: 50, used: 3 }, 20, 0, 20],
    ['what the count of the service has not spent', { limit: 50, used: 30 }, 20, 0, 10],
    ['nothing where more is spent', { limit: 50, used: 52 }, 20, 0, 0],
    ['what a large account has', { limit: 1000, used: 0 }, 36, 0, 954],
    ['those of an account without credits where none is told', null, 0, 0, 50 - RESERVED_REQUESTS],
    ['nothing of these', null, 45, 0, 0],
    ['less what the service may not know yet', { limit: 50, used: 0 }, 10, 10, 30],
    ['less that of either', { limit: 50, used: 20 }, 10, 10, 10],
  ])('leave %s', (_what, told, sent, lately, left) => {
    expect(requestsLeft(told, sent, lately)).toBe(left)
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

test.each([
  ['fullEval', 'on a UTC day', [3, 1, 0, 0]],
  ['forceEval', 'in each forced run', [3, 3, 3, 3]],
] as const)('the requests of a model in %s are three %s', (mode, _when, left) => {
  expect([0, 2, 3, 9].map((sent) => requestsLeftOfModel(mode, sent))).toEqual(left)
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

const PACE: Pace = { startsAMinute: STARTS_A_MINUTE, notBefore: 0, oneByOne: false }
const call = (vendor: string, readyAt = 0): Waiting => ({ vendor, readyAt })

describe('the next start', () => {
  const full = Array.from({ length: STARTS_A_MINUTE }, (_, index) => index)

  test.each<[string, Waiting[], string[], number[], Partial<Pace>, number, ReturnType<typeof nextStart>]>([
    [
      'is a call whose vendor has none open',
      [call('a'), call('b')],
      ['a'],
      [],
      {},
      5,
      { do: 'start', index: 1 },
    ],
    ['waits for an open call of its vendor', [call('a')], ['a'], [], {}, 5, { do: 'settle' }],
    ['waits while four are open', [call('e')], ['a', 'b', 'c', 'd'], [], {}, 5, { do: 'settle' }],
    ['waits where one is open at a time', [call('b')], ['a'], [], { oneByOne: true }, 5, { do: 'settle' }],
    ['waits for the last call', [], ['a'], [], {}, 5, { do: 'settle' }],
    ['is none in the end', [], [], [], {}, 5, { do: 'done' }],
    [
      'passes a call whose retry waits',
      [call('a', 900), call('b')],
      [],
      [],
      {},
      5,
      { do: 'start', index: 1 },
    ],
    ['waits for a retry', [call('a', 900)], [], [], {}, 5, { do: 'wait', until: 900 }],
    ['waits for the account', [call('a')], [], [], { notBefore: 70 }, 5, { do: 'wait', until: 70 }],
    ['waits for the window', [call('a')], [], full, {}, 30, { do: 'wait', until: WINDOW_MS }],
    ['follows the window', [call('a')], [], full, {}, WINDOW_MS, { do: 'start', index: 0 }],
  ])('%s', (_what, queue, open, started, pace, now, next) => {
    expect(nextStart(queue, open, started, { ...PACE, ...pace }, now)).toEqual(next)
  })

  test('never crowds a window nor a vendor, in any interleaving, whatever rate was learned on the way', () => {
    const vendors = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 60 })
    const durations = fc.infiniteStream(fc.nat(90_000))
    const learned = fc.array(fc.option(fc.integer({ min: 1, max: 19 })), { maxLength: 60 })
    fc.assert(
      fc.property(vendors, durations, learned, (drawn, lasts, rates) => {
        const queue = drawn.map((vendor) => call(vendor))
        const open: { vendor: string; endsAt: number }[] = []
        const starts: number[] = []
        const pace = { ...PACE }
        let now = 0
        for (;;) {
          const next = nextStart(
            queue,
            open.map(({ vendor }) => vendor),
            starts,
            pace,
            now,
          )
          if (next.do === 'done') break
          if (next.do === 'start') {
            const [started] = queue.splice(next.index, 1)
            expect(open.map(({ vendor }) => vendor)).not.toContain(started?.vendor)
            starts.push(now)
            open.push({ vendor: started?.vendor ?? '', endsAt: now + (lasts.next().value ?? 0) })
            const rate = rates[starts.length] ?? null
            if (rate !== null) pace.startsAMinute = Math.min(rate, pace.startsAMinute)
            const inWindow = starts.filter((at) => at > now - 60_000)
            expect(inWindow.length).toBeLessThanOrEqual(STARTS_A_MINUTE)
            continue
          }
          const ends = Math.min(...open.map(({ endsAt }) => endsAt))
          now = next.do === 'wait' ? Math.min(next.until, ends) : ends
          for (let index = open.length - 1; index >= 0; index -= 1) {
            if ((open[index]?.endsAt ?? 0) <= now) open.splice(index, 1)
          }
        }
        expect(starts).toHaveLength(drawn.length)
      }),
    )
  })
})

test('a learned rate stays two below the limit that was met, and never rises', () => {
  expect(learnedRate(19, 16)).toBe(14)
  expect(learnedRate(10, 16)).toBe(10)
  expect(learnedRate(19, null)).toBe(17)
  expect(learnedRate(2, 1)).toBe(1)
})

test('the vendor of a model is what its id begins with', () => {
  expect(vendorOf('example/model-1:free')).toBe('example')
})
