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
const counts = define('counter' as const)
const gauges = define('gauge' as const)
const times = define('histogram' as const)

/**
 * Every metric there is (docs/monitoring.md): what it counts, and its labels. A label's values are of a closed list:
 * templates of routes, names of commands, codes of ours; never anything a caller sent.
 */
export const METRICS = {
  dash_build_info: gauges('Release of dash and of Node.js; always 1.', 'version', 'node'),
  dash_http_requests_total: counts(
    'Completed requests, by route template, method and status class.',
    'route',
    'method',
    'status',
  ),
  dash_http_request_duration_seconds: times(
    'Time from the arrival of a request to the end of its response.',
    'route',
    'status',
  ),
  dash_http_requests_open: gauges('Requests whose response has not ended.'),
  dash_chat_streams_open: gauges('Chat answers being streamed.'),
  dash_chat_admissions_total: counts(
    'Chat turns that requested admission, by outcome: normal, degraded, or the scope of the refusal.',
    'outcome',
  ),
  dash_chat_answers_total: counts(
    'Chat turns by source of the answer: the cache, an answer shared with an open turn, or a model.',
    'source',
  ),
  dash_chat_turns_total: counts('Completed chat turns, by final event and error code.', 'terminal', 'code'),
  dash_chat_turn_duration_seconds: times('Time from the admission of a chat turn to its end.', 'terminal'),
  dash_chat_first_text_seconds: times(
    'Time from the admission of a chat turn to the first text of its answer.',
  ),
  dash_chat_cost_usd_total: counts('Cost of the chat turns of this server, in US dollars.'),
  dash_chat_budget_usd: gauges('Chat budget of one UTC day, for all servers together, in US dollars.'),
  dash_chat_budget_spent_usd: gauges(
    'Cost of the chat turns of the current UTC day, for all servers together, in US dollars.',
  ),
  dash_chat_budget_reserved_usd: gauges(
    'Cost reserved by open chat turns of the current UTC day, for all servers together, in US dollars.',
  ),
  dash_publications: gauges('Year publications in both ledgers.'),
  dash_gaps: gauges('Days that are permanent gaps.'),
  dash_publication_newest_day_timestamp_seconds: gauges('Start of the as-of day of the newest publication.'),
  dash_publication_newest_timestamp_seconds: gauges('Time of the newest publication.'),
  dash_snapshot_newest_timestamp_seconds: gauges('Time of the newest snapshot of the live feed.'),
  dash_recommendation_timestamp_seconds: gauges('Time of the served free-model recommendation.'),
  dash_recommendation_seed: gauges('1 if the built-in seed is served instead of a recommendation.'),
  dash_store_up: gauges('1 if a store is ready.', 'store'),
  dash_audit_timestamp_seconds: gauges('End of the last audit of the archive that had a result.'),
  dash_audit_ok: gauges('1 if the last audit read everything it was asked to and found no damage.'),
  dash_audit_complete: gauges('1 if the last audit read everything it was asked to.'),
  dash_audit_whole: gauges('1 if the last audit was asked to read every object.'),
  dash_audit_damage_findings: gauges('Damage findings of the last audit.'),
  dash_audit_objects: gauges('Objects read by the last audit.'),
  dash_audit_bytes: gauges('Bytes read by the last audit.'),
  dash_job_last_run_timestamp_seconds: gauges('End of the last run of a command.', 'command'),
  dash_job_last_success_timestamp_seconds: gauges(
    'End of the last run of a command with exit code 0; 0 if there is none.',
    'command',
  ),
  dash_job_last_exit_code: gauges('Exit code of the last run of a command.', 'command'),
  dash_job_last_duration_seconds: gauges('Duration of the last run of a command.', 'command'),
  dash_scrape_source_up: gauges('1 if the source of this metric group responded to this scrape.', 'source'),
  process_cpu_seconds_total: counts('Processor time of the process, user and system.'),
  process_resident_memory_bytes: gauges('Resident memory of the process.'),
  process_start_time_seconds: gauges('Start time of the process.'),
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

/** The value of a metric as it was read. */
export type Reading = readonly [name: NameOf<'counter' | 'gauge'>, value: number, labels?: Labels]

/** What a metric is made with. Its registry is always named: the package's own is shared by all servers of a process. */
function definitionOf(name: MetricName, registry: Registry) {
  const { help, labels } = METRICS[name]
  return { name, help, labelNames: [...labels], registers: [registry] }
}

/**
 * @param known sets of labels that are told from the start on: of a counter that appears with its first event Prometheus
 *   sees no increase
 */
export function counter(registry: Registry, name: NameOf<'counter'>, known: readonly Labels[] = []): Counter {
  const made = new Counter(definitionOf(name, registry))
  for (const labels of known) made.inc({ ...labels }, 0)
  return made
}

export function gauge(registry: Registry, name: NameOf<'gauge'>): Gauge {
  return new Gauge(definitionOf(name, registry))
}

/** @param buckets upper bounds in seconds, ascending */
export function histogram(
  registry: Registry,
  name: NameOf<'histogram'>,
  buckets: readonly number[],
): Histogram {
  return new Histogram({ ...definitionOf(name, registry), buckets: [...buckets] })
}

/** Readings in Prometheus' text format; a metric that was not read is left out. */
export async function exposition(readings: readonly Reading[]): Promise<string> {
  const registry = new Registry()
  for (const [name, value, labels = {}] of readings) {
    const Instrument = METRICS[name].type === 'counter' ? Counter : Gauge
    const known = registry.getSingleMetric(name) as Counter | Gauge | undefined
    const instrument = known ?? new Instrument(definitionOf(name, registry))
    instrument.inc({ ...labels }, value)
  }
  return readings.length === 0 ? '' : registry.metrics()
}

const LAST_SUCCESS = 'dash_job_last_success_timestamp_seconds'

/** What is known of the runs of jobs; of each job the last run. */
export function jobMetrics(states: readonly JobState[]): Reading[] {
  return states.flatMap(({ job, startedAt, endedAt, exitCode, lastSuccessAt }) => {
    const labels = { command: job }
    return [
      ['dash_job_last_run_timestamp_seconds', endedAt / 1000, labels],
      // A job that never succeeded is older than any limit, and not absent.
      [LAST_SUCCESS, (lastSuccessAt ?? 0) / 1000, labels],
      ['dash_job_last_exit_code', exitCode, labels],
      ['dash_job_last_duration_seconds', (endedAt - startedAt) / 1000, labels],
    ]
  })
}

const LAST_SUCCESS_LINE = new RegExp(`^${LAST_SUCCESS}\\{[^}]*\\} ([0-9.]{1,20})$`, 'm')

/** When a job last succeeded by the metrics of its run before, as {@link jobMetrics} makes them; null where they do not tell. */
export function lastSuccessIn(text: string): number | null {
  const seconds = Number(LAST_SUCCESS_LINE.exec(text)?.[1] ?? 0)
  return seconds > 0 ? Math.round(seconds * 1000) : null
}
