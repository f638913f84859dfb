import { networkOf, regionOf } from '../domain/address.ts'

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
  /** The slots that the network of an address holds, kept current while it holds one. */
  ofNetwork(address: string): Readonly<SlotCount>
}

export interface SlotCount {
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
    ofNetwork: (address) => slotCountOf(byNetwork, networkOf(address)),
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

/**
 * A queue of jobs: networks take turns, and so do the addresses of each. The jobs of one address keep their order.
 */
export interface FairQueue<Job> {
  add(address: string, job: Job): Admission
  /** Removes and returns the job whose turn it is; undefined when none may start. It runs until `end`. */
  next(): Job | undefined
  end(address: string): void
  /** Removes a waiting job; false when it no longer waits. */
  withdraw(address: string, job: Job): boolean
  /**
   * Makes room for an address: removes and returns the newest job of the network with the most waiting jobs, if it has
   * at least two more than the address's own network; null otherwise.
   */
  displace(address: string): Job | null
  /** Number of networks with waiting jobs. */
  waitingNetworks(): number
}

export function fairQueue<Job>(bounds: QueueBounds): FairQueue<Job> {
  const running = openSlots(bounds.running)
  const slots = openSlots(bounds.waiting)
  /** Waiting jobs by network and by address; the first of each map has the turn. */
  const waiting = new Map<string, Map<string, Job[]>>()

  const jobsOf = (address: string): Job[] => waiting.get(networkOf(address))?.get(address) ?? []

  /** Replaces the waiting jobs of an address, which keeps its place among the others of its network. */
  const setJobs = (address: string, jobs: Job[]): void => {
    const network = networkOf(address)
    const addresses = waiting.get(network) ?? new Map<string, Job[]>()
    if (jobs.length > 0) addresses.set(address, jobs)
    else addresses.delete(address)
    if (addresses.size > 0) waiting.set(network, addresses)
    else waiting.delete(network)
  }

  /** Starts the oldest job of an address; address and network move behind the others. */
  const start = (network: string, address: string): Job | undefined => {
    const [job, ...rest] = jobsOf(address)
    setJobs(address, [])
    const others = waiting.get(network)
    waiting.delete(network)
    if (others) waiting.set(network, others)
    setJobs(address, rest)
    slots.leave(address)
    return job
  }

  const withdraw = (address: string, job: Job): boolean => {
    const jobs = jobsOf(address)
    if (!jobs.includes(job)) return false
    setJobs(
      address,
      jobs.filter((each) => each !== job),
    )
    slots.leave(address)
    return true
  }

  return {
    add(address, job) {
      const admission = slots.enter(address)
      if (admission === 'admitted') setJobs(address, [...jobsOf(address), job])
      return admission
    },
    next() {
      for (const [network, addresses] of waiting) {
        for (const address of addresses.keys()) {
          const admission = running.enter(address)
          if (admission === 'admitted') return start(network, address)
          if (admission === 'all_full') return undefined
        }
      }
      return undefined
    },
    end: (address) => running.leave(address),
    withdraw,
    displace(address) {
      const counts = [...waiting].map(([network, addresses]): [string, number] => [
        network,
        jobCount(addresses),
      ])
      const [network, most] = counts.reduce(larger, ['', 0])
      if (most < jobCount(waiting.get(networkOf(address)) ?? new Map<string, Job[]>()) + 2) return null
      const [crowdedAddress, jobs] = [...(waiting.get(network) ?? [])].reduce((one, other) =>
        other[1].length > one[1].length ? other : one,
      )
      const job = jobs.at(-1) as Job
      withdraw(crowdedAddress, job)
      return job
    },
    waitingNetworks: () => waiting.size,
  }
}

function jobCount(addresses: ReadonlyMap<string, readonly unknown[]>): number {
  return [...addresses.values()].reduce((sum, { length }) => sum + length, 0)
}

function larger(one: [string, number], other: [string, number]): [string, number] {
  return other[1] > one[1] ? other : one
}

/**
 * Most requests of one network whose handling starts in one turn of the event loop, so that a turn stays short: the system
 * accepts one new connection in each.
 */
const STARTED_MAX = 4

/**
 * Returns a function that starts a request when it is its turn: a few of each network in each turn of the event loop, in
 * the order of their arrival. The first ones start at once.
 */
export function requestTurns(): (address: string, start: () => void) => void {
  const waiting = new Map<string, (() => void)[]>()
  /** Number of requests of each network that started in this turn; empty before the first. */
  const started = new Map<string, number>()
  const begin = (network: string, start: () => void): void => {
    if (started.size === 0) setImmediate(nextTurn)
    started.set(network, (started.get(network) ?? 0) + 1)
    start()
  }
  const nextTurn = (): void => {
    started.clear()
    for (const [network, requests] of waiting) {
      if (requests.length <= STARTED_MAX) waiting.delete(network)
      for (const start of requests.splice(0, STARTED_MAX)) begin(network, start)
    }
  }
  return (address, start) => {
    const network = networkOf(address)
    const requests = waiting.get(network)
    if (requests) requests.push(start)
    else if ((started.get(network) ?? 0) < STARTED_MAX) begin(network, start)
    else waiting.set(network, [start])
  }
}
