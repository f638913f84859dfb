import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**'],
    restoreMocks: true,
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
})
