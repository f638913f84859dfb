import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Registry } from 'prom-client'
import { counter, exposition, gauge, histogram } from './catalogue.ts'
import type { Sample } from './catalogue.ts'

/** Metrics collected in this process. */
export interface Meter {
  /** In Prometheus' text format. */
  metrics(): Promise<string>
}

const RESOLUTION_MS = 10

/** Metrics of the Node process; `close` stops the event loop monitor. */
export interface ProcessMeter extends Meter {
  close(): void
}

/** Starts measuring the process. @param version release of dash */
export function processMeter(version: string): ProcessMeter {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  return {
    async metrics() {
      const { user, system } = process.cpuUsage()
      const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
      const lag = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000)
      const labels = { version, node: process.versions.node }
      const samples: Sample[] = [
        ['dash_build_info', 1, labels],
        ['process_cpu_seconds_total', (user + system) / 1e6],
        ['process_resident_memory_bytes', rss],
        ['process_start_time_seconds', Math.round(performance.timeOrigin) / 1000],
        ...openDescriptors(),
        ['nodejs_heap_size_used_bytes', heapUsed],
        ['nodejs_heap_size_total_bytes', heapTotal],
        ['nodejs_external_memory_bytes', external],
      ]
      // The histogram is invalid if no timer fired since the last scrape.
      if (delay.count > 0)
        samples.push(
          ['nodejs_eventloop_lag_p50_seconds', lag(delay.percentile(50))],
          ['nodejs_eventloop_lag_p99_seconds', lag(delay.percentile(99))],
          ['nodejs_eventloop_lag_max_seconds', lag(delay.max)],
        )
      delay.reset()
      return exposition(samples)
    },
    close: () => delay.disable(),
  }
}

/** Empty if the system does not provide the number. */
function openDescriptors(): Sample[] {
  try {
    return [['process_open_fds', readdirSync('/proc/self/fd').length]]
  } catch {
    return []
  }
}

/** Bucket bounds, from a cached file to a chat answer. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

const METHODS = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])

/** A request whose response ended, or whose client disconnected before a response. */
interface EndedRequest {
  /** Template of the matched route; `none` if none matched. */
  route: string
  method: string | undefined
  status: number
  hasResponse: boolean
  durationMs: number
}

/** Counts requests and their durations. */
export interface RequestMeter extends Meter {
  /** Counts a request that has arrived. */
  recordStart(): void
  recordEnd(request: EndedRequest): void
}

export function requestMeter(): RequestMeter {
  const registry = new Registry()
  const requests = counter(registry, 'dash_http_requests_total')
  const durations = histogram(registry, 'dash_http_request_duration_seconds', BUCKETS_SECONDS)
  const open = gauge(registry, 'dash_http_requests_open')
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
