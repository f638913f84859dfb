import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { JobState } from '../../domain/job-run.ts'

interface MetricDefinition<Type = 'counter' | 'gauge' | 'histogram'> {
  type: Type
  help: string
  labels: readonly string[]
}

function define<Type>(type: Type) {
  return (help: string, ...labels: string[]): MetricDefinition<Type> => ({ type, help, labels })
}
const counters = define('counter' as const)
const gauges = define('gauge' as const)
const histograms = define('histogram' as const)

/**
 * All metrics (docs/monitoring.md), with help and labels. Label values are a closed list: route templates, command names
 * and our codes, never input of a caller.
 */
export const METRICS = {
  dash_build_info: gauges('Release of dash and of Node.js; always 1.', 'version', 'node'),
  dash_http_requests_total: counters(
    'Requests that ended, by template of the route, method and status class.',
    'route',
    'method',
    'status',
  ),
  dash_http_request_duration_seconds: histograms(
    'Time from the arrival of a request to the end of its answer.',
    'route',
    'status',
  ),
  dash_http_requests_open: gauges('Requests whose answer has not ended.'),
  dash_chat_streams_open: gauges('Answers of the chat that are being streamed.'),
  dash_chat_admissions_total: counters(
    'Turns of the chat that asked to be admitted, by what came of it: normal or degraded, or the scope they were refused under.',
    'outcome',
  ),
  dash_chat_answers_total: counters(
    'Turns of the chat by where their answer came from: the cache, one that was being made, or a model.',
    'source',
  ),
  dash_chat_turns_total: counters(
    'Turns of the chat that ended, by terminal and code of the error.',
    'terminal',
    'code',
  ),
  dash_chat_turn_duration_seconds: histograms(
    'Time from the admission of a turn of the chat to its end.',
    'terminal',
  ),
  dash_chat_first_text_seconds: histograms(
    'Time from the admission of a turn of the chat to the first piece of its answer.',
  ),
  dash_chat_cost_usd_total: counters('What the turns of this server cost, in US dollars.'),
  dash_chat_budget_usd: gauges('What the chat may cost on one UTC day, all servers together.'),
  dash_chat_budget_spent_usd: gauges('What the turns of the current UTC day cost, all servers together.'),
  dash_chat_budget_reserved_usd: gauges(
    'What open turns of the current UTC day hold reserved, all servers together.',
  ),
  dash_publications: gauges('Publications of the Year, of both ledgers.'),
  dash_gaps: gauges('Days that are gaps for ever.'),
  dash_publication_newest_day_timestamp_seconds: gauges(
    'Start of the UTC day the newest publication is as of.',
  ),
  dash_publication_newest_timestamp_seconds: gauges('When the newest publication was published.'),
  dash_snapshot_newest_timestamp_seconds: gauges('When the newest snapshot of the live feed was made.'),
  dash_recommendation_timestamp_seconds: gauges(
    'When the recommendation of a free model that is served was made.',
  ),
  dash_recommendation_seed: gauges('1 while the built-in seed is served in place of a recommendation.'),
  dash_store_up: gauges('1 when a store can be used, as readiness sees it.', 'store'),
  dash_audit_timestamp_seconds: gauges('When the last audit of the archive that came to a verdict ended.'),
  dash_audit_ok: gauges('1 when the last audit found no damage and left nothing unread.'),
  dash_audit_complete: gauges('1 when the last audit read all it was asked to.'),
  dash_audit_whole: gauges('1 when the last audit was asked to read every object.'),
  dash_audit_damage_findings: gauges('Findings of the last audit that are damage.'),
  dash_audit_objects: gauges('Objects the last audit read.'),
  dash_audit_bytes: gauges('Bytes the last audit read.'),
  dash_job_last_run_timestamp_seconds: gauges('When the last run of a command ended.', 'command'),
  dash_job_last_success_timestamp_seconds: gauges(
    'When the last run of a command that ended with 0 did so; 0: none has.',
    'command',
  ),
  dash_job_last_exit_code: gauges('Exit code of the last run of a command.', 'command'),
  dash_job_last_duration_seconds: gauges('How long the last run of a command took.', 'command'),
  dash_scrape_source_up: gauges(
    '1 when what a group of these metrics is read from answered this scrape.',
    'source',
  ),
  process_cpu_seconds_total: counters('Processor time of the process, user and system.'),
  process_resident_memory_bytes: gauges('Memory of the process that is resident.'),
  process_start_time_seconds: gauges('When the process started.'),
  process_open_fds: gauges('Open file descriptors of the process.'),
  nodejs_heap_size_used_bytes: gauges('Used heap of the JavaScript engine.'),
  nodejs_heap_size_total_bytes: gauges('Heap of the JavaScript engine.'),
  nodejs_external_memory_bytes: gauges('Memory of objects outside that heap.'),
  nodejs_eventloop_lag_p50_seconds: gauges('Median delay of the event loop since the last scrape.'),
  nodejs_eventloop_lag_p99_seconds: gauges(
    '99th percentile of the delay of the event loop since the last scrape.',
  ),
  nodejs_eventloop_lag_max_seconds: gauges('Longest delay of the event loop since the last scrape.'),
} as const satisfies Record<string, MetricDefinition>

