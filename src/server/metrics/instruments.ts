import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { family, single } from './catalogue.ts'
import type { MetricFamily, MetricName, Sample } from './catalogue.ts'

/** Values of a metric's labels. */
type Labels = Readonly<Record<string, string>>

/** A number that only grows, under each set of labels. */
export interface Counter {
  add(labels: Labels, by?: number): void
  family(): MetricFamily
}

/**
 * @param known sets of labels that are told from the start on: of a counter that appears with its first event Prometheus
 *   sees no increase
 */
export function counter(name: MetricName, known: readonly Labels[] = []): Counter {
  const values = new Map<string, { labels: Labels; value: number }>()
  const add = (labels: Labels, by: number): void => {
    const key = JSON.stringify(labels)
    const found = values.get(key)
    if (found) found.value += by
    else values.set(key, { labels, value: by })
  }
  for (const labels of known) add(labels, 0)
  return {
    add: (labels, by = 1) => add(labels, by),
    family: () => family(name, [...values.values()]),
  }
}

/** How often something took how long, under each set of labels. */
export interface Histogram {
  observe(labels: Labels, seconds: number): void
  family(): MetricFamily
}

/** @param bounds upper bounds of the buckets in seconds, ascending */
export function histogram(name: MetricName, bounds: readonly number[]): Histogram {
  const values = new Map<string, { labels: Labels; buckets: number[]; count: number; sum: number }>()
  return {
    observe(labels, seconds) {
      const key = JSON.stringify(labels)
      const found = values.get(key) ?? { labels, buckets: bounds.map(() => 0), count: 0, sum: 0 }
      values.set(key, found)
      const bucket = bounds.findIndex((bound) => seconds <= bound)
      if (bucket >= 0) found.buckets[bucket] = (found.buckets[bucket] ?? 0) + 1
      found.count += 1
      found.sum += seconds
    },
    family: () =>
      family(
        name,
        [...values.values()].flatMap((value) => samplesOf(value, bounds)),
      ),
  }
}

function samplesOf(
  { labels, buckets, count, sum }: { labels: Labels; buckets: readonly number[]; count: number; sum: number },
  bounds: readonly number[],
): Sample[] {
  let below = 0
  const cumulative = bounds.map((bound, index): Sample => {
    below += buckets[index] ?? 0
    return { suffix: '_bucket', labels: { ...labels, le: String(bound) }, value: below }
  })
  return [
    ...cumulative,
    { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count },
    { suffix: '_sum', labels, value: sum },
    { suffix: '_count', labels, value: count },
  ]
}

const RESOLUTION_MS = 10

/** What Node itself tells of the process; `close` ends the watching of its event loop. */
export interface ProcessMeter {
  families(): MetricFamily[]
  close(): void
}

/** @param version release of dash */
export function processMeter(version: string): ProcessMeter {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  return {
    families() {
      const { user, system } = process.cpuUsage()
      const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
      const lag = (nanoseconds: number): number | null =>
        // Without a timer since the last scrape the histogram tells nonsense.
        delay.count > 0 ? Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000) : null
      const lags = [
        single('nodejs_eventloop_lag_p50_seconds', lag(delay.percentile(50))),
        single('nodejs_eventloop_lag_p99_seconds', lag(delay.percentile(99))),
        single('nodejs_eventloop_lag_max_seconds', lag(delay.max)),
      ]
      delay.reset()
      return [
        family('dash_build_info', [{ labels: { version, node: process.versions.node }, value: 1 }]),
        single('process_cpu_seconds_total', (user + system) / 1e6),
        single('process_resident_memory_bytes', rss),
        single('process_start_time_seconds', Math.round((performance.timeOrigin / 1000) * 1000) / 1000),
        single('process_open_fds', openDescriptors()),
        single('nodejs_heap_size_used_bytes', heapUsed),
        single('nodejs_heap_size_total_bytes', heapTotal),
        single('nodejs_external_memory_bytes', external),
        ...lags,
      ]
    },
    close: () => delay.disable(),
  }
}

/** null where the system does not tell. */
function openDescriptors(): number | null {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return null
  }
}

/** Seconds: from a file in memory to an answer of the chat. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

const METHODS = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])

/** An answer's own end of the connection; only its identity matters. */
type Answer = object

/** Counts requests and what they took. */
export interface RequestMeter {
  /** A request has arrived. */
  begun(): void
  /** The template of the route that answers; null: none does. */
  routed(answer: Answer, template: string | null): void
  /** The template of the route that gave a response, `none` where no route did. */
  routeOf(answer: Answer): string
  /** The answer has ended, or its reader has left before there was one. */
  ended(
    answer: Answer,
    request: { method: string | undefined; status: number; answered: boolean; durationMs: number },
  ): void
  families(): MetricFamily[]
}

export function requestMeter(): RequestMeter {
  const requests = counter('dash_http_requests_total')
  const durations = histogram('dash_http_request_duration_seconds', BOUNDS)
  const templates = new WeakMap<Answer, string>()
  const routeOf = (answer: Answer): string => templates.get(answer) ?? 'none'
  let open = 0
  return {
    begun() {
      open += 1
    },
    routed(answer, template) {
      templates.set(answer, template ?? 'none')
    },
    routeOf,
    ended(answer, { method = '', status, answered, durationMs }) {
      open -= 1
      const route = routeOf(answer)
      const of = answered ? `${Math.floor(status / 100)}xx` : 'left'
      const asked = { route, method: METHODS.has(method) ? method : 'other' }
      // Told from the first answer on: of errors that appear with the first one Prometheus sees no increase.
      requests.add({ ...asked, status: '5xx' }, 0)
      requests.add({ ...asked, status: of })
      durations.observe({ route, status: of }, durationMs / 1000)
    },
    families: () => [requests.family(), durations.family(), single('dash_http_requests_open', open)],
  }
}
