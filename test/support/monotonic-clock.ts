import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished, vi } from 'vitest'

/** Stops the monotonic clock until the end of the test, and returns what advances it. */
export function stopMonotonicClock(): (ms: number) => Promise<void> {
  let now = 1
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  return async (ms) => {
    now += ms
    // A cache reads the clock at most once a millisecond.
    await sleep(5)
  }
}
