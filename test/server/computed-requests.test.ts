import { EventEmitter } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openComputedRequests } from '../../src/server/computed-requests.ts'
import type { ComputedRequests } from '../../src/server/computed-requests.ts'

/** A queue whose computations block for no time, so that there are no pauses. */
const withoutPauses = (): ComputedRequests =>
  openComputedRequests({ now: () => 0, pause: async () => undefined, watch: () => () => 0 })

/**
 * Runs computations that block for the given times, in milliseconds, one after another or all asked for at once.
 *
 * @returns the pauses, in milliseconds, each after the number of computations before it
 */
async function pausesOf(blocks: readonly number[], isSequential = false): Promise<string> {
  const pauses: string[] = []
  let [now, started, open] = [0, 0, 0]
  const queue = openComputedRequests({
    now: () => now,
    async pause(ms) {
      pauses.push(`${started}: ${ms}`)
      now += ms
    },
    watch() {
      const startedAt = now
      return () => now - startedAt
    },
  })
  const compute = (block: number): Promise<void> =>
    queue.run('a', async () => {
      started += 1
      expect((open += 1)).toBe(1)
      now += block
      await nextTurn()
      open -= 1
    })
  if (isSequential) for (const block of blocks) await compute(block)
  else await Promise.all(blocks.map(compute))
  return pauses.join(', ')
}

test.each<[string, number[], boolean, string]>([
  // After 27 computations 112 ms are owed; each further one is followed by a pause as long.
  ['shortly', Array<number>(32).fill(4), false, '27: 4, 28: 4, 29: 4, 30: 4, 31: 4'],
  ['long', [8, 10, 40, 1, 1], false, '2: 44, 3: 68, 4: 1'],
  ['one after another', [10, 1, 10, 1, 10], true, '3: 63, 4: 1'],
])(
  'computations that block %s run one at a time, with pauses of once or nine times their duration, of at most 108 ms, and 108 ms owed',
  async (_what, blocks, isSequential, pauses) => {
    expect(await pausesOf(blocks, isSequential)).toBe(pauses)
  },
)

test('the time for which computations block the event loop is measured', async () => {
  const pauses: number[] = []
  const queue = openComputedRequests({ pause: async (ms) => void pauses.push(ms) })
  for (let long = 0; long < 3; long += 1)
    await queue.run('a', async () => {
      const end = performance.now() + 20
      while (performance.now() < end);
    })
  await queue.run('a', async () => undefined)
  expect(pauses.length).toBeGreaterThan(0)
  expect(Math.min(...pauses)).toBeGreaterThan(0)
})

const idle = (): Promise<void> => new Promise<void>(() => undefined)

/** Counts the computations that start. */
function counted() {
  const started: string[] = []
  const compute = (name: string) => (): Promise<void> => {
    started.push(name)
    return idle()
  }
  return { started, compute }
}

test('an address has two computations at once, a network four, and all eight', async () => {
  const { started, compute } = counted()
  const queue = withoutPauses()
  const addresses = ['192.0.2.1', '2001:db8:1:1::/64', '2001:db8:1:2::/64', '2001:db8:1:3::/64', '192.0.2.2']
  for (let time = 0; time < 4; time += 1)
    for (const address of addresses) queue.run(address, compute(address)).catch(() => undefined)
  await expect.poll(() => started.length).toBe(8)
  await nextTurn()
  expect(started.filter((each) => each === '192.0.2.1')).toHaveLength(2)
  expect(started.filter((each) => each.startsWith('2001'))).toHaveLength(4)
  expect(started).toHaveLength(8)
})

test('other requests get a turn between computations', async () => {
  const queue = withoutPauses()
  const events: string[] = []
  const computations = ['1', '2', '3', '4'].map((name) =>
    queue.run('a', async () => {
      if (name === '1') setImmediate(() => events.push('other'))
      events.push(name)
    }),
  )
  await Promise.all(computations)
  expect(events).toEqual(['1', 'other', '2', '3', '4'])
})

