import { LEASE_MS } from '../domain/lease.ts'
import type { LeaseHolder } from '../domain/lease.ts'
import type { Clock, LeaseKeeper } from '../domain/ports.ts'
import { Refusal, messageOf } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'

/** Who takes a lease, and how it is watched. */
export interface HolderPorts {
  clock: Clock
  holder: LeaseHolder
  /** True when a lease holder's process is known to have died. */
  isDead: (process: string) => boolean
  /** One line for an operator who watches. */
  onProgress: (message: string) => void
}

export interface LeasePorts extends HolderPorts {
  ledger: LeaseKeeper
}

/** The lease is somebody else's. */
export type LeaseRefusal = 'lease_held' | 'lease_lost'

/**
 * Runs work that writes to the ledger under the publisher's lease, renewed until it ends (docs/publishing.md).
 *
 * @throws Refusal `lease_held` when somebody else has the lease; whatever the work throws
 */
export function withPublisherLease<T>(ports: LeasePorts, work: (token: string) => Promise<T>): Promise<T> {
  return withLease(ports.ledger, 'writing to the ledger', ports, work)
}

/** The end of a run whose lease another took over. */
export function leaseLost(): Refusal<LeaseRefusal> {
  return new Refusal('lease_lost', 'another run took over the lease of the ledger; this run stopped')
}

/**
 * Runs work under a lease, renewed until it ends.
 *
 * @param doing what a holder does, for the message to a run that is refused
 * @throws Refusal `lease_held` when somebody else has the lease; whatever the work throws
 */
export async function withLease<T>(
  lease: LeaseKeeper,
  doing: string,
  { clock, holder, isDead, onProgress }: HolderPorts,
  work: (token: string) => Promise<T>,
): Promise<T> {
  const grant = await lease.takeLease(holder, clock(), LEASE_MS, isDead)
  if (!grant.granted) {
    const [since, until] = [formatInstant(grant.since), formatInstant(grant.until)]
    const held = `${grant.heldBy} has been ${doing} since ${since}; its lease lasts until ${until}`
    throw new Refusal<LeaseRefusal>('lease_held', held)
  }
  const renewal = setInterval(() => {
    // A lease that cannot be renewed is noticed by whatever it guards, which checks it.
    lease.renewLease(grant.token, clock(), LEASE_MS).catch(() => undefined)
  }, LEASE_MS / 4)
  try {
    return await work(grant.token)
  } finally {
    clearInterval(renewal)
    // The outcome stands whether or not the lease can be given back: it runs out by itself.
    await lease.releaseLease(grant.token).catch((error: unknown) => {
      onProgress(`the lease could not be released and will expire: ${messageOf(error)}`)
    })
  }
}
