import { networkOf } from './client-address.ts'

/**
 * Slots and a fair order for callers that share a limited resource, such as the search process. The driver runs the
 * jobs.
 */

/** Most slots that callers may hold at once. */
export interface SlotBounds {
  /** One address, as `clientAddress` gives it. */
  perAddress: number
  /** The addresses of one network (`networkOf`). */
  perNetwork: number
  all: number
}

/** `address_full`: the caller's address or network holds too many slots; `all_full`: no slot is free. */
type Admission = 'admitted' | 'address_full' | 'all_full'

export interface OpenSlots {
  /** Takes a slot for an address. An admitted caller must call `leave` once. */
  enter(address: string): Admission
  leave(address: string): void
  /** The slots that an address and its network hold, kept current while the address holds a slot. */
  held(address: string): HeldSlots
}

export interface HeldSlots {
  address: Readonly<SlotCount>
  /** The same object for all addresses of a network. */
  network: Readonly<SlotCount>
}

interface SlotCount {
  count: number
}

export function openSlots({ perAddress, perNetwork, all }: SlotBounds): OpenSlots {
  const byAddress = new Map<string, SlotCount>()
  const byNetwork = new Map<string, SlotCount>()
  let taken = 0
  return {
    enter(address) {
      const network = networkOf(address)
      if (
        slotCountOf(byAddress, address).count >= perAddress ||
        slotCountOf(byNetwork, network).count >= perNetwork
      ) {
        return 'address_full'
      }
      if (taken >= all) return 'all_full'
      count(byAddress, address, 1)
      count(byNetwork, network, 1)
      taken += 1
      return 'admitted'
    },
    leave(address) {
      count(byAddress, address, -1)
      count(byNetwork, networkOf(address), -1)
      taken -= 1
    },
    held: (address) => ({
      address: slotCountOf(byAddress, address),
      network: slotCountOf(byNetwork, networkOf(address)),
    }),
  }
}

/** Removes entries of zero, so that the map has at most one entry per slot in use. */
function count(slotCounts: Map<string, SlotCount>, key: string, change: 1 | -1): void {
  const slotCount = slotCountOf(slotCounts, key)
  slotCount.count += change
  if (slotCount.count > 0) slotCounts.set(key, slotCount)
  else slotCounts.delete(key)
}

function slotCountOf(slotCounts: ReadonlyMap<string, SlotCount>, key: string): SlotCount {
  return slotCounts.get(key) ?? { count: 0 }
}

/** A queue of jobs: addresses take turns, and the jobs of one address keep their order. */
export interface FairQueue<Job> extends OpenSlots {
  /** Takes a slot for a job and queues it. The job holds the slot until `leave`, while it waits and while it runs. */
  add(address: string, job: Job): Admission
  /** Removes and returns the next job; undefined when none waits. */
  next(): Job | undefined
  /** Removes a waiting job; false when it no longer waits. The job keeps its slot until `leave`. */
  withdraw(address: string, job: Job): boolean
  /**
   * Frees a slot for an address: removes and returns the newest job of the network with the most waiting jobs, if it
   * has at least two more than the address's own network; null otherwise. The slot of the removed job is free at once.
   */
  displace(address: string): Job | null
}

export function fairQueue<Job>(bounds: SlotBounds): FairQueue<Job> {
  const slots = openSlots(bounds)
  /** Waiting jobs by address; the first address of the map has the turn. */
  const waiting = new Map<string, Job[]>()
  let lastServed: string | null = null
  const withdraw = (address: string, job: Job): boolean => {
    const jobs = waiting.get(address) ?? []
    const rest = jobs.filter((each) => each !== job)
    if (rest.length === jobs.length) return false
    if (rest.length > 0) waiting.set(address, rest)
    else waiting.delete(address)
    return true
  }
  return {
    ...slots,
    add(address, job) {
      const admission = slots.enter(address)
      if (admission !== 'admitted') return admission
      waiting.set(address, [...(waiting.get(address) ?? []), job])
      return admission
    },
    next() {
      // Skip the address that was served last, even when it queued another job before the others.
      const [first, second] = waiting.keys()
      const address = first === lastServed ? (second ?? first) : first
      if (address === undefined) return undefined
      const [job, ...rest] = waiting.get(address) ?? []
      waiting.delete(address)
      // A served address moves to the end.
      if (rest.length > 0) waiting.set(address, rest)
      lastServed = address
      return job
    },
    withdraw,
    displace(address) {
      const byNetwork = new Map<string, number>()
      for (const [each, { length }] of waiting) {
        const network = networkOf(each)
        byNetwork.set(network, (byNetwork.get(network) ?? 0) + length)
      }
      const [network, most] = [...byNetwork].reduce(larger, ['', 0])
      if (most < (byNetwork.get(networkOf(address)) ?? 0) + 2) return null
      const [crowdedAddress, jobs] = [...waiting]
        .filter(([each]) => networkOf(each) === network)
        .reduce((one, other) => (other[1].length > one[1].length ? other : one))
      const job = jobs.at(-1) as Job
      withdraw(crowdedAddress, job)
      slots.leave(crowdedAddress)
      return job
    },
  }
}

function larger(one: [string, number], other: [string, number]): [string, number] {
  return other[1] > one[1] ? other : one
}
