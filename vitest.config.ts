import { defineConfig } from 'vitest/config';
import { textImportsOfTests } from './scripts/text-imports.mjs';

export default defineConfig({
  plugins: [textImportsOfTests],
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/state-home.ts'],
    // vitest leaves one processor to itself, which halves the speed of two. Most tests wait for processes of their own.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
