/**
 * Shares one costly reading among callers that arrive while it may still serve them: a caller never gets a reading
 * that began before it asked. At most one reading runs and one more waits.
 */
export function coalesce<T>(read: () => Promise<T>): () => Promise<T> {
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
