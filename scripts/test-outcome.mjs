// What a run of the tests comes to: the closing lines, and whether it is green.

/** More tests than this that passed only when they were run once more alone are a failure. */
export const MOST_FLAKY = 2;

/**
 * `runs`: one for each user, `{ user, status, files: [{ project, file, seconds, passed, skipped, failures }], unhandled }`.
 * `flaky`: files that passed when they were run once more alone. `noted`: a line for each such test, also of runs before this
 * one. Returns `{ rows, lines, isGreen }`: the table of projects, what is printed after it, and the outcome.
 */
export function outcomeOf({ runs, flaky = [], noted = [], lacking = [] }) {
  const files = runs.flatMap(({ user, files: some }) => some.map((file) => ({ ...file, user })));
  const isFlaky = (one) => flaky.some(({ file, user }) => file === one.file && user === one.user);
  const failed = files.filter(({ failures }) => failures.length > 0);
  const unhandled = runs.flatMap((run) => run.unhandled);
  // vitest may fail for what no file and no error tells; that is not green either.
  const isUnexplained = runs.some(
    ({ status, ...run }) =>
      status !== 0 && run.unhandled.length === 0 && run.files.every(({ failures }) => failures.length === 0),
  );
  const isRed =
    failed.some((one) => !isFlaky(one)) || unhandled.length > 0 || isUnexplained || files.length === 0;
  const sum = (value) => files.reduce((total, file) => total + value(file), 0);
  const lines = [
    'slowest files:',
    ...files
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, 10)
      .map(({ file, user, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file} (${user})`),
    ...notRun(lacking),
    ...failed.flatMap(({ file, user, failures }) =>
      failures.map((test) => `failed: ${file} (${user}): ${test}`),
    ),
    ...unhandled.map((message) => `failed: outside of a test: ${message}`),
    ...(isUnexplained ? ['failed: vitest did not end well, and said no more'] : []),
    ...(files.length === 0 ? ['failed: no file was run'] : []),
    `${sum(({ passed }) => passed)} passed, ${isRed ? Math.max(1, sum(countOfFailures(isFlaky))) : 0} failed, ${sum(({ skipped }) => skipped)} skipped`,
    ...noted.map((line) => `flaky: ${line}`),
    ...(noted.length > 0 ? [`flaky tests: ${noted.length}, ${MOST_FLAKY} are let pass`] : []),
  ];
  return { rows: rowsOf(files), lines, isGreen: !isRed && noted.length <= MOST_FLAKY };
}

const countOfFailures = (isFlaky) => (file) => (isFlaky(file) ? 0 : file.failures.length);

function rowsOf(files) {
  const rows = {};
  for (const { project, user, seconds, passed, skipped, failures } of files) {
    const name = `${project}, ${user}`;
    rows[name] ??= { files: 0, tests: 0, failed: 0, skipped: 0, seconds: 0 };
    const row = rows[name];
    row.files += 1;
    row.tests += passed + failures.length;
    row.failed += failures.length;
    row.skipped += skipped;
    row.seconds += seconds;
  }
  for (const row of Object.values(rows)) row.seconds = Math.round(row.seconds);
  return rows;
}

/** `lacking`: `[program, file]` of tests that were left out (test/support/programs.ts). One line, or none. */
function notRun(lacking) {
  const byProgram = new Map();
  for (const [program, file] of lacking)
    byProgram.set(program, (byProgram.get(program) ?? new Set()).add(file));
  const told = [...byProgram].map(([program, users]) => `${program} (${[...users].join(', ')})`);
  return told.length === 0 ? [] : [`not run, because a program is not there: ${told.join('; ')}`];
}
