import { Registry, collectDefaultMetrics, Counter, Gauge, Histogram } from 'prom-client'
import type { Admission } from '../../domain/agent/bounds.ts'
import type { FailureCode } from '../../domain/agent/model-call.ts'
import type { TurnOutcome } from '../agent/answer-stream.ts'

const metric = (help: string, ...labels: string[]) => ({ help, labels })

/**
 * All metrics of dash (docs/monitoring.md), with help and labels; those of the process are prom-client's. Label values are a closed list: route templates, command names
 * and our codes, never input of a caller.
 */
export const METRICS = {
  dash_build_info: metric('Release of dash and of Node.js; always 1.', 'version', 'node'),
  dash_http_requests_total: metric(
    'Completed requests, by route template, method and status class.',
    'route',
    'method',
    'status',
  ),
  dash_http_request_duration_seconds: metric(
    'Time from the arrival of a request to the end of its response.',
    'route',
    'status',
  ),
  dash_http_requests_open: metric('Requests whose response has not ended.'),
  dash_chat_streams_open: metric('Chat answers being streamed.'),
  dash_chat_admissions_total: metric(
    'Chat turns that requested admission, by outcome: normal, degraded, or the scope of the refusal.',
    'outcome',
  ),
  dash_chat_answers_total: metric('Chat turns by source of the answer: the cache or a model.', 'source'),
  dash_chat_turns_total: metric('Completed chat turns, by final event and error code.', 'terminal', 'code'),
  dash_chat_turn_duration_seconds: metric('Time from the admission of a chat turn to its end.', 'terminal'),
  dash_chat_first_text_seconds: metric(
    'Time from the admission of a chat turn to the first text of its answer.',
  ),
  dash_chat_cost_usd_total: metric('Cost of the chat turns of this server, in US dollars.'),
  dash_chat_budget_usd: metric('Chat budget of one UTC day, for all servers together, in US dollars.'),
  dash_chat_budget_spent_usd: metric(
    'Cost of the chat turns of the current UTC day, for all servers together, in US dollars.',
  ),
  dash_chat_budget_reserved_usd: metric(
    'Cost reserved by open chat turns of the current UTC day, for all servers together, in US dollars.',
  ),
  dash_publications: metric('Year publications in both ledgers.'),
  dash_gaps: metric('Days that are permanent gaps.'),
  dash_publication_newest_day_timestamp_seconds: metric('Start of the as-of day of the newest publication.'),
  dash_publication_newest_timestamp_seconds: metric('Time of the newest publication.'),
  dash_snapshot_newest_timestamp_seconds: metric('Time of the newest snapshot of the live feed.'),
  dash_recommendation_timestamp_seconds: metric('Time of the served free-model recommendation.'),
  dash_recommendation_seed: metric('1 if the built-in seed is served instead of a recommendation.'),
  dash_store_up: metric('1 if a store is ready.', 'store'),
  dash_audit_timestamp_seconds: metric('End of the last audit of the archive that had a result.'),
  dash_audit_ok: metric('1 if the last audit read everything it had to read and found no damage.'),
  dash_audit_complete: metric('1 if the last audit read everything it had to read.'),
  dash_audit_whole: metric('1 if the last audit had to read every object.'),
  dash_audit_damage_findings: metric('Damage findings of the last audit.'),
  dash_audit_objects: metric('Objects read by the last audit.'),
  dash_audit_bytes: metric('Bytes read by the last audit.'),
  dash_job_last_run_timestamp_seconds: metric('End of the last run of a command.', 'command'),
  dash_job_last_success_timestamp_seconds: metric(
    'End of the last run of a command with exit code 0; 0 if there is none.',
    'command',
  ),
  dash_job_last_exit_code: metric('Exit code of the last run of a command.', 'command'),
  dash_job_last_duration_seconds: metric('Duration of the last run of a command.', 'command'),
  dash_scrape_source_up: metric('1 if the source of this metric group responded to this scrape.', 'source'),
}

type MetricName = keyof typeof METRICS

/** Values of a metric's labels. */
type Labels = Readonly<Record<string, string>>

/** A value of a gauge. */
export type Sample = readonly [name: MetricName, value: number, labels?: Labels]

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
function counter(registry: Registry, name: MetricName, initialLabels: readonly Labels[] = []): Counter {
  const instrument = new Counter(definitionOf(name, registry))
  for (const labels of initialLabels) instrument.inc({ ...labels }, 0)
  return instrument
}

/** Makes a histogram. @param buckets upper bounds in seconds, ascending */
function histogram(registry: Registry, name: MetricName, buckets: readonly number[]): Histogram {
  return new Histogram({ ...definitionOf(name, registry), buckets: [...buckets] })
}

/** Writes samples in Prometheus' text format. */
export async function exposition(samples: readonly Sample[]): Promise<string> {
  const registry = new Registry()
  for (const [name, value, labels = {}] of samples) {
    const known = registry.getSingleMetric(name) as Gauge | undefined
    const instrument = known ?? new Gauge(definitionOf(name, registry))
    instrument.set({ ...labels }, value)
  }
  return samples.length === 0 ? '' : registry.metrics()
}

/** Metrics collected in this process. */
export interface Meter {
  /** In Prometheus' text format. */
  metrics(): Promise<string>
}

