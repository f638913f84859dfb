import { onTestFinished } from 'vitest'
import { openSourceClient } from '../../../src/adapters/sources/source-client.ts'
import type { SourceClient, SourceClientOptions } from '../../../src/adapters/sources/source-client.ts'
import type { Clock } from '../../../src/domain/ports.ts'

export const USER_AGENT = 'dash/1.2.3 (+https://dash.example)'

/** A client without pauses, closed when the test ends. */
export function sourceClient(changes: Partial<SourceClientOptions> = {}): SourceClient {
  const client = openSourceClient({
    userAgent: USER_AGENT,
    clock: Date.now,
    sleep: () => Promise.reject(new Error('nobody may wait here')),
    memory: null,
    limits: { concurrency: 4, maxWaitMs: 0 },
    responseTimeoutMs: 10_000,
    ...changes,
  })
  onTestFinished(() => client.close())
  return client
}

/** A clock that stands still but for the sleeps, which take no time of the test's. */
export function sleepingClock(from: number): {
  clock: Clock
  sleep: SourceClientOptions['sleep']
  slept: number[]
} {
  let now = from
  const slept: number[] = []
  return {
    clock: () => now,
    sleep(ms, signal) {
      signal.throwIfAborted()
      slept.push(ms)
      now += ms
      return Promise.resolve()
    },
    slept,
  }
}
