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
    let readings = 0
    const { queue } = timed(models, { monotonic: () => (readings += 1) })
    expect(queue.next(new Set(ambiguous), [])?.call.model).toBe(model)
  })

  test('the queue skips a call whose retry waits, and waits for it when it is the last', () => {
    const calls = ['a/x', 'b/x'].map((model) => ({ model, kind: 'tool' as const }))
    // One more request than calls.
    const { queue, time, started } = timed(['a/x', 'b/x'], { plan: { calls, budget: 3 } })
    expect(queue.retry(started(), 900)).toBe(true)
    expect(started().model).toBe('b/x')
    expect(queue.next(NONE, [])).toMatchObject({ call: { model: 'a/x' }, at: time.now + 5_000 })
  })

  test.each<[string, Partial<QueuedCall>, number, Partial<CallQueueOptions>]>([
    ['of a call that is a retry', { retry: true }, 0, {}],
    ['after a longer wait than a pause may take', {}, 65_001, {}],
    ['of a model without another request', {}, 0, { requestsLeft: new Map([['a/x', 1]]) }],
    ['beyond the budget', {}, 0, { plan: { calls: [{ model: 'a/x', kind: 'tool' }], budget: 1 } }],
  ])('the queue refuses a retry %s', (_what, changes, waitMs, options) => {
    const { queue, started } = timed(['a/x'], options)
    expect(queue.retry({ ...started(), ...changes }, waitMs)).toBe(false)
    expect(queue.next(NONE, [])).toBeNull()
  })

  test('a call is retried once, and while its model has a request beside the waiting ones', () => {
    const calls = (['tool', 'text'] as const).map((kind) => ({ model: 'a/x', kind }))
    const { queue, time, started } = timed(['a/x'], { plan: { calls, budget: 9 } })
    expect(queue.retry(started(), 65_000)).toBe(true)
    const [text] = [started()]
    expect([text.kind, queue.retry(text, 0)]).toEqual(['text', false])
    time.now += 65_000
    const again = started()
    expect([again.kind, again.retry, queue.retry(again, 0)]).toEqual(['tool', true, false])
  })

  test('a blocked call replaces its own retry alone, and the calls of a model are dropped together', () => {
    const calls = ['a/x', 'a/x', 'b/x'].map((model, at) => ({
      model,
      kind: at === 1 ? ('text' as const) : ('tool' as const),
    }))
    const { queue, started } = timed(['a/x', 'b/x'], { plan: { calls, budget: 9 } })
    const first = started()
    queue.retry(first, 0)
    queue.requeue(first)
    expect(queue.drop('a/x').map(({ kind }) => kind)).toEqual(['tool', 'text'])
    expect([queue.length, started().model]).toEqual([1, 'b/x'])
  })

  test('a call that the account blocked is dropped without another request', () => {
    const { queue, started } = timed(['a/x'], { requestsLeft: new Map([['a/x', 1]]) })
    queue.requeue(started())
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
    expect(waits()).toEqual([true, 3_000])
    queue.noteAccepted()
    expect(queue.waitForAccount(299_000, 0)).toBe(true)
    queue.noteAccepted()
    expect(queue.waitForAccount(299_001, 0)).toBe(false)
    queue.noteAccepted()
    expect(queue.waitForAccount(null, 300_000)).toBe(true)
  })

  test.each([
    ['by two each time that no limit is named', [null, null], 15],
    ['to two below a limit', [16], 14],
    ['to one at least', [1], 1],
    ['by two for a limit of nothing', [0], 17],
  ])('the queue lowers its rate %s', (_what, limits, rate) => {
    const { queue, time } = timed(MODELS)
    for (const limit of limits) queue.lowerRate(limit)
    const opensAt = (requests: number): number => queue.next(NONE, Array<number>(requests).fill(0))?.at ?? 0
    expect([opensAt(rate - 1), opensAt(rate)]).toEqual([time.now, time.now + WINDOW_MS])
    expect(queue.learnedRate).toBe(rate)
  })
})
