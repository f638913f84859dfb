import { LRUCache } from 'lru-cache'
import { networkOf } from '../../domain/address.ts'
import type { Clock } from '../../domain/ports.ts'
import { openSlots } from '../fair-queue.ts'
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
   * @throws V1Refusal `too_many_streams` or `busy`
   */
  enter(address: string): () => void
  /**
   * Opens the account of a body that arrives or waits: bytes of bodies are limited by address and in all.
   *
   * @returns `hold`, which counts the bytes of a part or returns the refusal, and `end`, which frees all of them
   */
  holdBody(address: string): { hold: (bytes: number) => V1Refusal | null; end: () => void }
  /**
   * Begins the use of a key. Ten keys that the routing service rejects close an address for a minute, twenty its
   * network; after the first one, keys in use count too, so that requests sent together do not reach more.
   *
   * @returns a function that ends the use
   * @throws V1Refusal `too_many_rejected_keys`
   */
  tryKey(address: string): (isRejected: boolean) => void
}

export function openLimits(clock: Clock): V1Limits {
  const requests = addressLimit(V1_LIMITS.requestsPerMinute, clock)
  const slots = openSlots({
    perAddress: PER_ADDRESS,
    perNetwork: PER_ADDRESS,
    perRegion: PER_REGION,
    all: V1_LIMITS.streams,
  })
  const bodies = openSlots(BODY_BYTES)
  const ofAddress = openTrials(V1_LIMITS.rejectedKeys, clock)
  const ofNetwork = openTrials(V1_LIMITS.rejectedKeysOfNetwork, clock)
  return {
    countRequest(address) {
      ofAddress.requireOpen(address, false)
      ofNetwork.requireOpen(networkOf(address), false)
      const wait = requests.count(address)
      if (wait !== null) throw new V1Refusal('rate_limited', { retryAfterSeconds: wait })
    },
    enter(address) {
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
    tryKey(address) {
      const network = networkOf(address)
      ofAddress.requireOpen(address, true)
      ofNetwork.requireOpen(network, true)
      const endUses = [ofAddress.begin(address), ofNetwork.begin(network)]
      return (isRejected) => {
        for (const endUse of endUses) endUse(isRejected)
      }
    },
  }
}

/** The trials of keys by a caller: an address or a network. */
interface KeyTrials {
  /**
   * @param isTrial true to count the keys in use
   * @throws V1Refusal `too_many_rejected_keys`
   */
  requireOpen(caller: string, isTrial: boolean): void
  /** Begins the use of a key; returns a function that ends it. */
  begin(caller: string): (isRejected: boolean) => void
}

function openTrials(max: number, clock: Clock): KeyTrials {
  const rejected = new LRUCache<string, { count: number; until: number }>({ max: COUNTED_MAX })
  const inUse = new Map<string, number>()
  const countRejected = (caller: string): void => {
    const last = rejected.get(caller)
    const count = last !== undefined && clock() < last.until ? last.count + 1 : 1
    // The last one begins the minute for which the caller is closed.
    const until = count > 1 && count !== max && last ? last.until : clock() + MINUTE_MS
    rejected.set(caller, { count, until })
  }
  return {
    requireOpen(caller, isTrial) {
      const last = rejected.get(caller)
      const using = isTrial ? (inUse.get(caller) ?? 0) : 0
      if (last === undefined || clock() >= last.until || last.count + using < max) return
      throw new V1Refusal('too_many_rejected_keys', { retryAfterSeconds: secondsUntil(last.until, clock) })
    },
    begin(caller) {
      inUse.set(caller, (inUse.get(caller) ?? 0) + 1)
      return (isRejected) => {
        const others = (inUse.get(caller) ?? 0) - 1
        if (others > 0) inUse.set(caller, others)
        else inUse.delete(caller)
        if (isRejected) countRejected(caller)
      }
    },
  }
}

function secondsUntil(at: number, clock: Clock): number {
  return Math.max(1, Math.ceil((at - clock()) / 1000))
}
