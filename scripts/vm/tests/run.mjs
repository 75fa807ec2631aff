// Runs bundled test files one after the other: node run.mjs REPORTS FILE...; or loads them without running them: node run.mjs
// --collect FILE... One process for several, as its start takes seconds where a processor is emulated. In the directory
// REPORTS each file that was run to its end has a report: JSON, a row per test with what became of it and what the
// enforcement report said about its control.

import { subscribe } from 'node:diagnostics_channel';
import { renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { collectTests, getCurrentTest, startTests } from '@vitest/runner';
import { getTests } from '@vitest/runner/utils';

const collect = process.argv[2] === '--collect';
const [reports, ...paths] = process.argv.slice(2);
/** The machine is ten to thirty times as slow as a real one. */
const PATIENCE_MS = 120_000;

const runner = {
  config: {
    root: '/',
    setupFiles: [],
    name: undefined,
    passWithNoTests: true,
    allowOnly: false,
    sequence: { seed: 1, hooks: 'stack', setupFiles: 'list' },
    maxConcurrency: 1,
    testTimeout: PATIENCE_MS,
    hookTimeout: PATIENCE_MS,
    retry: 0,
    tags: [],
    strictTags: false,
  },
  importFile: (path) => import(path),
};

/** By test: whether it used a sandbox, and the controls that its report did not call enforced. */
const notes = new Map();
const noteOf = (test) => {
  const note = notes.get(test) ?? { sandboxed: false, reported: [] };
  notes.set(test, note);
  return note;
};
subscribe('sandbox-run:test:sandbox', () => {
  const test = getCurrentTest();
  if (test !== undefined) noteOf(test).sandboxed = true;
});
subscribe('sandbox-run:test:control', ({ id, state }) => {
  const test = getCurrentTest();
  if (test !== undefined && state !== 'enforced' && state !== 'off')
    noteOf(test).reported.push(`${id}: ${state}`);
});

const errorsOf = (task) => (task.result?.errors ?? []).map(({ name, message }) => ({ name, message }));
const nameOf = (task) =>
  task.suite === undefined || task.suite === task.file ? task.name : `${nameOf(task.suite)} › ${task.name}`;
/** Errors of hooks and of the file itself, which no test has. */
const suiteErrors = (suite) => [
  ...errorsOf(suite),
  ...suite.tasks.filter(({ type }) => type === 'suite').flatMap(suiteErrors),
];

if (collect) {
  const files = await collectTests(specificationsOf(paths), runner);
  const errors = files.flatMap(errorsOf);
  if (errors.length > 0) console.error(JSON.stringify(errors));
  process.exitCode = errors.length > 0 ? 1 : 0;
} else {
  for (const path of paths) {
    console.error(`# ${basename(path)}`);
    const files = await startTests(specificationsOf([path]), runner);
    const tests = getTests(files).map((test) => ({
      name: nameOf(test),
      state: test.result?.state ?? test.mode,
      ms: Math.round(test.result?.duration ?? 0),
      errors: errorsOf(test),
      ...noteOf(test),
    }));
    const report = join(reports, basename(path));
    writeFileSync(
      `${report}.part`,
      JSON.stringify({ file: basename(path, '.mjs'), tests, errors: files.flatMap(suiteErrors) }),
    );
    renameSync(`${report}.part`, report);
  }
}
process.exit();

function specificationsOf(files) {
  return files.map((filepath) => ({ filepath }));
}
