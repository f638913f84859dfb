import { LRUCache } from 'lru-cache'
import { networkOf } from '../../domain/address.ts'
import type { Clock } from '../../domain/ports.ts'
import { OpenSlots } from '../fair-queue.ts'
import type { SlotBounds } from '../fair-queue.ts'
import { addressLimit } from '../callers.ts'
import { V1Refusal } from './contracts.ts'

/** Limits of `/v1` (docs/v1.md). */
const V1_LIMITS = {
  requestsPerMinute: 60,
  streams: 100,
  rejectedKeys: 10,
  rejectedKeysOfNetwork: 20,
} as const

/** Parts of all streams that one address or network, and one IPv6 /32, may have open. */
const PER_ADDRESS = V1_LIMITS.streams / 4
const PER_REGION = V1_LIMITS.streams / 2

const MEGABYTE = 1024 * 1024

/** A body is not counted up to this length, so that large ones never keep small ones out. */
const SMALL_BODY_BYTES = 64 * 1024

/** Bytes of larger bodies that arrive or wait. */
const BODY_BYTES: SlotBounds = { perAddress: 16 * MEGABYTE, perNetwork: 32 * MEGABYTE, all: 128 * MEGABYTE }

const MINUTE_MS = 60_000

/** Most addresses and most networks whose rejected keys are counted; the ones counted first are forgotten. */
const COUNTED_MAX = 10_000

export interface V1Limits {
  /**
   * Counts a request.
   *
   * @throws V1Refusal `rate_limited` or `too_many_rejected_keys`
   */
  countRequest(address: string): void
  /**
   * Takes a slot for an open request.
   *
   * @returns a function that frees it; further calls have no effect
   * @throws V1Refusal `too_many_streams`, `busy` or `too_many_rejected_keys`
   */
  enter(address: string): () => void
  /**
   * Opens the account of a body that arrives or waits: bytes of bodies are limited by address and in all.
   *
   * @returns `hold`, which counts the bytes of a part or returns the refusal, and `end`, which frees all of them
   */
  holdBody(address: string): { hold: (bytes: number) => V1Refusal | null; end: () => void }
  /** Counts a key that the routing service rejected: ten close an address for a minute, twenty its network. */
  countRejectedKey(address: string): void
}

export function openLimits(clock: Clock): V1Limits {
  const requests = addressLimit(V1_LIMITS.requestsPerMinute, clock)
  const slots = new OpenSlots({
    perAddress: PER_ADDRESS,
    perNetwork: PER_ADDRESS,
    perRegion: PER_REGION,
    all: V1_LIMITS.streams,
  })
  const bodies = new OpenSlots(BODY_BYTES)
  const ofAddress = rejectedKeys(V1_LIMITS.rejectedKeys, clock)
  const ofNetwork = rejectedKeys(V1_LIMITS.rejectedKeysOfNetwork, clock)
  const requireOpen = (address: string): void => {
    ofAddress.requireOpen(address)
    ofNetwork.requireOpen(networkOf(address))
  }
  return {
    countRequest(address) {
      requireOpen(address)
      const wait = requests.count(address)
      if (wait !== null) throw new V1Refusal('rate_limited', { retryAfterSeconds: wait })
    },
    enter(address) {
      // Keys may have been rejected while the body of this request arrived.
      requireOpen(address)
      const admission = slots.enter(address)
      if (admission !== 'admitted')
        throw new V1Refusal(admission === 'all_full' ? 'busy' : 'too_many_streams', { retryAfterSeconds: 1 })
      let isHeld = true
      return () => {
        if (isHeld) slots.leave(address)
        isHeld = false
      }
    },
    holdBody(address) {
      let [received, held] = [0, 0]
      return {
        hold(bytes) {
          received += bytes
          const more = Math.max(0, received - SMALL_BODY_BYTES) - held
          if (more > 0 && bodies.enter(address, more) !== 'admitted')
            return new V1Refusal('busy', { retryAfterSeconds: 1 })
          held += more
          return null
        },
        end() {
          if (held > 0) bodies.leave(address, held)
          held = 0
        },
      }
    },
    countRejectedKey(address) {
      ofAddress.count(address)
      ofNetwork.count(networkOf(address))
    },
  }
}

/** The rejected keys of callers, which are addresses or networks. */
interface RejectedKeys {
  /** @throws V1Refusal `too_many_rejected_keys` */
  requireOpen(caller: string): void
  count(caller: string): void
}

function rejectedKeys(max: number, clock: Clock): RejectedKeys {
  const rejected = new LRUCache<string, { count: number; until: number }>({ max: COUNTED_MAX })
  return {
    requireOpen(caller) {
      const { count, until } = rejected.get(caller) ?? { count: 0, until: 0 }
      const seconds = Math.ceil((until - clock()) / 1000)
      if (seconds > 0 && count >= max)
        throw new V1Refusal('too_many_rejected_keys', { retryAfterSeconds: seconds })
    },
    count(caller) {
      const last = rejected.get(caller)
      const count = last !== undefined && clock() < last.until ? last.count + 1 : 1
      // The last one begins the minute for which the caller is closed.
      const until = count > 1 && count !== max && last ? last.until : clock() + MINUTE_MS
      rejected.set(caller, { count, until })
    },
  }
}
