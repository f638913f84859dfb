import { LEASE_MS } from '../domain/jobs.ts'
import type { LeaseHolder, LeaseKeeper } from '../domain/jobs.ts'
import type { Clock } from '../domain/ports.ts'
import { Refusal, messageOf } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'

/** The holder of a lease, and its dependencies. */
export interface HolderPorts {
  clock: Clock
  holder: LeaseHolder
  /** True when a lease holder's process is known to have died. */
  isDead: (process: string) => boolean
  /** Reports one line to an operator. */
  onProgress: (message: string) => void
}

export interface LeasePorts extends HolderPorts {
  ledger: LeaseKeeper
}

/** Another holder has the lease. */
export type LeaseRefusal = 'lease_held' | 'lease_lost'

/**
 * Runs work that writes to the ledger under the publisher's lease, renewed until the work ends (docs/publishing.md).
 *
 * @throws Refusal `lease_held` when another holder has the lease; errors of the work
 */
export function withPublisherLease<T>(ports: LeasePorts, work: (token: string) => Promise<T>): Promise<T> {
  return withLease(ports.ledger, 'writing to the ledger', ports, work)
}

/** The refusal for a run whose lease expired or was taken over. @param data what the lease guards */
export function leaseLost(data = 'the ledger'): Refusal<LeaseRefusal> {
  return new Refusal('lease_lost', `the lease of ${data} expired, or another run took it; this run stopped`)
}

/**
 * Runs work under a lease, renewed until the work ends.
 *
 * @param doing activity of a holder, for the message of a refusal
 * @throws Refusal `lease_held` when another holder has the lease; errors of the work
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
    const message = `${grant.heldBy} has been ${doing} since ${since}; its lease lasts until ${until}`
    throw new Refusal<LeaseRefusal>('lease_held', message)
  }
  const renewal = setInterval(() => {
    // A failed renewal is detected by the guarded writes, which check the lease.
    lease.renewLease(grant.token, clock(), LEASE_MS).catch(() => undefined)
  }, LEASE_MS / 4)
  try {
    return await work(grant.token)
  } finally {
    clearInterval(renewal)
    // The outcome does not depend on the release: the lease expires.
    await lease.releaseLease(grant.token).catch((error: unknown) => {
      onProgress(`the lease could not be released and will expire: ${messageOf(error)}`)
    })
  }
}