type MetricName = keyof typeof METRICS
type NameOf<Type extends MetricDefinition['type']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['type'] extends Type ? Name : never
}[MetricName]

/** Values of a metric's labels. */
type Labels = Readonly<Record<string, string>>

/** One measured value of a metric. */
export type Sample = readonly [name: NameOf<'counter' | 'gauge'>, value: number, labels?: Labels]

/**
 * Constructor options of a metric, with an explicit registry: the package's default one is shared by all servers of a
 * process.
 */
function definitionOf(name: MetricName, registry: Registry) {
  const { help, labels } = METRICS[name]
  return { name, help, labelNames: [...labels], registers: [registry] }
}

/**
 * Makes a counter. @param initialLabels label sets that start at 0: Prometheus sees no increase if a counter appears with
 * its first event
 */
export function counter(
  registry: Registry,
  name: NameOf<'counter'>,
  initialLabels: readonly Labels[] = [],
): Counter {
  const instrument = new Counter(definitionOf(name, registry))
  for (const labels of initialLabels) instrument.inc({ ...labels }, 0)
  return instrument
}

export function gauge(registry: Registry, name: NameOf<'gauge'>): Gauge {
  return new Gauge(definitionOf(name, registry))
}

/** Makes a histogram. @param buckets upper bounds in seconds, ascending */
export function histogram(
  registry: Registry,
  name: NameOf<'histogram'>,
  buckets: readonly number[],
): Histogram {
  return new Histogram({ ...definitionOf(name, registry), buckets: [...buckets] })
}

/** Writes samples in Prometheus' text format. */
export async function exposition(samples: readonly Sample[]): Promise<string> {
  const registry = new Registry()
  for (const [name, value, labels = {}] of samples) {
    const Instrument = METRICS[name].type === 'counter' ? Counter : Gauge
    const known = registry.getSingleMetric(name) as Counter | Gauge | undefined
    const instrument = known ?? new Instrument(definitionOf(name, registry))
    instrument.inc({ ...labels }, value)
  }
  return samples.length === 0 ? '' : registry.metrics()
}

const LAST_SUCCESS = 'dash_job_last_success_timestamp_seconds'

/** Samples of the last run of each job. */
export function jobMetrics(states: readonly JobState[]): Sample[] {
  return states.flatMap(({ job, startedAt, endedAt, exitCode, lastSuccessAt }) => {
    const labels = { command: job }
    return [
      ['dash_job_last_run_timestamp_seconds', endedAt / 1000, labels],
      // 0 for a job that never succeeded, so that alerts on its age fire.
      [LAST_SUCCESS, (lastSuccessAt ?? 0) / 1000, labels],
      ['dash_job_last_exit_code', exitCode, labels],
      ['dash_job_last_duration_seconds', (endedAt - startedAt) / 1000, labels],
    ]
  })
}

const LAST_SUCCESS_LINE = new RegExp(`^${LAST_SUCCESS}\\{[^}]*\\} ([0-9.]{1,20})$`, 'm')

/** Reads the time of the last success from metrics of {@link jobMetrics}; null if they have none. */
export function lastSuccessIn(text: string): number | null {
  const seconds = Number(LAST_SUCCESS_LINE.exec(text)?.[1] ?? 0)
  return seconds > 0 ? Math.round(seconds * 1000) : null
}
