import type { Clock } from '../../domain/ports.ts'

const MINUTE_MS = 60_000

/** Counts requests of each address in the minute of the clock, in memory; what was counted is forgotten with it. */
export interface RequestRate {
  /** Seconds to wait when the address has used up its minute; null when the request is counted and may go on. */
  take(address: string): number | null
}

export function requestRate(perMinute: number, clock: Clock): RequestRate {
  let minute = Number.NaN
  let counted = new Map<string, number>()
  return {
    take(address) {
      const now = clock()
      const current = Math.floor(now / MINUTE_MS)
      if (current !== minute) {
        minute = current
        counted = new Map()
      }
      const count = counted.get(address) ?? 0
      if (count >= perMinute) return Math.ceil(((current + 1) * MINUTE_MS - now) / 1_000)
      counted.set(address, count + 1)
      return null
    },
  }
}
