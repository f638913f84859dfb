import { defineConfig } from 'vitest/config'
import { reporting } from './test/support/reporting.ts'

export default defineConfig({
  test: {
    ...reporting(process.env['DASH_TEST_REPORT']),
    globalSetup: ['test/support/memory-folder.ts', 'test/support/compiled-sources.ts'],
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/**/*.slow.test.ts',
      'test/faults/**',
      'test/judges/**',
      'test/nightly/**',
      'test/ops/**',
      'test/page/**',
      'test/remote/**',
      'test/terminal/**',
    ],
    // Only what hangs is to be ended: a busy machine takes many times as long as an idle one.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    // Modules hold no state, so that they are imported once a worker. No suite replaces a module.
    isolate: false,
    // More workers than cores import every module once more, and gain nothing: files are in memory.
    maxWorkers: '100%',
  },
})
