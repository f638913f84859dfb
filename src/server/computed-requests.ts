import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { H3Event } from 'h3'
import { FairQueue } from './fair-queue.ts'
import type { QueueBounds } from './fair-queue.ts'
import type { IpRange } from '../domain/address.ts'
import type { Refusal } from '../domain/refusal.ts'
import { addressOf } from './callers.ts'
import { RETRYABLE, retryLater } from './route.ts'

/** Requests that compute, waiting and running. An IPv6 /48 is a network, and so is an IPv4 address. */
const BOUNDS: QueueBounds = {
  running: { perAddress: 2, perNetwork: 4, all: 8 },
  waiting: { perAddress: 32, perNetwork: 64, all: 256 },
}

/** Longest block of the event loop, in milliseconds, that counts as short. */
const SHORT_MS = 4

/**
 * Time that a block takes from the queue, as a multiple of its duration: computations with short blocks take at most half
 * of the server's time, those with longer ones a ninth.
 */
const SHARE = { short: 2, long: 9 }

/** Longest pause after a block, and pauses that may be owed, in milliseconds: one block may be something else's. */
const PAUSE_MAX_MS = 108

/**
 * Time, in milliseconds, after which the next computation starts although this one continues: it then waits for a store
 * and does not block.
 */
const WAIT_MS = 12

/** Longest wait that a refusal names, in seconds. */
const RETRY_MAX_SECONDS = 60

/** The refusal of a request that computes, for the contracts of all routes. */
export const BUSY_REFUSAL = {
  status: 429,
  when:
    `${BOUNDS.waiting.perAddress} requests of the address, ${BOUNDS.waiting.perNetwork} of its IPv6 /48, ` +
    `or ${BOUNDS.waiting.all} in all already wait for their turn`,
  ...RETRYABLE,
} as const

/**
 * The one queue of everything that requests compute (docs/decisions/0047-fair-queue.md). Addresses take turns. After a
 * computation that blocked the event loop a pause is owed, so that published bytes are served meanwhile.
 */
export interface ComputedRequests {
  /**
   * Computes when the turn of the address comes.
   *
   * @param response whose connection, once closed, withdraws a computation that waits
   * @throws Refusal `busy` with `retryAfterSeconds` if the queue is full, if another network takes the place of this
   *   waiting computation, or if it was withdrawn
   */
  run<T>(address: string, compute: () => Promise<T>, response?: ClosingResponse): Promise<T>
}

interface ClosingResponse {
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

interface Job {
  address: string
  /** Settles the request; never rejects. */
  compute(): Promise<void>
  refuse(busy: Refusal): void
}

/** The clock and the event loop of a queue, with times in milliseconds. */
export interface ComputeTimes {
  now: () => number
  pause: (ms: number) => Promise<unknown>
  /** Begins to measure; the result ends it and returns the longest time for which the event loop was blocked. */
  watch: () => () => number
}

const TIMES: ComputeTimes = {
  now: () => performance.now(),
  pause: sleep,
  watch() {
    let [last, longest] = [performance.now(), 0]
    const tick = (): void => {
      const now = performance.now()
      ;[last, longest] = [now, Math.max(longest, now - last)]
    }
    const timer = setInterval(tick, 1)
    return () => {
      clearInterval(timer)
      tick()
      return longest
    }
  },
}

export function openComputedRequests(times: Partial<ComputeTimes> = {}): ComputedRequests {
  const { now, pause, watch } = { ...TIMES, ...times }
  const queue = new FairQueue<Job>(BOUNDS)
  let isRunning = false
  /** When all pauses that are owed would be over. */
  let pausedUntil = 0
  let lastStart = 0
  /** Mean time from one start to the next while jobs wait, in milliseconds. */
  let interval = 0

  const busy = (turns: number): Refusal => {
    const seconds = Math.ceil((turns * interval) / 1_000)
    return retryLater('busy', Math.min(RETRY_MAX_SECONDS, Math.max(1, seconds)))
  }
  const admit = (job: Job): void => {
    let admission = queue.add(job.address, job)
    if (admission === 'all_full') {
      const displaced = queue.displace(job.address)
      displaced?.refuse(busy(queue.waitingNetworks()))
      if (displaced) admission = queue.add(job.address, job)
    }
    // A place is free after one start; one of the same address after a turn of every network that waits.
    if (admission !== 'admitted') throw busy(admission === 'all_full' ? 1 : queue.waitingNetworks())
  }
  const start = async (job: Job): Promise<void> => {
    await job.compute()
    queue.end(job.address)
    void runQueue()
  }
  const runQueue = async (): Promise<void> => {
    if (isRunning) return
    isRunning = true
    lastStart = now()
    // Requests of the same turn of the event loop share a computation that has not started.
    await nextTurn()
    for (;;) {
      const owed = pausedUntil - now()
      if (owed > PAUSE_MAX_MS) await pause(owed - PAUSE_MAX_MS)
      const job = queue.next()
      if (job === undefined) break
      const endWatch = watch()
      await Promise.race([start(job), sleep(WAIT_MS)])
      const blocked = endWatch()
      const owing = blocked * (blocked > SHORT_MS ? SHARE.long : SHARE.short)
      pausedUntil = Math.max(pausedUntil, now()) + Math.min(PAUSE_MAX_MS, owing)
      interval += (Math.min(1_000, now() - lastStart) - interval) / 8
      lastStart = now()
      await nextTurn()
    }
    isRunning = false
  }
  return {
    run: (address, compute, response) =>
      new Promise((resolve, reject) => {
        const withdraw = (): void => {
          if (queue.withdraw(address, job)) reject(busy(1))
        }
        const job: Job = {
          address,
          async compute() {
            response?.off('close', withdraw)
            try {
              resolve(await compute())
            } catch (error) {
              reject(error)
            }
          },
          refuse(refusal) {
            response?.off('close', withdraw)
            reject(refusal)
          },
        }
        admit(job)
        response?.once('close', withdraw)
        void runQueue()
      }),
  }
}

/** Computes something for a request when the turn of its address comes. @throws Refusal `busy` */
export type Compute = <T>(event: H3Event, compute: () => Promise<T>) => Promise<T>

export function computeFor(queue: ComputedRequests, trustedProxies: readonly IpRange[]): Compute {
  return (event, compute) => queue.run(addressOf(event, trustedProxies), compute, event.runtime?.node?.res)
}
