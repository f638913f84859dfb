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
 * Requests a day that the account has, as the service reports them for its key, or those of an account that never bought
 * credits.
 */
export interface DailyLimit {
  /** At most a minute old. */
  current(signal: AbortSignal): Promise<number>
  /** The last one known, at once where there is any; a stale one is refreshed meanwhile. */
  latest(): Promise<number>
}

export function dailyLimit(router: Pick<ModelRouter, 'key'>, clock: Clock): DailyLimit {
  let known: { limit: number; at: Instant } | null = null
  let refreshing: Promise<number> | null = null
  const current = async (signal: AbortSignal): Promise<number> => {
    const at = clock()
    if (known !== null && at >= known.at && at - known.at < KEPT_MS) return known.limit
    const limit = (await askKey(router, signal)) ?? DAILY_LIMIT_UNTOLD
    known = { limit, at }
    return limit
  }
  return {
    current,
    async latest() {
      refreshing ??= current(new AbortController().signal)
        .catch(() => known?.limit ?? DAILY_LIMIT_UNTOLD)
        .finally(() => (refreshing = null))
      return known?.limit ?? refreshing
    },
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
