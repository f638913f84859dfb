/** A reading that took longer than it may. */
class ReadingTooLong extends Error {
  override readonly name = 'ReadingTooLong'
}

/**
 * What a reading gives, unless time is over or the signal is aborted first: nobody waits for it then.
 *
 * @throws ReadingTooLong, or the signal's reason
 */
export function withinTime<T>(reading: Promise<T>, timeoutMs: number, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abandon = (): void => settle(() => reject(signal.reason as Error))
    const timer = setTimeout(
      () => settle(() => reject(new ReadingTooLong(`nothing was read within ${timeoutMs} ms`))),
      timeoutMs,
    )
    const settle = (how: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abandon)
      how()
    }
    if (signal.aborted) abandon()
    else signal.addEventListener('abort', abandon, { once: true })
    reading.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    )
  })
}
