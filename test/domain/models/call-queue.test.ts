import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CallQueue, STARTS_PER_MINUTE, WINDOW_MS } from '../../../src/domain/models/call-queue.ts'
import type { CallQueueOptions, QueuedCall } from '../../../src/domain/models/call-queue.ts'

const MODELS = ['a/one:free', 'b/two:free', 'c/three:free']

interface TimedQueue {
  queue: CallQueue
  time: { now: number }
  /** Starts the next call, while none is open. */
  started(): QueuedCall
}

function timed(models: readonly string[], options: Partial<CallQueueOptions> = {}): TimedQueue {
  const time = { now: 1_000 }
  const queue = new CallQueue({
    plan: { calls: models.map((model) => ({ model, kind: 'tool' })), budget: 40 },
    requestsLeft: new Map(models.map((model) => [model, 3])),
    startsPerMinute: STARTS_PER_MINUTE,
    recentAges: [],
    monotonic: () => time.now,
    ...options,
  })
  const started = (): QueuedCall => {
    const next = queue.next([], false)
    if (next.do !== 'start') throw new Error(`nothing to start: ${next.do}`)
    queue.start(next.call)
    return next.call
  }
  return { queue, time, started }
}

const start = (model: string): object => ({
  do: 'start',
  call: expect.objectContaining({ model }) as unknown,
})

describe('the next start', () => {
  test.each<[string, string[], string[], boolean, object]>([
    ['is a call whose vendor has none open', ['a/x', 'b/x'], ['a'], false, start('b/x')],
    ['waits for an open call of its vendor', ['a/x'], ['a'], false, { do: 'settle' }],
    ['waits while four are open', ['e/x'], ['a', 'b', 'c', 'd'], false, { do: 'settle' }],
    ['waits where one is open at a time', ['b/x'], ['a'], true, { do: 'settle' }],
    ['waits for the last call', [], ['a'], false, { do: 'settle' }],
    ['is none in the end', [], [], false, { do: 'done' }],
  ])('the next start %s', (_what, models, open, careful, next) => {
    expect(timed(models).queue.next(open, careful)).toEqual(next)
  })

  test('the queue skips a call whose retry waits, and waits for it when it is the last', () => {
    const { queue, time, started } = timed(['a/x', 'b/x'])
    expect(queue.retry(started(), 900)).toBe(true)
    started()
    expect(queue.next([], false)).toEqual({ do: 'wait', until: time.now + 5_000 })
  })

  test.each([
    ['of a call that is a retry', true, 0],
    ['after a longer wait than a pause may take', false, 65_001],
  ])('the queue refuses a retry %s', (_what, retry, waitMs) => {
    const { queue, started } = timed(['a/x'])
    expect(queue.retry({ ...started(), retry }, waitMs)).toBe(false)
    expect(queue.next([], false)).toEqual({ do: 'done' })
  })

  test('the queue waits for the window, which earlier requests and those of others fill too, and for the account', () => {
    const ages = Array.from({ length: STARTS_PER_MINUTE - 1 }, () => 100)
    const { queue, time, started } = timed(MODELS, { recentAges: ages })
    started()
    expect(queue.next([], false)).toEqual({ do: 'wait', until: 900 + WINDOW_MS })
    time.now = 900 + WINDOW_MS
    expect(queue.next([], false)).toEqual(start(MODELS[1] ?? ''))
    queue.noteOtherRequests(ages)
    expect(queue.next([], false)).toEqual({ do: 'wait', until: 1_000 + WINDOW_MS })
    time.now += WINDOW_MS
    queue.waitForAccount(time.now, 70_000, 0)
    expect(queue.next([], false)).toEqual({ do: 'wait', until: time.now + 71_000 })
  })

  test('the queue never exceeds a window or a vendor, in any interleaving and at any rate', () => {
    const vendors = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 60 })
    const durations = fc.infiniteStream(fc.nat(90_000))
    const learned = fc.array(fc.option(fc.integer({ min: 3, max: 21 })), { maxLength: 60 })
    fc.assert(
      fc.property(vendors, durations, learned, (drawn, lasts, rates) => {
        const models = drawn.map((vendor, index) => `${vendor}/${index}`)
        const { queue, time } = timed(models, {
          plan: { calls: models.map((model) => ({ model, kind: 'text' })), budget: 100 },
        })
        const open: { vendor: string; endsAt: number }[] = []
        const starts: number[] = []
        for (;;) {
          const next = queue.next(
            open.map(({ vendor }) => vendor),
            false,
          )
          if (next.do === 'done') break
          if (next.do === 'start') {
            const { vendor } = next.call
            expect(open.map((each) => each.vendor)).not.toContain(vendor)
            starts.push(queue.start(next.call))
            open.push({ vendor, endsAt: time.now + (lasts.next().value ?? 0) })
            const rate = rates[starts.length] ?? null
            if (rate !== null) queue.lowerRate(rate, time.now)
            const inWindow = starts.filter((at) => at > time.now - 60_000)
            expect(inWindow.length).toBeLessThanOrEqual(STARTS_PER_MINUTE)
            continue
          }
          const ends = Math.min(...open.map(({ endsAt }) => endsAt))
          time.now = next.do === 'wait' ? Math.min(next.until, ends) : ends
          for (let index = open.length - 1; index >= 0; index -= 1) {
            if ((open[index]?.endsAt ?? 0) <= time.now) open.splice(index, 1)
          }
        }
        expect(starts).toHaveLength(drawn.length)
      }),
    )
  })
})

