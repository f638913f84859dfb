import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Collects garbage now, and waits for what that finalises. The driver finalises a statement only when it is garbage, and
 * a statement that failed busy keeps its lock until then: a collection is the one way to give that lock back.
 * Milliseconds; called only in that case.
 */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  // What the failed call left on the stack is gone only in the next turn, and finalisers run in the one after.
  await nextTurn()
  if (typeof collect === 'function') collect()
  await nextTurn()
}
