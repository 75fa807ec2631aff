import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { bundledSources } from './scripts/bundled-sources.mjs';
import { filesOf, PROJECTS } from './scripts/test-projects.mjs';
import { textImportsOfTests } from './scripts/text-imports.mjs';

const { argv } = process;
const isWatching = !argv.includes('run');
/** Asked for by name, `quick` has files of other projects, which stand in their own project else. */
const asksForQuick = argv.some(
  (word, at) => word === '--project=quick' || (word === 'quick' && argv[at - 1] === '--project'),
);

export default defineConfig({
  plugins: [textImportsOfTests, ...(isWatching ? [] : [await bundledSources()])],
  test: {
    globalSetup: ['test/support/state-home.ts'],
    // Most tests wait for processes of their own: with one worker for each processor two thirds of the time are idle.
    maxWorkers: 2 * availableParallelism(),
    // More than the minute that test/support/eventually.ts waits: a test that fails says what it saw.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: Object.keys(PROJECTS).map((name) => ({
      extends: true,
      test: {
        name,
        include: [...filesOf(name, asksForQuick)],
        ...(name === 'quick' && asksForQuick ? { env: { SANDBOX_RUN_TEST_TIERS: 'strongest' } } : {}),
      },
    })),
  },
});
