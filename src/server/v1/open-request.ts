import type { H3Event } from 'h3'

/** An open request: it ends when its client leaves, when its time is over, or when it is released. */
export interface OpenRequest {
  signal: AbortSignal
  /** True after the time limit was exceeded. */
  isLate(): boolean
  /** Ends the request and frees what it holds; further calls have no effect. */
  release(): void
}

/**
 * @param ms time limit of the whole response
 * @param free frees the slot of the request
 */
export function openRequest(event: H3Event, ms: number, free: () => void): OpenRequest {
  const response = event.runtime?.node?.res
  const controller = new AbortController()
  let late = false
  const release = (): void => {
    clearTimeout(timer)
    response?.off('close', release)
    free()
    controller.abort()
  }
  const timer = setTimeout(() => {
    late = true
    controller.abort()
  }, ms)
  response?.once('close', release)
  if (response?.closed === true) release()
  return { signal: controller.signal, isLate: () => late, release }
}
