import type { Clock, LeaseHolder, LeaseKeeper } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import { LEASE_MS } from '../domain/year/plan.ts'

/** Who takes a lease, and how it is watched. */
export interface HolderPorts {
  clock: Clock
  holder: LeaseHolder
  /** True when a lease holder's process is known to have died. */
  isDead: (process: string) => boolean
  /** One line for an operator who watches. */
  onProgress: (message: string) => void
}

/** The lease is somebody else's. */
export type LeaseRefusal = 'lease_held' | 'lease_lost'

/**
 * Runs work under a lease, renewed until it ends.
 *
 * @param doing what a holder does, for whoever is refused
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
    const { heldBy, since, until } = grant
    throw new Refusal<LeaseRefusal>(
      'lease_held',
      `${heldBy} has been ${doing} since ${formatInstant(since)}; its lease runs until ${formatInstant(until)}`,
    )
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
      onProgress(`the lease could not be given back and runs out by itself: ${messageOf(error)}`)
    })
  }
}

/** One line: a refusal's detail, or what lies at the bottom of a fault, since wrappers repeat whole statements. */
export function messageOf(error: unknown): string {
  if (error instanceof Refusal) return error.detail ?? error.code
  if (error instanceof Error && error.cause instanceof Error) return messageOf(error.cause)
  return error instanceof Error ? error.message : String(error)
}
