import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { FairQueue, OpenSlots, requestTurns } from '../../src/server/fair-queue.ts'

const BOUNDS = { perAddress: 4, perNetwork: 16, all: 64 }
const enterTimes = (places: OpenSlots, address: string, times: number): string[] =>
  Array.from({ length: times }, () => places.enter(address))

describe('the slots of callers', () => {
  test('the addresses of one IPv6 /48 have sixteen slots, and another /48 has its own', () => {
    const places = new OpenSlots(BOUNDS)
    const admitted = Array.from({ length: 20 }, (_, at) => places.enter(`2001:db8:7:${at.toString(16)}::/64`))
    expect(admitted.filter((each) => each === 'admitted')).toHaveLength(16)
    expect(admitted.at(-1)).toBe('address_full')
    expect(places.enter('2001:db8:8:0::/64')).toBe('admitted')
  })

  test('all 64 slots can be taken, and callers within their own limits are refused only then', () => {
    const places = new OpenSlots(BOUNDS)
    for (let at = 0; at < 16; at += 1) enterTimes(places, `192.0.2.${at}`, 4)
    expect(places.enter('198.51.100.1')).toBe('all_full')
    expect(places.enter('192.0.2.1')).toBe('address_full')
    places.leave('192.0.2.1')
    expect(places.enter('198.51.100.1')).toBe('admitted')
  })
})

describe('a fair queue', () => {
  const QUEUE_BOUNDS = { running: { perAddress: 4, perNetwork: 16, all: 64 }, waiting: BOUNDS }
  const drain = (queue: FairQueue<string>): string[] => {
    const job = queue.next()
    return job === undefined ? [] : [job, ...drain(queue)]
  }

  test('the queue serves addresses in turn, and the jobs of one address in order', () => {
    const queue = new FairQueue<string>(QUEUE_BOUNDS)
    for (const job of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.add(job.charAt(0), job)
    expect(drain(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
    expect(queue.next()).toBeUndefined()
  })

  test('the queue puts a served address behind the waiting ones', () => {
    const queue = new FairQueue<string>(QUEUE_BOUNDS)
    for (const job of ['a1', 'a2', 'b1']) queue.add(job.charAt(0), job)
    expect(queue.next()).toBe('a1')
    queue.end('a')
    queue.add('a', 'a3')
    queue.add('c', 'c1')
    expect(drain(queue)).toEqual(['b1', 'a2', 'c1', 'a3'])
  })

  test('the queue skips an address whose bound of running jobs is reached until one of them ends', () => {
    const queue = new FairQueue<string>({
      running: { perAddress: 1, perNetwork: 1, all: 2 },
      waiting: BOUNDS,
    })
    for (const job of ['a1', 'a2', 'b1', 'c1']) queue.add(job.charAt(0), job)
    expect(drain(queue)).toEqual(['a1', 'b1'])
    queue.end('b')
    expect(drain(queue)).toEqual(['c1'])
    queue.end('a')
    expect(drain(queue)).toEqual(['a2'])
  })

  test('the addresses of one IPv6 /48 share the turns of one network', () => {
    const queue = new FairQueue<string>(QUEUE_BOUNDS)
    const addresses = ['2001:db8:1:1::/64', '2001:db8:1:2::/64', '2001:db8:1:3::/64', '192.0.2.1']
    for (const address of [...addresses, ...addresses]) queue.add(address, address)
    const [a, b, c, honest] = addresses
    expect(drain(queue)).toEqual([a, honest, b, honest, c, a, b, c])
  })

  test('a waiting job can be withdrawn, and no other', () => {
    const queue = new FairQueue<string>(QUEUE_BOUNDS)
    for (const job of ['a1', 'a2', 'b1']) queue.add(job.charAt(0), job)
    expect(['a1', 'a1', 'b1'].map((job) => queue.withdraw(job.charAt(0), job))).toEqual([true, false, true])
    expect(queue.withdraw('c', 'c1')).toBe(false)
    expect(drain(queue)).toEqual(['a2'])
  })
})

test('four requests of a network start in a turn of the event loop, and those of others meanwhile', async () => {
  const startInTurn = requestTurns()
  const started: string[] = []
  const take = (address: string, name: string): void => startInTurn(address, () => started.push(name))
  for (let request = 0; request < 6; request += 1) take('192.0.2.1', `a${request}`)
  for (let request = 0; request < 6; request += 1) take(`2001:db8:1:${request}::/64`, `b${request}`)
  expect(started).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'b2', 'b3'])
  await nextTurn()
  expect(started.slice(8)).toEqual(['a4', 'a5', 'b4', 'b5'])
})
