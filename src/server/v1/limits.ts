import { LRUCache } from 'lru-cache'
import { networkOf } from '../../domain/address.ts'
import { once } from '../../domain/once.ts'
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

/** Most addresses and networks whose rejected keys are counted; those that were counted first are forgotten. */
const COUNTED_MAX = 20_000

/** The limits of all callers. Each method throws V1Refusal, unless it says otherwise. */
export class V1Limits {
  readonly #clock: Clock
  readonly #requests: ReturnType<typeof addressLimit>
  readonly #streams = new OpenSlots({
    perAddress: PER_ADDRESS,
    perNetwork: PER_ADDRESS,
    perRegion: PER_REGION,
    all: V1_LIMITS.streams,
  })
  readonly #bodies = new OpenSlots(BODY_BYTES)
  /** Rejected keys by address and by network, and the end of their minute. */
  readonly #rejected = new LRUCache<string, { count: number; until: number }>({ max: COUNTED_MAX })

  constructor(clock: Clock) {
    this.#clock = clock
    this.#requests = addressLimit(V1_LIMITS.requestsPerMinute, clock)
  }

  /** Counts a request: `rate_limited` or `too_many_rejected_keys`. */
  countRequest(address: string): void {
    this.requireFewRejected(address)
    const wait = this.#requests(address)
    if (wait !== null) throw new V1Refusal('rate_limited', { retryAfterSeconds: wait })
  }

  /**
   * Takes a slot for an open request: `too_many_streams`, `busy` or `too_many_rejected_keys`.
   *
   * @returns a function that frees it; further calls have no effect
   */
  enter(address: string): () => void {
    // Keys may have been rejected while the body of this request arrived.
    this.requireFewRejected(address)
    const admission = this.#streams.enter(address)
    if (admission !== 'admitted')
      throw new V1Refusal(admission === 'all_full' ? 'busy' : 'too_many_streams', { retryAfterSeconds: 1 })
    return once(() => this.#streams.leave(address))
  }

  /**
   * Opens the account of a body that arrives or waits: bytes of bodies are limited by address and in all.
   *
   * @returns `hold`, which counts the bytes of a part or returns the refusal, and `end`, which frees all of them
   */
  holdBody(address: string): { hold: (bytes: number) => V1Refusal | null; end: () => void } {
    let [received, held] = [0, 0]
    return {
      hold: (bytes) => {
        received += bytes
        const more = Math.max(0, received - SMALL_BODY_BYTES) - held
        if (more > 0 && this.#bodies.enter(address, more) !== 'admitted')
          return new V1Refusal('busy', { retryAfterSeconds: 1 })
        held += more
        return null
      },
      end: () => {
        if (held > 0) this.#bodies.leave(address, held)
        held = 0
      },
    }
  }

  /**
   * Counts a key that the routing service rejected, or this server for `dash`: ten close an address for a minute, twenty
   * its network.
   */
  countRejectedKey(address: string): void {
    const now = this.#clock()
    for (const { name, max } of rejectedOf(address)) {
      const last = this.#rejected.get(name)
      const count = last !== undefined && now < last.until ? last.count + 1 : 1
      // The last one begins the minute for which the caller is closed.
      const until = count > 1 && count !== max && last ? last.until : now + MINUTE_MS
      this.#rejected.set(name, { count, until })
    }
  }

  /** Requires that neither the address nor its network is closed: `too_many_rejected_keys`. */
  requireFewRejected(address: string): void {
    for (const { name, max } of rejectedOf(address)) {
      const { count, until } = this.#rejected.get(name) ?? { count: 0, until: 0 }
      const seconds = Math.ceil((until - this.#clock()) / 1000)
      if (seconds > 0 && count >= max)
        throw new V1Refusal('too_many_rejected_keys', { retryAfterSeconds: seconds })
    }
  }
}

/** The names by which the rejected keys of an address are counted, each with the number that closes it. */
function rejectedOf(address: string): { name: string; max: number }[] {
  return [
    { name: `address ${address}`, max: V1_LIMITS.rejectedKeys },
    { name: `network ${networkOf(address)}`, max: V1_LIMITS.rejectedKeysOfNetwork },
  ]
}
