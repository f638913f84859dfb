import type { Instant } from './time.ts'

/** A lease gives one holder at a time the right to write. */

/** Lifetime of a lease without renewal (docs/publishing.md). */
export const LEASE_MS = 600_000

export interface LeaseHolder {
  /** Human-readable: host and process. */
  name: string
  /** Identity of the process, by which the same host can detect its death; null when it cannot. */
  process: string | null
}

export type LeaseGrant =
  { granted: true; token: string } | { granted: false; heldBy: string; since: Instant; until: Instant }

/** A lease kept in a store: one holder at a time. */
export interface LeaseKeeper {
  /**
   * Takes the lease for `forMs` milliseconds if it is free, expired, or held by a process that `isDead` knows to be
   * dead.
   */
  takeLease(
    holder: LeaseHolder,
    now: Instant,
    forMs: number,
    isDead: (process: string) => boolean,
  ): Promise<LeaseGrant>
  /** False when another holder has the lease. */
  renewLease(token: string, now: Instant, forMs: number): Promise<boolean>
  releaseLease(token: string): Promise<void>
}
