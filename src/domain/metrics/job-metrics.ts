import type { JobState } from '../job-run.ts'
import { family } from './catalogue.ts'
import type { MetricName } from './catalogue.ts'
import type { MetricFamily } from './exposition.ts'

const LAST_SUCCESS = 'dash_job_last_success_timestamp_seconds'

/** What is known of the runs of jobs, as metrics; of each job the last run. */
export function jobMetrics(states: readonly JobState[]): MetricFamily[] {
  const each = (name: MetricName, value: (state: JobState) => number): MetricFamily =>
    family(
      name,
      states.map((state) => ({ labels: { command: state.job }, value: value(state) })),
    )
  return [
    each('dash_job_last_run_timestamp_seconds', ({ endedAt }) => endedAt / 1000),
    // A job that never succeeded is older than any limit, and not absent.
    each(LAST_SUCCESS, ({ lastSuccessAt }) => (lastSuccessAt ?? 0) / 1000),
    each('dash_job_last_exit_code', ({ exitCode }) => exitCode),
    each('dash_job_last_duration_seconds', ({ startedAt, endedAt }) => (endedAt - startedAt) / 1000),
  ]
}

const LAST_SUCCESS_LINE = new RegExp(`^${LAST_SUCCESS}\\{[^}]*\\} ([0-9.]{1,20})$`, 'm')

/** When a job last succeeded by the metrics of its run before, as {@link jobMetrics} made them; null where they do not tell. */
export function lastSuccessIn(exposition: string): number | null {
  const seconds = Number(LAST_SUCCESS_LINE.exec(exposition)?.[1] ?? 0)
  return seconds > 0 ? Math.round(seconds * 1000) : null
}
