import type { Clock, LeaseHolder, Ledger } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import { LEASE_MS } from '../domain/year/plan.ts'

export interface LeasePorts {
  ledger: Pick<Ledger, 'takeLease' | 'renewLease' | 'releaseLease'>
  clock: Clock
  holder: LeaseHolder
  /** True when a lease holder's process is known to have died. */
  isDead: (process: string) => boolean
  /** One line for an operator who watches. */
  onProgress: (message: string) => void
}

/** The lease is somebody else's. */
type LeaseRefusal = 'lease_held' | 'lease_lost'

/**
 * Runs work that writes to the ledger under the publisher's lease, renewed until it ends (docs/publishing.md).
 *
 * @throws Refusal `lease_held` when somebody else has the lease; whatever the work throws
 */
export async function withPublisherLease<T>(
  { ledger, clock, holder, isDead, onProgress }: LeasePorts,
  work: (token: string) => Promise<T>,
): Promise<T> {
  const grant = await ledger.takeLease(holder, clock(), LEASE_MS, isDead)
  if (!grant.granted) {
    const { heldBy, since, until } = grant
    throw new Refusal<LeaseRefusal>(
      'lease_held',
      `${heldBy} has been writing to the ledger since ${formatInstant(since)}; its lease runs until ${formatInstant(until)}`,
    )
  }
  const renewal = setInterval(() => {
    // A lease that cannot be renewed is noticed by the commit, which checks it.
    ledger.renewLease(grant.token, clock(), LEASE_MS).catch(() => undefined)
  }, LEASE_MS / 4)
  try {
    return await work(grant.token)
  } finally {
    clearInterval(renewal)
    // The outcome stands whether or not the lease can be given back: it runs out by itself.
    await ledger.releaseLease(grant.token).catch((error: unknown) => {
      onProgress(`the lease could not be given back and runs out by itself: ${messageOf(error)}`)
    })
  }
}

/** What a run ends with whose lease another took over. */
export function leaseLost(): Refusal<LeaseRefusal> {
  return new Refusal('lease_lost', 'another publisher took over while this one worked')
}

/** One line: a refusal's detail, or what lies at the bottom of a fault, since wrappers repeat whole statements. */
export function messageOf(error: unknown): string {
  if (error instanceof Refusal) return error.detail ?? error.code
  if (error instanceof Error && error.cause instanceof Error) return messageOf(error.cause)
  return error instanceof Error ? error.message : String(error)
}
