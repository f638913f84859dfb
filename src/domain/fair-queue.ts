import { networkOf, regionOf } from './client-address.ts'

/** Slots and a fair order for callers that share the server. The driver runs the jobs. */

/** Most slots that callers may hold at once. */
export interface SlotBounds {
  /** One address, as `clientAddress` gives it. */
  perAddress: number
  /** The addresses of one network (`networkOf`). */
  perNetwork: number
  /** The addresses of one region (`regionOf`); no limit by default. */
  perRegion?: number
  all: number
}

/** `address_full`: the caller's address, network or region holds too many slots; `all_full`: no slot is free. */
type Admission = 'admitted' | 'address_full' | 'all_full'

export interface OpenSlots {
  /** Takes a slot for an address, or several. An admitted caller must call `leave` once with the same number. */
  enter(address: string, number?: number): Admission
  leave(address: string, number?: number): void
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

export function openSlots({ perAddress, perNetwork, perRegion = Infinity, all }: SlotBounds): OpenSlots {
  const byAddress = new Map<string, SlotCount>()
  const byNetwork = new Map<string, SlotCount>()
  const byRegion = new Map<string, SlotCount>()
  let taken = 0
  return {
    enter(address, number = 1) {
      const network = networkOf(address)
      if (
        slotCountOf(byAddress, address).count + number > perAddress ||
        slotCountOf(byNetwork, network).count + number > perNetwork ||
        slotCountOf(byRegion, regionOf(address)).count + number > perRegion
      ) {
        return 'address_full'
      }
      if (taken + number > all) return 'all_full'
      count(byAddress, address, number)
      count(byNetwork, network, number)
      count(byRegion, regionOf(address), number)
      taken += number
      return 'admitted'
    },
    leave(address, number = 1) {
      count(byAddress, address, -number)
      count(byNetwork, networkOf(address), -number)
      count(byRegion, regionOf(address), -number)
      taken -= number
    },
    held: (address) => ({
      address: slotCountOf(byAddress, address),
      network: slotCountOf(byNetwork, networkOf(address)),
    }),
  }
}

/** Removes entries of zero, so that the map has at most one entry per slot in use. */
function count(slotCounts: Map<string, SlotCount>, key: string, change: number): void {
  const slotCount = slotCountOf(slotCounts, key)
  slotCount.count += change
  if (slotCount.count > 0) slotCounts.set(key, slotCount)
  else slotCounts.delete(key)
}

function slotCountOf(slotCounts: ReadonlyMap<string, SlotCount>, key: string): SlotCount {
  return slotCounts.get(key) ?? { count: 0 }
}

/** Bounds of a queue: jobs that run at once, and jobs that wait. */
export interface QueueBounds {
  running: SlotBounds
  waiting: SlotBounds
}

/** A queue of jobs: addresses take turns, and the jobs of one address keep their order. */
export interface FairQueue<Job> {
  /** Queues a job. */
  add(address: string, job: Job): Admission
  /** Removes and returns the job whose turn it is; undefined when none may start. It runs until `end`. */
  next(): Job | undefined
  /** Ends a running job of an address. */
  end(address: string): void
  /** Removes a waiting job; false when it no longer waits. */
  withdraw(address: string, job: Job): boolean
  /**
   * Makes room for an address: removes and returns the newest job of the network with the most waiting jobs, if it has
   * at least two more than the address's own network; null otherwise.
   */
  displace(address: string): Job | null
  /** Number of addresses with waiting jobs. */
  waitingAddresses(): number
}

export function fairQueue<Job>(bounds: QueueBounds): FairQueue<Job> {
  const running = openSlots(bounds.running)
  const slots = openSlots(bounds.waiting)
  /** Waiting jobs by address; the first address of the map has the turn. */
  const waiting = new Map<string, Job[]>()
  let lastServed: string | null = null

  const withdraw = (address: string, job: Job): boolean => {
    const jobs = waiting.get(address) ?? []
    const rest = jobs.filter((each) => each !== job)
    if (rest.length === jobs.length) return false
    if (rest.length > 0) waiting.set(address, rest)
    else waiting.delete(address)
    slots.leave(address)
    return true
  }

  /** Starts the oldest job of an address, which moves behind the others. */
  const start = (address: string): Job | undefined => {
    const [job, ...rest] = waiting.get(address) ?? []
    waiting.delete(address)
    if (rest.length > 0) waiting.set(address, rest)
    slots.leave(address)
    lastServed = address
    return job
  }

  return {
    add(address, job) {
      const admission = slots.enter(address)
      if (admission === 'admitted') waiting.set(address, [...(waiting.get(address) ?? []), job])
      return admission
    },
    next() {
      // The address that was served last comes last, even when it queued another job before the others.
      const last = lastServed !== null && waiting.has(lastServed) ? [lastServed] : []
      for (const address of [...waiting.keys()].filter((each) => each !== lastServed).concat(last)) {
        const admission = running.enter(address)
        if (admission === 'admitted') return start(address)
        if (admission === 'all_full') return undefined
      }
      return undefined
    },
    end: (address) => running.leave(address),
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
      return job
    },
    waitingAddresses: () => waiting.size,
  }
}

function larger(one: [string, number], other: [string, number]): [string, number] {
  return other[1] > one[1] ? other : one
}
