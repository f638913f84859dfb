import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { networkOf } from '../../domain/agent/client-address.ts'
import { fairQueue } from '../../domain/fair-queue.ts'
import type { PlaceBounds } from '../../domain/fair-queue.ts'
import type { Clock } from '../../domain/ports.ts'
import { requestRate } from '../mcp/request-rate.ts'
import { PageLimit } from './page-refusals.ts'

/** Renders that one address, and one network, may ask for in a minute. */
const PER_MINUTE = { address: 120, network: 240 }

/** Renders that may wait. */
const WAITING: PlaceBounds = { perAddress: 12, perNetwork: 12, all: 32 }

/** Pause after a render, in its own durations: a tenth of the time at most is spent on rendering. */
const PAUSE_SHARE = 9

/** After this time the pause begins although the render goes on: it waits for a store, and holds nothing up. */
const SLOW_MS = 12

/** Seconds in which a full line of waiting renders is surely shorter. */
const LINE_SECONDS = 4

/**
 * Lets renders begin one after another, with pauses between them, so that whatever else is served meets few of them.
 * Addresses are served in turn.
 */
export interface RenderTurns {
  /**
   * Runs a render when its turn comes.
   *
   * @param address whose request causes it
   * @throws PageLimit when too many wait, or the address or its network has used up its minute; also for a render that
   *   waits, when another network needs its place
   */
  run<T>(address: string, render: () => Promise<T>): Promise<T>
}

interface Job {
  address: string
  render(): Promise<unknown>
  refuse(limit: PageLimit): void
}

/** @param pause between two renders, in milliseconds */
export function renderTurns(clock: Clock, pause: (ms: number) => Promise<unknown> = sleep): RenderTurns {
  const rate = requestRate(PER_MINUTE.address, clock)
  const networkRate = requestRate(PER_MINUTE.network, clock)
  const line = fairQueue<Job>(WAITING)
  let isServing = false

  const admit = (job: Job): void => {
    // Who is over the rate takes no place from others.
    const seconds = rate.take(job.address) ?? networkRate.take(networkOf(job.address))
    if (seconds !== null) throw new PageLimit(seconds)
    let admission = line.add(job.address, job)
    if (admission === 'all_full') {
      const displaced = line.displace(job.address)
      displaced?.refuse(new PageLimit(LINE_SECONDS))
      if (displaced) admission = line.add(job.address, job)
    }
    if (admission !== 'admitted') throw new PageLimit(LINE_SECONDS)
  }
  const serveLine = async (): Promise<void> => {
    if (isServing) return
    isServing = true
    // Who asks in the same turn of the event loop shares a render that has not begun.
    await nextTurn()
    for (let next = line.next(); next; next = line.next()) {
      line.leave(next.address)
      const startedAt = performance.now()
      await Promise.race([next.render().catch(() => undefined), sleep(SLOW_MS)])
      await pause(PAUSE_SHARE * Math.min(SLOW_MS, performance.now() - startedAt))
    }
    isServing = false
  }
  return {
    run: (address, render) =>
      new Promise((resolve, reject) => {
        admit({ address, render: () => render().then(resolve, reject), refuse: reject })
        void serveLine()
      }),
  }
}
