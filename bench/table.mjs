// Plain text output.

export function printTable(title, header, rows) {
  const cells = [header, ...rows].map((row) => row.map((cell) => (cell === undefined ? '' : String(cell))));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const line = (row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])))
      .join('  ');
  console.log(`\n${title}\n`);
  console.log(`  ${line(cells[0])}`);
  console.log(`  ${widths.map((width) => '-'.repeat(width)).join('  ')}`);
  for (const row of cells.slice(1)) console.log(`  ${line(row)}`);
}

export function milliseconds(value, digits = 2) {
  return value === undefined ? undefined : value.toFixed(digits);
}

export const times = (value) => `${value.toFixed(2)} x`;

/** goals: {what, limit, value, unit, atLeast}[] */
export function printGoals(goals) {
  const rows = goals.map(({ what, limit, value, unit, atLeast }) => {
    const holds = atLeast ? value >= limit : value <= limit;
    return [
      what,
      `${atLeast ? '>=' : '<='} ${limit}${unit}`,
      `${value.toFixed(value < 10 ? 2 : 0)}${unit}`,
      holds ? 'yes' : 'NO',
    ];
  });
  printTable('Goals', ['goal', 'wanted', 'measured', 'holds'], rows);
}
