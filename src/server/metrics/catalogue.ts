import type { JobState } from '../../domain/job-run.ts'
import type { AuditRecord } from '../../domain/year/finding.ts'

interface MetricDefinition {
  type: MetricFamily['type']
  help: string
  labels: readonly string[]
}

const counter = (help: string, ...labels: string[]): MetricDefinition => ({ type: 'counter', help, labels })
const gauge = (help: string, ...labels: string[]): MetricDefinition => ({ type: 'gauge', help, labels })
const histogram = (help: string, ...labels: string[]): MetricDefinition => ({
  type: 'histogram',
  help,
  labels,
})

/**
 * Every metric there is (docs/monitoring.md): what it counts, and its labels. A label's values are of a closed list:
 * templates of routes, names of commands, codes of ours; never anything a caller sent.
 */
export const METRICS = {
  dash_build_info: gauge('Release of dash and of Node.js; always 1.', 'version', 'node'),
  dash_http_requests_total: counter(
    'Requests that ended, by template of the route, method and status class.',
    'route',
    'method',
    'status',
  ),
  dash_http_request_duration_seconds: histogram(
    'Time from the arrival of a request to the end of its answer.',
    'route',
    'status',
  ),
  dash_http_requests_open: gauge('Requests whose answer has not ended.'),
  dash_chat_streams_open: gauge('Answers of the chat that are being streamed.'),
  dash_chat_admissions_total: counter(
    'Turns of the chat that asked to be admitted, by what came of it: normal or degraded, or the scope they were refused under.',
    'outcome',
  ),
  dash_chat_answers_total: counter(
    'Turns of the chat by where their answer came from: the cache, one that was being made, or a model.',
    'source',
  ),
  dash_chat_turns_total: counter(
    'Turns of the chat that ended, by terminal and code of the error.',
    'terminal',
    'code',
  ),
  dash_chat_turn_duration_seconds: histogram(
    'Time from the admission of a turn of the chat to its end.',
    'terminal',
  ),
  dash_chat_first_text_seconds: histogram(
    'Time from the admission of a turn of the chat to the first piece of its answer.',
  ),
  dash_chat_cost_usd_total: counter('What the turns of this server cost, in US dollars.'),
  dash_chat_budget_usd: gauge('What the chat may cost on one UTC day, all servers together.'),
  dash_chat_budget_spent_usd: gauge('What the turns of the current UTC day cost, all servers together.'),
  dash_chat_budget_reserved_usd: gauge(
    'What open turns of the current UTC day hold reserved, all servers together.',
  ),
  dash_publications: gauge('Publications of the Year, of both ledgers.'),
  dash_gaps: gauge('Days that are gaps for ever.'),
  dash_publication_newest_day_timestamp_seconds: gauge(
    'Start of the UTC day the newest publication is as of.',
  ),
  dash_publication_newest_timestamp_seconds: gauge('When the newest publication was published.'),
  dash_snapshot_newest_timestamp_seconds: gauge('When the newest snapshot of the live feed was made.'),
  dash_recommendation_timestamp_seconds: gauge(
    'When the recommendation of a free model that is served was made.',
  ),
  dash_recommendation_seed: gauge('1 while the built-in seed is served in place of a recommendation.'),
  dash_store_up: gauge('1 when a store can be used, as readiness sees it.', 'store'),
  dash_audit_timestamp_seconds: gauge('When the last audit of the archive that came to a verdict ended.'),
  dash_audit_ok: gauge('1 when the last audit found no damage and left nothing unread.'),
  dash_audit_complete: gauge('1 when the last audit read all it was asked to.'),
  dash_audit_whole: gauge('1 when the last audit was asked to read every object.'),
  dash_audit_damage_findings: gauge('Findings of the last audit that are damage.'),
  dash_audit_objects: gauge('Objects the last audit read.'),
  dash_audit_bytes: gauge('Bytes the last audit read.'),
  dash_job_last_run_timestamp_seconds: gauge('When the last run of a command ended.', 'command'),
  dash_job_last_success_timestamp_seconds: gauge(
    'When the last run of a command that ended with 0 did so; 0: none has.',
    'command',
  ),
  dash_job_last_exit_code: gauge('Exit code of the last run of a command.', 'command'),
  dash_job_last_duration_seconds: gauge('How long the last run of a command took.', 'command'),
  dash_scrape_source_up: gauge(
    '1 when what a group of these metrics is read from answered this scrape.',
    'source',
  ),
  process_cpu_seconds_total: counter('Processor time of the process, user and system.'),
  process_resident_memory_bytes: gauge('Memory of the process that is resident.'),
  process_start_time_seconds: gauge('When the process started.'),
  process_open_fds: gauge('Open file descriptors of the process.'),
  nodejs_heap_size_used_bytes: gauge('Used heap of the JavaScript engine.'),
  nodejs_heap_size_total_bytes: gauge('Heap of the JavaScript engine.'),
  nodejs_external_memory_bytes: gauge('Memory of objects outside that heap.'),
  nodejs_eventloop_lag_p50_seconds: gauge('Median delay of the event loop since the last scrape.'),
  nodejs_eventloop_lag_p99_seconds: gauge(
    '99th percentile of the delay of the event loop since the last scrape.',
  ),
  nodejs_eventloop_lag_max_seconds: gauge('Longest delay of the event loop since the last scrape.'),
} as const satisfies Record<string, MetricDefinition>

export type MetricName = keyof typeof METRICS

/** A metric of the catalogue with its samples. */
export function family(name: MetricName, samples: readonly Sample[]): MetricFamily {
  const { type, help } = METRICS[name]
  return { name, type, help, samples }
}

/** A metric of the catalogue without labels; null: its value is not known, and it is left out. */
export function single(name: MetricName, value: number | null): MetricFamily {
  return family(name, value === null ? [] : [{ value }])
}

/** How the archive was found last, as metrics; none while there is no record. */
export function auditMetrics(audit: AuditRecord | null): MetricFamily[] {
  if (audit === null) return []
  return [
    single('dash_audit_timestamp_seconds', audit.endedAt / 1000),
    single('dash_audit_ok', Number(audit.ok)),
    single('dash_audit_complete', Number(audit.complete)),
    single('dash_audit_whole', Number(audit.whole)),
    single('dash_audit_damage_findings', audit.damage),
    single('dash_audit_objects', audit.objects),
    single('dash_audit_bytes', audit.bytes),
  ]
}

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
export function lastSuccessIn(text: string): number | null {
  const seconds = Number(LAST_SUCCESS_LINE.exec(text)?.[1] ?? 0)
  return seconds > 0 ? Math.round(seconds * 1000) : null
}

/** One value of a metric, under its labels. */
export interface Sample {
  /** What of a histogram it is; nothing for a counter or a gauge. */
  suffix?: '_bucket' | '_sum' | '_count'
  labels?: Readonly<Record<string, string>>
  value: number
}

/** A metric with its samples, as Prometheus knows it. */
export interface MetricFamily {
  name: string
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  samples: readonly Sample[]
}

/** What {@link exposition} is served as. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Metrics in Prometheus' text format; a family without samples is left out. */
export function exposition(families: readonly MetricFamily[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(
        (sample) => `${name}${sample.suffix ?? ''}${labelsOf(sample)} ${valueOf(sample)}\n`,
      )
      return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('')
}

function labelsOf({ labels = {} }: Sample): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`,
  )
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function valueOf({ value }: Sample): string {
  if (Number.isFinite(value)) return String(value)
  if (Number.isNaN(value)) return 'NaN'
  return value > 0 ? '+Inf' : '-Inf'
}
