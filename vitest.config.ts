import { defineConfig } from 'vitest/config'
import { reporting } from './test/support/reporting.ts'

export default defineConfig({
  test: {
    ...reporting(process.env['DASH_TEST_REPORT']),
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**', 'test/page/**', 'test/remote/**'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Most of the suite waits for other processes, so that a worker a core does not keep the cores busy.
    maxWorkers: 3,
  },
})
