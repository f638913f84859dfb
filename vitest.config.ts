import { defineConfig } from 'vitest/config'
import { reporting } from './test/support/reporting.ts'

export default defineConfig({
  test: {
    ...reporting(process.env['DASH_TEST_REPORT']),
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**', 'test/page/**', 'test/remote/**'],
    // Only what hangs is to be ended: a busy machine takes many times as long as an idle one.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    // Most of the suite waits for other processes, so that a worker a core does not keep the cores busy.
    maxWorkers: 3,
  },
})
