import { setTimeout as sleep } from 'node:timers/promises'

/** Waits; rejects with the signal's own reason, by which a run knows that it was told to stop. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error
  })
}
