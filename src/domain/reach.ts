import type { Instant } from './time.ts'

/** That an address answered. */
export interface Reached {
  status: number
  /** The time of its `Date` header; null without a readable one. */
  date: Instant | null
  /** Empty when it is longer than anything that is asked for. */
  body: string
}

/** Asks addresses whether they answer. */
export interface Reach {
  /**
   * Sends one request, without a body, and follows no redirect. An address that does not answer is no error: why is told.
   *
   * @throws only the signal's own reason
   */
  ask(
    asked: {
      url: string
      method: 'GET' | 'HEAD'
      headers?: Readonly<Record<string, string>>
      /** For the whole answer. */
      timeoutMs: number
    },
    signal: AbortSignal,
  ): Promise<Reached | { unreachable: string }>
}
