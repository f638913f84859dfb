import type { Instant } from './time.ts'

/** Commands whose runs are watched: what cron and timers start (docs/monitoring.md). */
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
] as const
export type Job = (typeof JOBS)[number]

/** How a run of a job ended. */
export interface JobRun {
  job: Job
  startedAt: Instant
  endedAt: Instant
  exitCode: number
}

/** What is remembered of the runs of a job: the last one, and when one last ended with 0. */
export interface JobState extends JobRun {
  /** null: none has. */
  lastSuccessAt: Instant | null
}

/** What is remembered after a run. */
export function afterRun(run: JobRun, lastSuccessAt: Instant | null): JobState {
  return { ...run, lastSuccessAt: run.exitCode === 0 ? run.endedAt : lastSuccessAt }
}

/** How jobs went, for whoever asks when one last succeeded; kept apart from what they work on. */
export interface JobLog {
  /** Durable on return. A run that ended before the one recorded last changes nothing. */
  record(run: JobRun): Promise<void>
  /** The last run of each job that ever ran, by the job's name. */
  states(): Promise<JobState[]>
}

/**
 * A service that watches jobs, and tells somebody when one fails or does not come. All of it throws when the service has
 * not taken what it was told in the time there is.
 */
export interface JobWatch {
  started(job: Job): Promise<void>
  /** @param message what the run said, for a person */
  ended(job: Job, exitCode: number, message: string): Promise<void>
  /** Says something of a job that is neither an end nor a success. */
  told(job: Job, message: string): Promise<void>
  close(): Promise<void>
}

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
