// What was found, as tables.

/** Which controls held: one line per control, one column per mode. */
export function controlsTable(results) {
  const ids = [...new Set(results.flatMap((result) => controlsOf(result).map(({ id }) => id)))];
  const rows = ids.map((id) => [
    id,
    ...results.map((result) => wordOf(controlsOf(result).find((control) => control.id === id))),
  ]);
  return table([['control', ...results.map(({ mode }) => mode)], ...rows]);
}

/** How many tests there were of each kind in each mode. */
export function figuresTable(results) {
  const rows = results.flatMap(({ mode, suites }) =>
    suites.map((suite) => [mode, suite.name, suite.passed, suite.failed, suite.skipped].map(String)),
  );
  return table([['mode', 'tests', 'passed', 'failed', 'skipped'], ...rows]);
}

/** Attacked controls are better known than claimed ones. */
function controlsOf({ attack, doctor }) {
  return attack?.controls ?? doctor?.controls ?? [];
}

function wordOf(control) {
  return control?.result ?? control?.state ?? '-';
}

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
