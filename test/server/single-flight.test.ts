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

test('shared work starts once, after every call of the turn, and the next turn starts again after a failure', async () => {
  const events: string[] = []
  let isBroken = false
  const look = batchPerTick(() => {
    events.push('looked')
    if (isBroken) throw new Error('cannot look')
  })
  const lookTwice = () => [1, 2].map(() => (events.push('asked'), look()))
  await Promise.all(lookTwice())
  expect(events).toEqual(['asked', 'asked', 'looked'])
  isBroken = true
  const results = await Promise.allSettled(lookTwice())
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  isBroken = false
  await look()
  expect(events.filter((event) => event === 'looked')).toHaveLength(3)
})
