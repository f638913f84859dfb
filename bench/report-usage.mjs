/**
 * Loaded into a measured Node process with `--import`: at its end it writes the process's peak memory to the
 * file named by BENCH_USAGE_FILE. VmHWM is this process's own; `resourceUsage().maxRSS` would begin at the
 * peak of the parent.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  process.once('exit', () => {
    const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    writeFileSync(process.env.BENCH_USAGE_FILE, JSON.stringify({ peakBytes: Number(kibibytes) * 1024 }))
  })
}
