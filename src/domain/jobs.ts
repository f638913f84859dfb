import { DAY_MS } from './time.ts'
import type { Day, Instant } from './time.ts'
import { lastCompleteDay } from './year/ledger.ts'

/** Jobs that cron and timers start; their runs are recorded (docs/monitoring.md). */
export const JOBS = [
  'import-signals',
  'import-articles',
  'import-archive',
  'collect',
  'snapshot',
  'reindex',
  'publish-year',
  'evaluate-models',
  'verify-archive',
  'verify-host',
  'copy-archive',
  'export',
] as const
export type Job = (typeof JOBS)[number]

/** The result of a job's run. */
export interface JobRun {
  job: Job
  startedAt: Instant
  endedAt: Instant
  exitCode: number
}

/** The last run of a job, and the end of its last successful run. */
export interface JobState extends JobRun {
  /** null when no run has succeeded. */
  lastSuccessAt: Instant | null
}

const HOUR_MS = 3_600_000

/**
 * Age, in milliseconds, after which the result of a job is late: the interval of the default schedule and a margin, as in
 * `ops/prometheus/dash.rules.yml`. That of a recommendation is part of its interface.
 */
export const LATE_AFTER_MS = { snapshot: 6 * HOUR_MS, audit: 8 * DAY_MS } as const

/** Time after midnight UTC by which the default schedule has published a day, in milliseconds. */
const PUBLISHED_BY_MS = 2 * HOUR_MS

/** The last day whose publication is due. */
export function lastDueDay(now: Instant): Day {
  return lastCompleteDay(now - PUBLISHED_BY_MS)
}

/** Lifetime of a lease, which gives one holder at a time the right to write, without renewal (docs/publishing.md). */
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
