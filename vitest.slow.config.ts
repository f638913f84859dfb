import { defineConfig } from 'vitest/config'
import { reporting } from './test/support/reporting.ts'

/** The rest of what needs only Node and npm: suites that start processes, or take their time. */
export default defineConfig({
  test: {
    ...reporting(process.env['DASH_TEST_REPORT']),
    globalSetup: ['test/support/memory-folder.ts', 'test/support/compiled-sources.ts'],
    include: ['test/**/*.slow.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    // As in the main suite, modules are imported once a worker.
    isolate: false,
    // Most of these wait for other processes, so that a worker a core does not keep the cores busy.
    maxWorkers: 3,
  },
})
