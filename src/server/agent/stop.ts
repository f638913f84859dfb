/** A signal with a time of its own, and an end to it. */
export interface Stop {
  signal: AbortSignal
  /** True when it was the time that ended it, or {@link Stop.expire}. */
  readonly timedOut: boolean
  /** True when {@link Stop.expire} ended it. */
  readonly cutShort: boolean
  /** Stops now. */
  abort(): void
  /** Stops now, as if the time were over: the server ends. */
  expire(): void
  /** Neither the time nor the signal behind it matters any more. */
  cancel(): void
}

/**
 * A signal that is aborted after a time, with the one behind it, or by hand. The runtime's own such signals may be
 * collected before they fire.
 *
 * @param behind aborts this one too
 */
export function stopAfter(afterMs: number, behind?: AbortSignal): Stop {
  const controller = new AbortController()
  let timedOut = false
  let cutShort = false
  const abort = (): void => controller.abort()
  const end = (): void => {
    timedOut ||= !controller.signal.aborted
    abort()
  }
  const timer = setTimeout(end, afterMs)
  behind?.addEventListener('abort', abort, { once: true })
  if (behind?.aborted) abort()
  return {
    signal: controller.signal,
    get timedOut() {
      return timedOut
    },
    get cutShort() {
      return cutShort
    },
    abort,
    expire() {
      cutShort = !controller.signal.aborted
      end()
    },
    cancel() {
      clearTimeout(timer)
      behind?.removeEventListener('abort', abort)
    },
  }
}

/** What a promise comes to, or the signal's reason as soon as it is aborted, whatever the promise does then. */
export async function orStopped<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let give: () => void = () => undefined
  const stopped = new Promise<never>((_resolve, reject) => {
    give = () => reject(signal.reason as Error)
    signal.addEventListener('abort', give, { once: true })
  })
  if (signal.aborted) give()
  try {
    return await Promise.race([promise, stopped])
  } finally {
    signal.removeEventListener('abort', give)
  }
}
