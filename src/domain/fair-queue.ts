import { networkOf } from './client-address.ts'

/**
 * Bounds and turns of callers that share something scarce, such as the search process. Nothing here depends on what is
 * shared: the driver runs the jobs.
 */

/** How many places callers may hold at once. */
export interface SlotBounds {
  /** One address, as `clientAddress` gives it. */
  perAddress: number
  /** The addresses of one network (`networkOf`). */
  perNetwork: number
  all: number
}

/** `address_full`: the caller's address or network holds too many places; `all_full`: every place is taken. */
type Admission = 'admitted' | 'address_full' | 'all_full'

export interface OpenSlots {
  /** Takes a place for an address. An admitted caller must call `leave` once. */
  enter(address: string): Admission
  leave(address: string): void
  /** What an address and its network hold; it stays current while the address holds a place. */
  held(address: string): HeldSlots
}

export interface HeldSlots {
  address: Readonly<Tally>
  /** The same object for all addresses of a network. */
  network: Readonly<Tally>
}

interface Tally {
  count: number
}

export function openSlots({ perAddress, perNetwork, all }: SlotBounds): OpenSlots {
  const byAddress = new Map<string, Tally>()
  const byNetwork = new Map<string, Tally>()
  let taken = 0
  return {
    enter(address) {
      const network = networkOf(address)
      if (
        tallyOf(byAddress, address).count >= perAddress ||
        tallyOf(byNetwork, network).count >= perNetwork
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
      address: tallyOf(byAddress, address),
      network: tallyOf(byNetwork, networkOf(address)),
    }),
  }
}

/** Keeps no entry for zero, so that the map stays as small as the number of open places. */
function count(tallies: Map<string, Tally>, key: string, change: 1 | -1): void {
  const tally = tallyOf(tallies, key)
  tally.count += change
  if (tally.count > 0) tallies.set(key, tally)
  else tallies.delete(key)
}

function tallyOf(tallies: ReadonlyMap<string, Tally>, key: string): Tally {
  return tallies.get(key) ?? { count: 0 }
}

/** Jobs that wait for their turn: addresses take turns, and the jobs of one address keep their order. */
export interface FairQueue<Job> extends OpenSlots {
  /** Takes a place for a job and queues it. The place is held until `leave`, while the job waits and while it runs. */
  add(address: string, job: Job): Admission
  /** Removes and returns the next job; undefined when none waits. */
  next(): Job | undefined
  /** Removes a job that still waits; false when it no longer does. Its place stays taken until `leave`. */
  withdraw(address: string, job: Job): boolean
  /**
   * Makes room for an address: removes and returns the newest job of the network with the most waiting jobs, if that has
   * at least two more than the address's own network; null otherwise. Its place is free at once.
   */
  displace(address: string): Job | null
}

export function fairQueue<Job>(bounds: SlotBounds): FairQueue<Job> {
  const places = openSlots(bounds)
  /** Waiting jobs by address; the first address of the map has the turn. */
  const waiting = new Map<string, Job[]>()
  let served: string | null = null
  const withdraw = (address: string, job: Job): boolean => {
    const jobs = waiting.get(address) ?? []
    const rest = jobs.filter((each) => each !== job)
    if (rest.length === jobs.length) return false
    if (rest.length > 0) waiting.set(address, rest)
    else waiting.delete(address)
    return true
  }
  return {
    ...places,
    add(address, job) {
      const admission = places.enter(address)
      if (admission !== 'admitted') return admission
      waiting.set(address, [...(waiting.get(address) ?? []), job])
      return admission
    },
    next() {
      // The address that was served last asked again before any other did: the others go first all the same.
      const [first, second] = waiting.keys()
      const address = first === served ? (second ?? first) : first
      if (address === undefined) return undefined
      const [job, ...rest] = waiting.get(address) ?? []
      waiting.delete(address)
      // An address that has been served goes to the end.
      if (rest.length > 0) waiting.set(address, rest)
      served = address
      return job
    },
    withdraw,
    displace(address) {
      const byNetwork = new Map<string, number>()
      for (const [each, { length }] of waiting) {
        const network = networkOf(each)
        byNetwork.set(network, (byNetwork.get(network) ?? 0) + length)
      }
      const [network, most] = [...byNetwork].reduce(fuller, ['', 0])
      if (most < (byNetwork.get(networkOf(address)) ?? 0) + 2) return null
      const [crowded, jobs] = [...waiting]
        .filter(([each]) => networkOf(each) === network)
        .reduce((one, other) => (other[1].length > one[1].length ? other : one))
      const job = jobs.at(-1) as Job
      withdraw(crowded, job)
      places.leave(crowded)
      return job
    },
  }
}

function fuller(one: [string, number], other: [string, number]): [string, number] {
  return other[1] > one[1] ? other : one
}
