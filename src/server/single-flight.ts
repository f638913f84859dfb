import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Shares one costly reading among callers that arrive while it may still serve them: a caller never gets a reading
 * that began before it asked. At most one reading runs and one more waits.
 */
export function singleFlight<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null
  let waiting: Promise<T> | null = null

  const start = (): Promise<T> => {
    const reading = read().finally(() => {
      if (running === reading) running = null
    })
    running = reading
    return reading
  }

  return () => {
    if (!running) return start()
    waiting ??= running
      .catch(() => undefined)
      .then(() => {
        waiting = null
        return start()
      })
    return waiting
  }
}

/**
 * Shares one piece of work among the callers of one turn of the event loop. It begins when the turn is over, so after
 * every caller asked.
 */
export function batchPerTick<T>(work: () => T): () => Promise<T> {
  let pending: Promise<T> | null = null
  const begin = (): T => {
    pending = null
    return work()
  }
  return () => (pending ??= nextTurn().then(begin))
}

/** Makes something when it is first asked for, and keeps it. */
export function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => (made ??= { value: make() }).value
}

/** Makes something of each object once, and keeps it as long as the object. */
export function onceFor<Key extends object, T>(make: (key: Key) => T): (key: Key) => T {
  const made = new WeakMap<Key, { value: T }>()
  return (key) => {
    const known = made.get(key) ?? { value: make(key) }
    made.set(key, known)
    return known.value
  }
}

/** What a promise comes to, or the signal's reason as soon as it is aborted, whatever the promise does then. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let give: () => void = () => undefined
  const stopped = new Promise<never>((_resolve, reject) => {
    give = () => reject(signal.reason as Error)
    signal.addEventListener('abort', give, { once: true })
  })
  if (signal.aborted) give()
  try {
    return await Promise.race([stopped, promise])
  } finally {
    signal.removeEventListener('abort', give)
  }
}

/** A reading that took longer than it may. */
class ReadingTooLong extends Error {
  override readonly name = 'ReadingTooLong'
}

/**
 * What a reading gives, unless time is over or the signal is aborted first: nobody waits for it then.
 *
 * @throws ReadingTooLong, or the signal's reason
 */
export async function withTimeout<T>(
  reading: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<T> {
  const late = new AbortController()
  const giveUp = (): void => late.abort(new ReadingTooLong(`nothing was read within ${timeoutMs} ms`))
  const timer = setTimeout(giveUp, timeoutMs)
  try {
    return await abortable(reading, signal ? AbortSignal.any([late.signal, signal]) : late.signal)
  } finally {
    clearTimeout(timer)
  }
}
