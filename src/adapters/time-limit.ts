/** Work that did not end within its limit. */
export class TimeLimitExceeded extends Error {
  override readonly name = 'TimeLimitExceeded'
}

/**
 * Runs work that must end within `ms`.
 *
 * @param signal ends it earlier; then the rejection is the signal's reason
 * @throws TimeLimitExceeded naming the limit when the time is over
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (limited: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  // Node 20 collects `AbortSignal.timeout()` as garbage before it fires when only `AbortSignal.any()` knows it.
  const limit = new AbortController()
  const stop = (): void => limit.abort()
  const timer = setTimeout(stop, ms)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await work(limit.signal)
  } catch (error) {
    signal.throwIfAborted()
    if (limit.signal.aborted) throw new TimeLimitExceeded(`no whole answer within ${ms} ms`, { cause: error })
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}
