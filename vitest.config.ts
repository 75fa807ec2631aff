import { defineConfig } from 'vitest/config';
import { bundledSources } from './scripts/bundled-sources.mjs';
import { textImportsOfTests } from './scripts/text-imports.mjs';

const isWatching = !process.argv.includes('run');

export default defineConfig({
  plugins: [textImportsOfTests, ...(isWatching ? [] : [await bundledSources()])],
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/state-home.ts'],
    // vitest leaves one processor to itself, which halves the speed of two. Most tests wait for processes of their own.
    maxWorkers: '100%',
    // More than the minute that test/support/eventually.ts waits: a test that fails says what it saw.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
