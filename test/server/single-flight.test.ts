import { describe, expect, test } from 'vitest'
import { singleFlight, batchPerTick } from '../../src/server/single-flight.ts'

/** Work that ends on demand and counts its starts. */
function controlled(): { work: () => Promise<number>; begun: () => number; finish: () => void } {
  let begun = 0
  let finish: () => void = () => undefined
  const work = async (): Promise<number> => {
    begun += 1
    const mine = begun
    await new Promise<void>((resolve) => (finish = resolve))
    return mine
  }
  return { work, begun: () => begun, finish: () => finish() }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a coalesced reading', () => {
  test('a shared read never starts before the call of its caller', async () => {
    const { work, finish } = controlled()
    const read = singleFlight(work)
    const first = read()
    const second = read()
    const third = read()
    finish()
    expect(await first).toBe(1)
    await turn()
    finish()
    expect([await second, await third]).toEqual([2, 2])
  })

  test('a failing read fails only for its own callers, not for those of the next one', async () => {
    let calls = 0
    const read = singleFlight(async () => {
      calls += 1
      await turn()
      if (calls === 1) throw new Error('the first fails')
      return calls
    })
    const [first, second] = [read(), read()]
    await expect(first).rejects.toThrow('the first fails')
    expect(await second).toBe(2)
  })
})

describe('work done together', () => {
  test('shared work starts once, after every call of the turn', async () => {
    const events: string[] = []
    const look = batchPerTick(() => events.push('looked'))
    events.push('first asks')
    const first = look()
    events.push('second asks')
    const second = look()
    await Promise.all([first, second])
    expect(events).toEqual(['first asks', 'second asks', 'looked'])
  })

  test('failing work fails for all its callers, and the next turn starts again', async () => {
    let looks = 0
    const look = batchPerTick(() => {
      looks += 1
      if (looks === 1) throw new Error('cannot look')
      return looks
    })
    const results = await Promise.allSettled([look(), look()])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await look()).toBe(2)
  })
})
