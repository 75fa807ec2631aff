import { createProgram, parseArguments } from './parse.ts';
import { printOut } from './print.ts';

const HELP_AFTER = `
Makes a sandbox with the default profile in a temporary directory, runs \`true\` in it, and says what
this host can enforce, what is missing and how to get it.

Examples:
  sandbox-run doctor
  sandbox-run doctor --json | jq '.controls[] | select(.state != "enforced")'
  sandbox-run doctor --json | jq -r '.remedies[].command // empty'
  sandbox-run doctor > /dev/null && echo ready

Exit status: 0 if the default profile can be enforced, 1 if not, 125 if doctor itself failed.`;

/** `sandbox-run doctor`: what this host can enforce. */
export async function doctor(args: readonly string[]): Promise<number> {
  const program = createProgram('sandbox-run doctor')
    .description('Says what this host can enforce, and how to get what is missing.')
    .option('--json', 'one JSON object')
    .allowExcessArguments(false)
    .addHelpText('after', HELP_AFTER);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { examineHost } = await import('./doctor-examine.ts');
  const report = await examineHost();
  if (parsed.opts<{ json?: boolean }>().json === true) {
    printOut(`${JSON.stringify(report, null, 2)}\n`);
  } else {
    const { doctorTable } = await import('./doctor-table.ts');
    printOut(doctorTable(report, process.stdout.isTTY && !process.env.NO_COLOR));
  }
  return report.ok ? 0 : 1;
}
