import { explainProgram } from '../../programs/explain-program.ts';
import { PROGRAM_ROWS } from '../../programs/program-table.ts';

/** What the table says about a program, or a verb of it; without a name, the names of all that it has. */
export function explainProgramText(name: string | undefined, verbs: readonly string[]): string {
  if (name === undefined) {
    const names = PROGRAM_ROWS.flatMap((row) => row.names.split(' ')).sort();
    return names.map((known) => `${known}\n`).join('');
  }
  const base = name.slice(name.lastIndexOf('/') + 1);
  const lines = explainProgram(base, verbs) ?? [
    `${[base, ...verbs].join(' ')}: risk medium, network unknown`,
    '  not in the table: nothing is known of its options, and operands that look like paths are read',
  ];
  return lines.map((line) => `${line}\n`).join('');
}