test('a failing computation rejects only for its caller, and the next one runs', async () => {
  const queue = withoutPauses()
  const failing = queue.run('a', () => Promise.reject(new Error('broken')))
  const next = queue.run('a', async () => 'whole')
  await expect(failing).rejects.toThrow('broken')
  expect(await next).toBe('whole')
})

/**
 * A queue in an endless pause, so that every computation waits.
 *
 * @param took milliseconds from one start to the next before the pause
 */
async function stopped(took = 0): Promise<ComputedRequests> {
  let [now, blocked] = [0, 0]
  const queue = openComputedRequests({ now: () => now, pause: idle, watch: () => () => blocked })
  const compute = async (): Promise<void> => {
    now += took
  }
  for (let done = 0; done < 100; done += 1) await queue.run('first', compute)
  // The queue still measures the last one.
  await nextTurn()
  blocked = 1_000
  for (let long = 0; long < 2; long += 1) await queue.run('first', async () => undefined)
  await nextTurn()
  return queue
}

/** Asks for so many computations of each address; those that are refused, now or later, go to `refused`. */
async function fill(
  queue: ComputedRequests,
  addresses: string[],
  times: number,
  refused: unknown[],
): Promise<void> {
  for (const address of addresses)
    for (let time = 0; time < times; time += 1)
      queue.run(address, idle).catch((error: unknown) => refused.push({ address, error }))
  await nextTurn()
}

const BUSY = { code: 'busy', members: { retryAfterSeconds: expect.any(Number) as number } }

test('one address cannot fill the queue, and a newcomer takes a place of the address with the most', async () => {
  const refused: unknown[] = []
  const addresses = Array.from({ length: 9 }, (_, at) => `192.0.2.${at}`)
  await fill(await stopped(), addresses, 40, refused)
  // Each has 32 places, of which the last one takes 28.
  expect(refused).toHaveLength(8 * 8 + 28 + 12)
  for (const each of refused.slice(-12)) expect(each).toMatchObject({ address: '192.0.2.8', error: BUSY })
})

test('the addresses of one IPv6 /48 hold at most 64 waiting places, and a newcomer takes one of theirs', async () => {
  const queue = await stopped()
  const refused: unknown[] = []
  const networks = ['a', 'b', 'c', 'd'].map((network) => `2001:db8:${network}:`)
  const addresses = networks.flatMap((each) => Array.from({ length: 80 }, (_, at) => `${each}${at}::/64`))
  await fill(queue, addresses, 1, refused)
  expect(refused).toHaveLength(4 * 16)
  await fill(queue, ['203.0.113.1'], 1, refused)
  expect(refused.slice(4 * 16)).toMatchObject([{ address: expect.stringMatching(/^2001:/), error: BUSY }])
})

test('a refusal names the seconds after which the caller has a place, by the time that computations take now', async () => {
  const queue = await stopped(500)
  await fill(queue, ['b', 'c', 'a'], 32, [])
  // One of each waiting address comes before the next one of the caller.
  await expect(queue.run('a', idle)).rejects.toMatchObject({ members: { retryAfterSeconds: 2 } })
  await fill(queue, ['d', 'e', 'f', 'g', 'h', 'i'], 32, [])
  // A full queue has a place after one start.
  await expect(queue.run('i', idle)).rejects.toMatchObject({ members: { retryAfterSeconds: 1 } })
})

test('a computation that waits is withdrawn when its connection closes', async () => {
  const queue = withoutPauses()
  const closing = new EventEmitter()
  const running = [1, 2].map(() => queue.run('a', idle))
  for (const each of running) each.catch(() => undefined)
  const computed: string[] = []
  const left = queue.run('a', async () => computed.push('left'), closing)
  await nextTurn()
  closing.emit('close')
  await expect(left).rejects.toMatchObject({ code: 'busy' })
  expect(computed).toEqual([])
  expect(closing.listenerCount('close')).toBe(0)
})
