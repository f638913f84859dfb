import { defineConfig } from 'vitest/config'
import { reporting } from './test/support/reporting.ts'

/** The rest of what needs only Node and npm: suites that start processes, replace modules, or take their time. */
export default defineConfig({
  test: {
    ...reporting(process.env['DASH_TEST_REPORT']),
    globalSetup: 'test/support/compiled-sources.ts',
    include: ['test/**/*.slow.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    // Most of these wait for other processes, so that a worker a core does not keep the cores busy.
    maxWorkers: 3,
  },
})
