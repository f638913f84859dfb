import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { family, single } from '../../domain/metrics/catalogue.ts'
import type { MetricFamily } from '../../domain/metrics/exposition.ts'

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