/** The metrics of the Node process, which are prom-client's. @param version release of dash */
export function processMeter(version: string): Meter {
  const register = new Registry()
  collectDefaultMetrics({ register })
  // Gauges must not be named as totals; those by type have the same values.
  for (const kind of ['handles', 'requests', 'resources'])
    register.removeSingleMetric(`nodejs_active_${kind}_total`)
  new Gauge(definitionOf('dash_build_info', register)).set({ version, node: process.versions.node }, 1)
  return register
}

/** Bucket bounds, from a cached file to a chat answer. */
const HTTP_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

const METHODS = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])

/** Counts requests and their durations. */
export interface RequestMeter extends Meter {
  /** Counts a request that has arrived. */
  recordStart(): void
  /** Counts a request whose response ended, or whose client disconnected before a response. */
  recordEnd(request: {
    /** Template of the matched route; `none` if none matched. */
    route: string
    method: string | undefined
    status: number
    hasResponse: boolean
    durationMs: number
  }): void
}

export function requestMeter(): RequestMeter {
  const registry = new Registry()
  const requests = counter(registry, 'dash_http_requests_total')
  const durations = histogram(registry, 'dash_http_request_duration_seconds', HTTP_BUCKETS_SECONDS)
  const open = new Gauge(definitionOf('dash_http_requests_open', registry))
  const methodsByRoute = new Map<string, Set<string>>()
  return {
    recordStart: () => open.inc(),
    recordEnd({ route, method = '', status: code, hasResponse, durationMs }) {
      open.dec()
      const status = hasResponse ? `${Math.floor(code / 100)}xx` : 'left'
      const methodLabel = METHODS.has(method) ? method : 'other'
      const methods = methodsByRoute.get(route) ?? new Set()
      // Start the 5xx counter at 0: Prometheus sees no increase if it appears with its first error.
      if (!methods.has(methodLabel)) requests.inc({ route, method: methodLabel, status: '5xx' }, 0)
      methodsByRoute.set(route, methods.add(methodLabel))
      requests.inc({ route, method: methodLabel, status })
      durations.observe({ route, status }, durationMs / 1000)
    },
    metrics: () => registry.metrics(),
  }
}

const CHAT_BUCKETS_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90]

/** Counts turns of the chat. */
export interface AgentMeter extends Meter {
  recordAdmission(admission: Admission): void
  /** Counts a turn whose stream has started. */
  recordStart(): void
  recordEnd(turn: {
    outcome: TurnOutcome
    /** Null if it ended before the source was known. */
    source: 'cache' | 'own' | null
    firstDeltaMs: number | null
    durationMs: number
    /** Charged cost, in millionths of a US dollar. */
    costMicroUsd: number
  }): void
}

const OUTCOMES = ['normal', 'degraded', 'ip', 'session', 'global-budget']
const SOURCES = ['cache', 'own']

type BoundedCode = Exclude<FailureCode['code'], `http_${number}`> | 'http_4xx' | 'http_5xx'

/** All codes; the compiler reports a missing one. */
const CODES: Readonly<Record<BoundedCode, true>> = {
  first_event: true,
  idle: true,
  total: true,
  connect: true,
  http_4xx: true,
  http_5xx: true,
  truncated: true,
  invalid_stream: true,
  failed: true,
  incomplete: true,
  empty: true,
}

const ENDINGS = [
  ...['done', 'gone'].map((terminal) => ({ terminal, code: '' })),
  ...Object.keys(CODES).map((code) => ({ terminal: 'error', code })),
]

export function agentMeter(): AgentMeter {
  const registry = new Registry()
  const open = new Gauge(definitionOf('dash_chat_streams_open', registry))
  const outcomes = OUTCOMES.map((outcome) => ({ outcome }))
  const admissions = counter(registry, 'dash_chat_admissions_total', outcomes)
  const sources = SOURCES.map((source) => ({ source }))
  const answers = counter(registry, 'dash_chat_answers_total', sources)
  const turns = counter(registry, 'dash_chat_turns_total', ENDINGS)
  const durations = histogram(registry, 'dash_chat_turn_duration_seconds', CHAT_BUCKETS_SECONDS)
  const firstTexts = histogram(registry, 'dash_chat_first_text_seconds', CHAT_BUCKETS_SECONDS)
  const cost = counter(registry, 'dash_chat_cost_usd_total')
  return {
    recordAdmission(admission) {
      admissions.inc({
        outcome: admission.admitted ? (admission.degraded ? 'degraded' : 'normal') : admission.scope,
      })
    },
    recordStart: () => open.inc(),
    recordEnd({ outcome, source, firstDeltaMs, durationMs, costMicroUsd }) {
      open.dec()
      const terminal = outcome.kind
      turns.inc({ terminal, code: outcome.kind === 'error' ? boundedCode(outcome.code) : '' })
      durations.observe({ terminal }, durationMs / 1000)
      if (source !== null) answers.inc({ source })
      if (firstDeltaMs !== null) firstTexts.observe(firstDeltaMs / 1000)
      cost.inc(costMicroUsd / 1_000_000)
    },
    metrics: () => registry.metrics(),
  }
}

/** Replaces a provider's HTTP status by its class, which bounds the number of labels. */
function boundedCode(code: string): string {
  return code.replace(/^http_(\d)\d*$/, 'http_$1xx')
}
