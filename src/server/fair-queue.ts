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

export interface SlotCount {
  count: number
}

export class OpenSlots {
  readonly #bounds: SlotBounds
  /** Slots by address, by network and by region, for those that hold any. */
  readonly #held = new Map<string, SlotCount>()
  #taken = 0

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds
  }

  /** Takes a slot for an address, or several. An admitted caller must call `leave` once with the same number. */
  enter(address: string, number = 1): Admission {
    const { perAddress, perNetwork, perRegion = Infinity, all } = this.#bounds
    const bounds = [perAddress, perNetwork, perRegion]
    const isFull = namesOf(address).some((name, at) => this.#countOf(name).count + number > (bounds[at] ?? 0))
    if (isFull) return 'address_full'
    if (this.#taken + number > all) return 'all_full'
    this.#change(address, number)
    return 'admitted'
  }

  leave(address: string, number = 1): void {
    this.#change(address, -number)
  }

  /** The slots that a network holds, kept current while it holds one. */
  ofNetwork(network: string): Readonly<SlotCount> {
    return this.#countOf(`network ${network}`)
  }

  #countOf(name: string): SlotCount {
    return this.#held.get(name) ?? { count: 0 }
  }

  #change(address: string, number: number): void {
    this.#taken += number
    for (const name of namesOf(address)) {
      const held = this.#countOf(name)
      held.count += number
      if (held.count > 0) this.#held.set(name, held)
      else this.#held.delete(name)
    }
  }
}

/** An address, its network and its region. */
function namesOf(address: string): string[] {
  return [`address ${address}`, `network ${networkOf(address)}`, `region ${regionOf(address)}`]
}

/** Bounds of a queue: jobs that run at once, and jobs that wait. */
export interface QueueBounds {
  running: SlotBounds
  waiting: SlotBounds
}

/**
 * A queue of jobs: networks take turns, and so do the addresses of each. The jobs of one address keep their order.
 */
export class FairQueue<Job> {
  readonly #running: OpenSlots
  readonly #slots: OpenSlots
  /** Waiting jobs by network and by address; the first of each map has the turn. */
  readonly #waiting = new Map<string, Map<string, Job[]>>()

  constructor(bounds: QueueBounds) {
    this.#running = new OpenSlots(bounds.running)
    this.#slots = new OpenSlots(bounds.waiting)
  }

  add(address: string, job: Job): Admission {
    const admission = this.#slots.enter(address)
    if (admission !== 'admitted') return admission
    const network = networkOf(address)
    const addresses = this.#waiting.get(network) ?? new Map<string, Job[]>()
    this.#waiting.set(network, addresses.set(address, [...(addresses.get(address) ?? []), job]))
    return admission
  }

  /** Removes and returns the job whose turn it is; undefined when none may start. It runs until `end`. */
  next(): Job | undefined {
    for (const [network, addresses] of this.#waiting) {
      for (const [address, jobs] of addresses) {
        const admission = this.#running.enter(address)
        if (admission === 'all_full') return undefined
        if (admission === 'address_full') continue
        const job = jobs[0] as Job
        const rest = this.#remove(network, address, job)
        // Address and network move behind the others.
        if (addresses.delete(address)) addresses.set(address, rest)
        if (this.#waiting.delete(network)) this.#waiting.set(network, addresses)
        return job
      }
    }
    return undefined
  }

  end(address: string): void {
    this.#running.leave(address)
  }

  /** Removes a waiting job; false when it no longer waits. */
  withdraw(address: string, job: Job): boolean {
    const network = networkOf(address)
    const isWaiting = this.#waiting.get(network)?.get(address)?.includes(job) ?? false
    if (isWaiting) this.#remove(network, address, job)
    return isWaiting
  }

  /**
   * Makes room for an address: removes and returns the newest job of the network with the most waiting jobs, if it has
   * at least two more than the address's own network; null otherwise.
   */
  displace(address: string): Job | null {
    const sizeOf = (network: string): number => this.#slots.ofNetwork(network).count
    const [network = ''] = [...this.#waiting.keys()].toSorted((one, other) => sizeOf(other) - sizeOf(one))
    if (sizeOf(network) < sizeOf(networkOf(address)) + 2) return null
    const addresses = [...(this.#waiting.get(network) ?? [])]
    const [from, jobs] = addresses.reduce((one, other) => (other[1].length > one[1].length ? other : one))
    const job = jobs.at(-1) as Job
    this.withdraw(from, job)
    return job
  }

  /** Number of networks with waiting jobs. */
  waitingNetworks(): number {
    return this.#waiting.size
  }

  /** Removes a job of an address, and frees its slot. @returns the others of the address */
  #remove(network: string, address: string, job: Job): Job[] {
    const addresses = this.#waiting.get(network)
    const jobs = addresses?.get(address) ?? []
    const rest = jobs.toSpliced(jobs.indexOf(job), 1)
    if (rest.length > 0) addresses?.set(address, rest)
    else addresses?.delete(address)
    if (addresses?.size === 0) this.#waiting.delete(network)
    this.#slots.leave(address)
    return rest
  }
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
