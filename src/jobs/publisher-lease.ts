import type { Ledger } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { withLease } from './lease.ts'
import type { HolderPorts, LeaseRefusal } from './lease.ts'

export interface LeasePorts extends HolderPorts {
  ledger: Pick<Ledger, 'takeLease' | 'renewLease' | 'releaseLease'>
}

/**
 * Runs work that writes to the ledger under the publisher's lease, renewed until it ends (docs/publishing.md).
 *
 * @throws Refusal `lease_held` when somebody else has the lease; whatever the work throws
 */
export function withPublisherLease<T>(ports: LeasePorts, work: (token: string) => Promise<T>): Promise<T> {
  return withLease(ports.ledger, 'writing to the ledger', ports, work)
}

/** What a run ends with whose lease another took over. */
export function leaseLost(): Refusal<LeaseRefusal> {
  return new Refusal('lease_lost', 'another publisher took over while this one worked')
}
