import { describe, expect, test } from 'vitest'
import { CallQueue } from '../../../src/jobs/models/call-queue.ts'
import type { QueuedCall } from '../../../src/jobs/models/call-queue.ts'

const MODELS = ['a/one:free', 'b/two:free', 'c/three:free']

const queued = (): { queue: CallQueue; time: { now: number }; started: () => QueuedCall } => {
  const time = { now: 1_000 }
  const calls = MODELS.map((model) => ({ model, kind: 'tool' as const }))
  const queue = new CallQueue({
    plan: { calls, postponed: [], spent: [], budget: 40 },
    left: new Map(MODELS.map((model) => [model, 3])),
    startsAMinute: 19,
    recentAges: [],
    monotonic: () => time.now,
  })
  const started = (): QueuedCall => {
    const next = queue.next([], false)
    const call = next.do === 'start' ? queue.take(next.index) : null
    if (!call) throw new Error(`nothing to start: ${next.do}`)
    queue.start(call)
    return call
  }
  return { queue, time, started }
}

describe('the queue of a run', () => {
  test('asks in the order of the plan, and first again whom the account kept from being asked', () => {
    const { queue, started } = queued()
    const first = started()
    expect(first.model).toBe(MODELS[0])
    queue.putBack(first)
    expect([started(), started(), started()].map(({ model }) => model)).toEqual(MODELS)
  })

  test('goes one by one until a call that started after the limit was met has passed', () => {
    const { queue, time, started } = queued()
    const before = time.now
    started()
    time.now += 500
    queue.waitForAccount(before, 1_000, 5_000)
    time.now += 10_000
    queue.passed(before)
    expect(queue.next(['a'], false)).toEqual({ do: 'settle' })
    queue.passed(time.now)
    expect(queue.next(['a'], false)).toEqual({ do: 'start', index: 0 })
  })

  test('learns a lower rate once from calls that were open together', () => {
    const { queue, time } = queued()
    const together = time.now
    time.now += 500
    queue.learn(null, together)
    queue.learn(null, together)
    expect(queue.learned).toBe(17)
    time.now += 1
    queue.learn(null, time.now)
    expect(queue.learned).toBe(15)
  })
})
