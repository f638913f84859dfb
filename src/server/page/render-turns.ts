import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { requestRate } from '../mcp/request-rate.ts'
import type { PageRefusal } from './page-refusals.ts'

/** Renders one address may cause in a minute. */
const PER_MINUTE = 120

/** Renders that may wait, and those of one address among them. */
const WAITING_MAX = 32
const WAITING_OF_ADDRESS_MAX = 12

/** Pause after a render, in its own durations: a tenth of the time at most is spent on rendering. */
const PAUSE_SHARE = 9

/** After this time the pause begins although the render goes on: it waits for a store, and holds nothing up. */
const SLOW_MS = 12

/** Seconds in which a full line of waiting renders is surely shorter. */
const LINE_SECONDS = 4

/** Lets renders begin one after another, with pauses between them, so that whatever else is served meets few of them. */
export interface RenderTurns {
  /**
   * Runs a render when its turn comes.
   *
   * @param address whose request causes it
   * @throws Refusal `page_limit`, at once, when too many wait, or the address has used up its minute
   */
  run<T>(address: string, render: () => Promise<T>): Promise<T>
}

/** @param pause between two renders, in milliseconds */
export function renderTurns(clock: Clock, pause: (ms: number) => Promise<unknown> = sleep): RenderTurns {
  const rate = requestRate(PER_MINUTE, clock)
  const line: { address: string; render: () => Promise<unknown> }[] = []
  let isServing = false

  const admit = (address: string): void => {
    const own = line.filter((waiting) => waiting.address === address).length
    if (line.length >= WAITING_MAX || own >= WAITING_OF_ADDRESS_MAX) throw pageLimit(LINE_SECONDS)
    const seconds = rate.take(address)
    if (seconds !== null) throw pageLimit(seconds)
  }
  const serveLine = async (): Promise<void> => {
    if (isServing) return
    isServing = true
    // Who asks in the same turn of the event loop shares a render that has not begun.
    await nextTurn()
    for (let next = line.shift(); next; next = line.shift()) {
      const startedAt = performance.now()
      await Promise.race([next.render().catch(() => undefined), sleep(SLOW_MS)])
      await pause(PAUSE_SHARE * Math.min(SLOW_MS, performance.now() - startedAt))
    }
    isServing = false
  }
  return {
    run(address, render) {
      admit(address)
      return new Promise((resolve, reject) => {
        const settle = (): Promise<unknown> => render().then(resolve, reject)
        line.push({ address, render: settle })
        void serveLine()
      })
    },
  }
}

function pageLimit(retryAfterSeconds: number): Refusal<PageRefusal> {
  return new Refusal<PageRefusal>('page_limit', undefined, { members: { retryAfterSeconds } })
}
