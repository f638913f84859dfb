import type { Instant } from './time.ts'

/** Who asks for the lease, as an operator would look for it. */
export interface LeaseHolder {
  /** Human-readable: host and process. */
  name: string
  /** Identity of the process, by which the same host can tell that it has died; null when it cannot. */
  process: string | null
}

export type LeaseGrant =
  { granted: true; token: string } | { granted: false; heldBy: string; since: Instant; until: Instant }

/** A lease kept in a store: one holder at a time. */
export interface LeaseKeeper {
  /**
   * Takes the lease for `forMs`, if it is free, run out, or held by a process `isDead` knows to be dead.
   */
  takeLease(
    holder: LeaseHolder,
    now: Instant,
    forMs: number,
    isDead: (process: string) => boolean,
  ): Promise<LeaseGrant>
  /** False when the lease is no longer this token's. */
  renewLease(token: string, now: Instant, forMs: number): Promise<boolean>
  releaseLease(token: string): Promise<void>
}
