import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Shares one costly read among concurrent callers. A caller never gets a read that started before its call. At most one
 * read runs and one waits.
 */
export function singleFlight<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null
  let waiting: Promise<T> | null = null

  const start = (): Promise<T> => {
    const pending = read().finally(() => {
      if (running === pending) running = null
    })
    running = pending
    return pending
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
 * Shares one piece of work among the callers of one turn of the event loop. It starts after that turn, so after every
 * call.
 */
export function batchPerTick<T>(work: () => T): () => Promise<T> {
  let pending: Promise<T> | null = null
  const begin = (): T => {
    pending = null
    return work()
  }
  return () => (pending ??= nextTurn().then(begin))
}

/** Settles as the promise does, or rejects with the signal's reason as soon as it is aborted. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let rejectAborted: () => void = () => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    rejectAborted = () => reject(signal.reason as Error)
    signal.addEventListener('abort', rejectAborted, { once: true })
  })
  if (signal.aborted) rejectAborted()
  try {
    return await Promise.race([aborted, promise])
  } finally {
    signal.removeEventListener('abort', rejectAborted)
  }
}

/**
 * Settles as the promise does, or rejects on timeout or abort.
 *
 * @throws an error that names the timeout, or the signal's reason
 */
export async function withTimeout<T>(
  pending: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<T> {
  const deadline = new AbortController()
  const expire = (): void => deadline.abort(new Error(`the read timed out after ${timeoutMs} ms`))
  const timer = setTimeout(expire, timeoutMs)
  try {
    return await abortable(pending, signal ? AbortSignal.any([deadline.signal, signal]) : deadline.signal)
  } finally {
    clearTimeout(timer)
  }
}
