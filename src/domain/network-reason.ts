/**
 * The innermost reason of a failed exchange, on one line. Clients wrap what the network said; where a host has several
 * addresses they collect one failure for each, of which the first is enough.
 */
export function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.errors.length > 0) return networkReason(error.errors[0])
  // An abort says nothing of its reason; the error around it does.
  if (error.cause instanceof Error && error.cause.name !== 'AbortError') return networkReason(error.cause)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name
  return error.message || code
}

/** What a person can do about a server that was not reached. */
export const HOW_TO_REACH = 'check the address and the network, and try again'
