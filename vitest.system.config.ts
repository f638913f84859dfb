import { defineConfig } from 'vitest/config'
import { reporting } from './test/support/reporting.ts'

/** Suites that need more than Node and npm: strace and a tmpfs (faults), a browser (page), servers (remote), tmux (terminal), packages to download (installed), the programs that read what operators are given (ops), Go (judges). One file at a time, but two of `page`, whose files wait for the browser most of the time. */
export default defineConfig({
  test: {
    ...reporting(process.env['DASH_TEST_REPORT']),
    globalSetup: ['test/support/memory-folder.ts', 'test/support/compiled-sources.ts'],
    include: [
      'test/faults/**/*.test.ts',
      'test/installed/**/*.test.ts',
      'test/judges/**/*.test.ts',
      'test/ops/**/*.test.ts',
      'test/page/**/*.test.ts',
      'test/remote/**/*.test.ts',
      'test/terminal/**/*.test.ts',
    ],
    // A page needs more than the default second where other suites keep the cores busy.
    expect: { poll: { timeout: 60_000 } },
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 300_000,
  },
})
