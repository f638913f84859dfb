import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CallQueue, STARTS_PER_MINUTE, WINDOW_MS, agesInWindow } from '../../../src/domain/models/quota.ts'
import type { CallQueueOptions, QueuedCall } from '../../../src/domain/models/quota.ts'

const MODELS = ['a/one:free', 'b/two:free', 'c/three:free']

const NONE: ReadonlySet<string> = new Set()

interface TimedQueue {
  queue: CallQueue
  time: { now: number }
  /** Starts the next call. */
  started(): QueuedCall
}

function timed(models: readonly string[], options: Partial<CallQueueOptions> = {}): TimedQueue {
  const time = { now: 1_000 }
  const queue = new CallQueue({
    plan: { calls: models.map((model) => ({ model, kind: 'tool' })), budget: 40 },
    requestsLeft: new Map(models.map((model) => [model, 3])),
    learnedRate: null,
    monotonic: () => time.now,
    ...options,
  })
  const started = (): QueuedCall => {
    const next = queue.next(NONE, [])
    if (next === null || next.at > time.now) throw new Error('no call may start now')
    queue.start(next.call)
    return next.call
  }
  return { queue, time, started }
}

describe('the next start', () => {
  test.each<[string, string[], string[], string | undefined]>([
    ['is one of another vendor after an ambiguous response', ['a/x', 'a/y', 'b/x'], ['a'], 'b/x'],
    ['is one of the same vendor where no other is left', ['a/x'], ['a'], 'a/x'],
  ])('the next start %s', (_what, models, ambiguous, model) => {
    expect(timed(models).queue.next(new Set(ambiguous), [])?.call.model).toBe(model)
  })

  test('the queue skips a call whose retry waits, and waits for it when it is the last', () => {
    const { queue, time, started } = timed(['a/x', 'b/x'])
    expect(queue.retry(started(), 900)).toBe(true)
    expect(started().model).toBe('b/x')
    expect(queue.next(NONE, [])).toMatchObject({ call: { model: 'a/x' }, at: time.now + 5_000 })
  })

  test.each([
    ['of a call that is a retry', true, 0],
    ['after a longer wait than a pause may take', false, 65_001],
  ])('the queue refuses a retry %s', (_what, retry, waitMs) => {
    const { queue, started } = timed(['a/x'])
    expect(queue.retry({ ...started(), retry }, waitMs)).toBe(false)
    expect(queue.next(NONE, [])).toBeNull()
  })

  test('the queue waits for the window that requests fill, and for the account', () => {
    const { queue, time } = timed(MODELS)
    const ages = Array.from({ length: STARTS_PER_MINUTE }, (_, index) => 100 + index)
    expect(queue.next(NONE, ages.slice(1))?.at).toBe(time.now)
    const opensAt = time.now - (ages.at(-1) ?? 0) + WINDOW_MS
    expect(queue.next(NONE, ages)?.at).toBe(opensAt)
    expect(queue.next(NONE, [WINDOW_MS - 1, ...ages])?.at).toBe(opensAt)
    queue.waitForAccount(70_000, 0)
    expect(queue.next(NONE, ages)?.at).toBe(time.now + 71_000)
  })

  test('a request by a clock slightly ahead counts as just sent, and one further ahead does not count', () => {
    const ages = [WINDOW_MS, WINDOW_MS - 1, 0, 1 - WINDOW_MS, -WINDOW_MS]
    const sentAt = ages.map((ageMs) => 1e9 - ageMs)
    expect(agesInWindow(sentAt, 1e9)).toEqual([WINDOW_MS - 1, 0, 0])
  })

  test('the queue never exceeds a window, with calls of any length and at any rate', () => {
    const durations = fc.array(fc.nat(90_000), { maxLength: 60 })
    const learned = fc.array(fc.option(fc.integer({ min: 3, max: 21 })), { maxLength: 60 })
    fc.assert(
      fc.property(durations, learned, (lasts, rates) => {
        const models = lasts.map((_ms, index) => `a/${index}`)
        const { queue, time } = timed(models, {
          plan: { calls: models.map((model) => ({ model, kind: 'text' })), budget: 100 },
        })
        const starts: number[] = []
        const ages = () => starts.map((at) => time.now - at).filter((age) => age < WINDOW_MS)
        for (let next = queue.next(NONE, []); next !== null; next = queue.next(NONE, ages())) {
          time.now = Math.max(time.now, next.at)
          queue.start(next.call)
          starts.push(time.now)
          const inWindow = starts.filter((at) => at > time.now - 60_000)
          expect(inWindow.length).toBeLessThanOrEqual(STARTS_PER_MINUTE)
          const rate = rates[starts.length] ?? null
          if (rate !== null) queue.lowerRate(rate)
          time.now += lasts[starts.length] ?? 0
        }
        expect(starts).toHaveLength(lasts.length)
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

  test('the queue waits three times in a row for the account, at least a window after the first, until a call is accepted', () => {
    const { queue, time } = timed(MODELS)
    const waits = (): unknown[] => [
      queue.waitForAccount(2_000, 0),
      (queue.next(NONE, [])?.at ?? 0) - time.now,
    ]
    expect(waits()).toEqual([true, 3_000])
    expect(waits()).toEqual([true, WINDOW_MS])
    expect(waits()).toEqual([true, WINDOW_MS])
    expect(queue.waitForAccount(2_000, 0)).toBe(false)
    queue.noteAccepted()
    expect(queue.waitForAccount(2_000, 0)).toBe(true)
    expect(queue.waitForAccount(300_001, 0)).toBe(false)
  })

  test.each([
    ['by two each time that no limit is named', [null, null], 15],
    ['to two below a limit', [16], 14],
    ['to one at least', [1], 1],
  ])('the queue lowers its rate %s', (_what, limits, rate) => {
    const { queue, time } = timed(MODELS)
    for (const limit of limits) queue.lowerRate(limit)
    const opensAt = (requests: number): number => queue.next(NONE, Array<number>(requests).fill(0))?.at ?? 0
    expect([opensAt(rate - 1), opensAt(rate)]).toEqual([time.now, time.now + WINDOW_MS])
  })

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
        })
        const sent = new Map<string, number>()
        for (let next = queue.next(NONE, []); next !== null; next = queue.next(NONE, [])) {
          const { call } = next
          time.now = Math.max(time.now, next.at)
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
