import { setTimeout as pause } from 'node:timers/promises'
import type { ChildProcess } from 'node:child_process'

/** Numbers from 0 to below 1, the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/**
 * Kills a process with SIGKILL at a random moment, which may come after its end. The moment is not waited for by any
 * assertion: wherever it falls, the same must hold.
 *
 * @param withinMs the latest moment, from now
 */
export async function killAtRandom(
  child: Pick<ChildProcess, 'kill'>,
  random: () => number,
  withinMs: number,
): Promise<void> {
  await pause(random() * withinMs)
  child.kill('SIGKILL')
}

/** How long something takes here and now, in milliseconds: what is killed at random must often be alive and often done. */
export async function durationOf(work: () => Promise<void>): Promise<number> {
  const before = performance.now()
  await work()
  return performance.now() - before
}
