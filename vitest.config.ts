import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/state-home.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
