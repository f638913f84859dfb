import { DAILY_LIMIT_UNTOLD, parseKeyRequests } from '../../domain/models/quota.ts'
import type { ModelRouter } from '../../domain/models/router.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { TimeLimitExceeded, withTimeLimit } from '../time-limit.ts'

/** The service itself may answer with numbers a minute old. */
const KEPT_MS = 60_000

/** A reader waits for this answer. */
const ANSWER_MS = 2_000

/**
 * Requests a day that the account has, as the service tells for its key, or what an account has that never bought
 * credits.
 */
export function dailyLimit(
  router: Pick<ModelRouter, 'key'>,
  clock: Clock,
): (signal: AbortSignal) => Promise<number> {
  let known: { limit: number; at: Instant } | null = null
  return async (signal) => {
    const at = clock()
    if (known !== null && at >= known.at && at - known.at < KEPT_MS) return known.limit
    const limit = (await askKey(router, signal)) ?? DAILY_LIMIT_UNTOLD
    known = { limit, at }
    return limit
  }
}

async function askKey(router: Pick<ModelRouter, 'key'>, signal: AbortSignal): Promise<number | null> {
  try {
    const { status, body } = await withTimeLimit(ANSWER_MS, signal, (limited) => router.key(limited))
    return status === 200 ? (parseKeyRequests(body)?.limit ?? null) : null
  } catch (error) {
    if (error instanceof TimeLimitExceeded) return null
    throw error
  }
}
