import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { SandboxOptions } from '../../model/index.ts';
import { backendOption } from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { jsonText, paintFor, printOut, startProgress } from '../shared/print.ts';

const HELP_AFTER = `
Makes a sandbox with the default profile in a temporary directory, runs \`true\` in it, and says what
this host can enforce, what is missing and how to get it.

With --attack it tries to get out of the sandbox instead. It makes the sandbox that a command would get
here, under the policy files of the machine and the user, and carries out about a hundred small attacks in
it. Each attack was first seen to work without a sandbox. The attacks do no harm: they touch only files,
servers and a process that belong to doctor. For each control:
  held         no attack worked
  not covered  an attack worked, and the report does not claim that this control is enforced
  escaped      an attack worked although the report claims that this control is enforced
  failed       an attack could not be carried out, or its result not be seen, so nothing is known
  not tried    no attack works on this machine, even without a sandbox

Examples:
  sandbox-run doctor
  sandbox-run doctor --json | jq '.controls[] | select(.state != "enforced")'
  sandbox-run doctor --json | jq -r '.remedies[].command // empty'
  sandbox-run doctor > /dev/null && echo ready
  sandbox-run doctor --attack
  sandbox-run doctor --attack --profile networked --backend namespaces
  sandbox-run doctor --attack --json | jq '.controls[] | {id, claimed, result, improve}'

Exit status: 0 if the default profile can be enforced, 1 if not, 125 if doctor itself failed.
With --attack: 1 also if an attack escaped, could not be carried out or its result could not be seen.`;

interface DoctorArguments extends Pick<SandboxOptions, 'profile' | 'policy' | 'backend'> {
  readonly json?: boolean;
  readonly attack?: boolean;
}

/** `sandbox-run doctor`: what this host can enforce, and whether that holds. */
export async function doctor(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run doctor',
    'Says what this host can enforce, and how to get what is missing.',
    HELP_AFTER,
  )
    .option('--attack', 'try to get out of the sandbox, and say what held')
    .option('--profile <name>', 'with --attack: built-in profile (default: workspace-write)')
    .option(
      '--policy <file>',
      'with --attack: a policy file (TOML), added to those of the machine and the user',
    )
    .addOption(backendOption())
    .option('--json', 'one JSON object');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { json, attack, ...sandbox } = parsed.opts<DoctorArguments>();
  if (attack === true) {
    const { doctorAttack } = await import('./attack.ts');
    return doctorAttack({ sandbox, json: json === true });
  }
  const [named] = Object.keys(sandbox);
  if (named !== undefined)
    throw new SandboxError('usage.invalid', `--${named} is for --attack (see sandbox-run doctor --help)`);
  const { examineHost } = await import('./examine.ts');
  const progress = startProgress();
  progress.show('trying what this host can enforce');
  const report = await examineHost().finally(() => progress.clear());
  if (json === true) {
    printOut(jsonText(report));
  } else {
    const { doctorTable } = await import('./table.ts');
    printOut(doctorTable(report, paintFor(1)));
  }
  return report.ok ? 0 : 1;
}
