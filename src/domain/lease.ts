import type { Instant } from './time.ts'

/** A lease: one holder at a time writes to what it guards (docs/decisions/0004-lease-recovery.md). */

/** How long a lease lasts without renewal (docs/publishing.md). */
export const LEASE_MS = 600_000

/** The holder of a lease, as an operator would look for it. */
export interface LeaseHolder {
  /** Human-readable: host and process. */
  name: string
  /** Identity of the process, by which the same host can tell that it has died; null when it cannot. */
  process: string | null
}

export type LeaseGrant =
  { granted: true; token: string } | { granted: false; heldBy: string; since: Instant; until: Instant }

/** A lease as it is written down. */
export interface HeldLease {
  holder: string
  /** As {@link LeaseHolder} has it. */
  process: string | null
  takenAt: Instant
  expiresAt: Instant
}
