import type { AgentRefusal } from '../../domain/agent/refusals.ts'
import type { ChatLedger } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'

/**
 * What the quota store answers.
 *
 * @throws Refusal `quota_unavailable` for whatever goes wrong in it: nobody is served who could not be counted
 */
export async function fromQuotaStore<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (cause) {
    throw new Refusal<AgentRefusal>('quota_unavailable', 'the state database does not answer', { cause })
  }
}

/** How long a write that was proved possible, or failed, is believed. */
const BELIEVED_MS = 1_000

/** Knows what the last write came to. */
export interface WatchedLedger extends ChatLedger {
  /** As `ping`, but while the last write that ended was a success, however old, it is believed and nothing is written. */
  lastPing(): Promise<void>
}

interface Probe {
  result: Promise<void>
  /** Believed until then. */
  until: number
}

/**
 * A quota store whose `ping` tells whether it can be written, and writes once in {@link BELIEVED_MS} at most to know it. A
 * real write that fails is known at once.
 *
 * @param now milliseconds of a clock that only goes forward
 */
export function watchedLedger(
  ledger: ChatLedger,
  now: () => number = () => performance.now(),
): WatchedLedger {
  let known: Probe | null = null
  let isWritable = false
  const watched = async <T>(write: Promise<T>): Promise<T> => {
    try {
      const written = await write
      isWritable = true
      return written
    } catch (error) {
      const result = Promise.reject<undefined>(error)
      result.catch(() => undefined)
      known = { result, until: now() + BELIEVED_MS }
      isWritable = false
      throw error
    }
  }
  const ping = (): Promise<void> => {
    if (known !== null && now() < known.until) return known.result
    const probe = { result: ledger.ping(), until: Infinity }
    const believe = (isGood: boolean): void => {
      probe.until = now() + BELIEVED_MS
      isWritable = isGood
    }
    probe.result.then(
      () => believe(true),
      () => believe(false),
    )
    known = probe
    return probe.result
  }
  return {
    ...ledger,
    makeSalt: (...asked) => watched(ledger.makeSalt(...asked)),
    admit: (...asked) => watched(ledger.admit(...asked)),
    extend: (...asked) => watched(ledger.extend(...asked)),
    settle: (...asked) => watched(ledger.settle(...asked)),
    sweep: (...asked) => watched(ledger.sweep(...asked)),
    countVerification: (...asked) => watched(ledger.countVerification(...asked)),
    ping,
    lastPing: () => (isWritable ? Promise.resolve() : ping()),
  }
}
