import { defineConfig } from 'vitest/config'
import { reporting } from './test/support/reporting.ts'

/** True for the suites of every night: the long forms of the attacks, and what costs much and finds little. */
const nightly = process.env['DASH_NIGHTLY'] === '1'

/**
 * Suites that need more than Node and npm: strace and a tmpfs (faults), a browser (page), servers (remote), tmux
 * (terminal), the programs that read what operators are given (ops), Go (judges), packages to download (nightly).
 */
export default defineConfig({
  test: {
    ...reporting(process.env['DASH_TEST_REPORT']),
    globalSetup: ['test/support/memory-folder.ts', 'test/support/compiled-sources.ts'],
    include: [
      'test/faults/**/*.test.ts',
      'test/judges/**/*.test.ts',
      'test/ops/**/*.test.ts',
      'test/page/**/*.test.ts',
      'test/remote/**/*.test.ts',
      'test/terminal/**/*.test.ts',
      ...(nightly ? ['test/nightly/**/*.test.ts'] : []),
    ],
    // A page needs more than the default second where other suites keep the cores busy.
    expect: { poll: { timeout: 60_000 } },
    // The long forms count races on a machine of their own; the others mostly wait for other processes.
    fileParallelism: !nightly,
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 300_000,
  },
})
