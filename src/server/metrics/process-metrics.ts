import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { family, single } from '../../domain/metrics/catalogue.ts'
import type { MetricFamily } from '../../domain/metrics/exposition.ts'

const NANOSECONDS = 1e9

/** What Node itself tells of the process; `close` ends the watching of its event loop. */
export interface ProcessMeter {
  families(): MetricFamily[]
  close(): void
}

/** @param version release of dash */
export function processMeter(version: string): ProcessMeter {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  return {
    families() {
      const { user, system } = process.cpuUsage()
      const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
      const lags = [
        // Without a delay since the last scrape the histogram tells nonsense.
        single(
          'nodejs_eventloop_lag_p50_seconds',
          delay.count > 0 ? delay.percentile(50) / NANOSECONDS : null,
        ),
        single(
          'nodejs_eventloop_lag_p99_seconds',
          delay.count > 0 ? delay.percentile(99) / NANOSECONDS : null,
        ),
        single('nodejs_eventloop_lag_max_seconds', delay.count > 0 ? delay.max / NANOSECONDS : null),
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
