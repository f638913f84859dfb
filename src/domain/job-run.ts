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
export function jobStateAfter(run: JobRun, lastSuccessAt: Instant | null): JobState {
  return { ...run, lastSuccessAt: run.exitCode === 0 ? run.endedAt : lastSuccessAt }
}
