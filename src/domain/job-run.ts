import type { Instant } from './time.ts'

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
