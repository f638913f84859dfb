/**
 * Loaded with `--import`, writes how long the process kept its event loop from other work into the file named by
 * BENCH_LOOP_FILE: from SIGUSR2 on, until it is told to stop.
 */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const RESOLUTION_MS = 1

if (isMainThread) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  process.once('SIGUSR2', () => delays.enable())
  process.once('SIGTERM', () => {
    delays.disable()
    const above = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
    const figures = { p99: above(delays.percentile(99)), max: above(delays.max) }
    writeFileSync(process.env.BENCH_LOOP_FILE, JSON.stringify(figures))
  })
}
