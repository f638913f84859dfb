import { expect, onTestFinished, vi } from 'vitest'

/** Counts turns of the event loop, five milliseconds apart at best. */
export function countTicks(): () => number {
  let ticks = 0
  const timer = setInterval(() => (ticks += 1), 5)
  onTestFinished(() => clearInterval(timer))
  return () => ticks
}

/**
 * Starts work and lets it wait long enough for several tries, during which the event loop has to turn.
 *
 * @returns what gives the work's result
 */
export async function startWaiting<T>(work: () => Promise<T>): Promise<() => Promise<T>> {
  const ticks = countTicks()
  let settled = false
  const running = work().finally(() => (settled = true))
  const outcome = Promise.allSettled([running])
  await vi.waitUntil(() => settled || ticks() >= 20, { interval: 1, timeout: 10_000 })
  if (settled) expect(await outcome).toBe('still waiting')
  return () => running
}