describe('the queue of a run', () => {
  test('the queue keeps the order of the plan, and starts again with calls that the account blocked', () => {
    const { queue, started } = timed(MODELS)
    const first = started()
    expect(first.model).toBe(MODELS[0])
    queue.requeue(first)
    expect([started(), started(), started()].map(({ model }) => model)).toEqual(MODELS)
  })

  test('the queue sends one call at a time until one that started after the limit has passed', () => {
    const { queue, time, started } = timed(MODELS)
    const before = time.now
    started()
    time.now += 500
    queue.waitForAccount(before, 1_000, 5_000)
    time.now += 10_000
    queue.noteAccepted(before)
    expect(queue.next(['a'], false)).toEqual({ do: 'settle' })
    queue.noteAccepted(time.now)
    expect(queue.next(['a'], false)).toEqual(start(MODELS[1] ?? ''))
  })

  test('the queue lowers its rate once for calls that were open together', () => {
    const { queue, time } = timed(MODELS)
    const together = time.now
    time.now += 500
    queue.lowerRate(null, together)
    queue.lowerRate(null, together)
    expect(queue.learnedRate).toBe(17)
    time.now += 1
    queue.lowerRate(null, time.now)
    expect(queue.learnedRate).toBe(15)
  })

  test.each([
    [19, 16, 14],
    [10, 16, 10],
    [2, 1, 1],
  ])(
    'a queue that starts %i calls a minute and meets a limit of %i keeps to %i',
    (startsPerMinute, limit, rate) => {
      const { queue, time } = timed(MODELS, { startsPerMinute })
      queue.lowerRate(limit, time.now)
      expect(queue.learnedRate).toBe(rate)
    },
  )

  test('the queue sends no more than the budget and the requests of each model, in any order of failures', () => {
    const drawnModels = fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 25 })
    fc.assert(
      fc.property(drawnModels, fc.nat(30), fc.infiniteStream(fc.nat(2)), (lefts, retries, fails) => {
        const models = lefts.map((_left, index) => `v${index}/x`)
        const requestsLeft = new Map(models.map((model, index) => [model, lefts[index] ?? 0]))
        const calls = models.map((model) => ({ model, kind: 'tool' as const }))
        const budget = calls.length + retries
        const { queue, time } = timed(models, {
          plan: { calls, budget },
          requestsLeft,
          startsPerMinute: 1_000,
        })
        const sent = new Map<string, number>()
        for (let next = queue.next([], false); next.do !== 'done'; next = queue.next([], false)) {
          if (next.do === 'wait') time.now = next.until
          if (next.do !== 'start') continue
          const { call } = next
          queue.start(call)
          sent.set(call.model, (sent.get(call.model) ?? 0) + 1)
          const failed = fails.next().value
          if (failed === 1) queue.retry(call, 0)
          if (failed === 2) queue.requeue(call)
        }
        expect(queue.sent).toBeLessThanOrEqual(budget)
        for (const [model, count] of sent) expect(count).toBeLessThanOrEqual(requestsLeft.get(model) ?? 0)
      }),
    )
  })
})
