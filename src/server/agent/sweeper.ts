import type { ChatLedger } from '../../domain/ports.ts'
import { keepCallersFrom } from '../../domain/agent/quotas.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Log } from '../log.ts'

/** How often turns are looked for whose server has died. */
const SWEEP_MS = 5_000

/**
 * Settles, now and every few seconds, the turns whose lease has ended, and forgets callers of earlier days.
 *
 * @param sessionSeconds how long a token lasts, and so how long its day's callers must be known
 * @returns stops it, and resolves when no sweep is under way
 */
export function startSweeper(
  ledger: Pick<ChatLedger, 'sweep'>,
  clock: Clock,
  log: Log,
  sessionSeconds: number,
): () => Promise<void> {
  let failing = false
  let sweeping: Promise<void> | null = null
  const sweep = async (): Promise<void> => {
    try {
      const now = clock()
      const settled = await ledger.sweep(now, keepCallersFrom(now, sessionSeconds))
      if (settled > 0) log.warn({ turns: settled }, 'chat turns were settled at what they had reserved')
      failing = false
    } catch (error) {
      // Once, not every few seconds: readiness tells it meanwhile.
      if (!failing) log.error({ err: error }, 'chat turns cannot be swept')
      failing = true
    }
  }
  const begin = (): void => {
    sweeping ??= sweep().finally(() => (sweeping = null))
  }
  begin()
  const timer = setInterval(begin, SWEEP_MS)
  return async () => {
    clearInterval(timer)
    await sweeping
  }
}
