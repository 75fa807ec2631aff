import { ERROR_CODES } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleText } from '../../base/visible-text.ts';
import { type DecisionRequest, decisionAsJson, decisionOf, refusalOf } from '../../gate/index.ts';
import type { Command, Decision, Reason, Taint, Verdict } from '../../model/index.ts';
import { boundariesOf, type Checker, createChecker, EXIT_STATUS, refusalForModel } from '../../run/index.ts';
import { commandOf } from '../run/options.ts';
import { caller } from '../shared/caller.ts';
import {
  backendOption,
  POLICY_FILE,
  policyOptions,
  type SandboxArguments,
  sandboxOptionsOf,
  TAINTS_SEEN,
} from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { jsonLine, moodOf, type Paint, paintFor, printError, printOut } from '../shared/print.ts';
import type { DecisionAnswer } from './batch.ts';

/** Exit statuses of `check`. */
const EXIT: Readonly<Record<Verdict, number>> = {
  allow: 0,
  ask: EXIT_STATUS.asks,
  deny: ERROR_CODES['command.denied'].exitStatus,
};

const HELP_AFTER = `
With --batch, standard input has one JSON object per line, and so has standard output, in the same
order: {"id"?, "command", "autonomy"?, "taint"?, "approved"?, "cwd"?} becomes
{"id", "verdict", "risk", "reach", "reasons": [{"check", "verdict", "code", "message"}]}.
"command" is a shell string or an array of arguments. A check that has nothing to say has the verdict
null. A line that cannot be judged becomes {"id", "error"}; the exit status is then 125.

Examples:
  sandbox-run check -c 'git push origin main'
  sandbox-run check -v -- rm -r build
  sandbox-run check --autonomy autonomous -- rm -r build
  sandbox-run check --taint corruption,secret -c 'curl https://example.org'
  sandbox-run check --batch < commands.jsonl | jq -r '[.id, .verdict] | @tsv'

Exit status: 0 allowed, 10 the policy asks, 126 refused, 125 check itself failed.
With --batch: 0 if every line was judged.`;

interface Options extends Pick<SandboxArguments, 'workspace' | 'backend' | 'policy'> {
  readonly shell?: string;
  readonly cwd?: string;
  readonly approved?: boolean;
  readonly taint?: readonly Taint[];
  readonly verbose?: boolean;
  readonly json?: boolean;
  readonly batch?: boolean;
}

/** `sandbox-run check`: what the policy thinks of a command. */
export async function check(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run check',
    'Says what the policy thinks of a command, and what objects to it. Nothing is run.',
    HELP_AFTER,
  )
    .usage("[options] [--] COMMAND [ARG...]\n       sandbox-run check [options] -c 'SHELL STRING'")
    .argument('[command...]', 'the program and its arguments, unchanged')
    .passThroughOptions()
    .option('-c, --shell <string>', 'a shell string')
    .option('--workspace <dir>', 'the directory to work in (default: the current directory)')
    .addOption(backendOption())
    .option(...POLICY_FILE)
    .option('--cwd <dir>', 'where the command starts (default: the workspace)')
    .option('--approved', 'judge it as if a person had approved the risk')
    .option(...TAINTS_SEEN)
    .option('-v, --verbose', 'every check, also those that do not object')
    .option('--json', 'one JSON object, with every check in it')
    .option('--batch', 'JSON lines from standard input to standard output');
  for (const { option } of policyOptions()) program.addOption(option);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { shell, verbose, json, batch, cwd, approved, taint: taints, ...said } = parsed.opts<Options>();
  const sandbox = sandboxOptionsOf(said);
  if (batch === true && (shell !== undefined || parsed.args.length > 0))
    throw new SandboxError('usage.invalid', 'check --batch takes its commands from standard input');
  const command = batch === true ? '' : commandOf(shell, parsed.args);
  const checker = await createChecker(sandbox, caller(), { guards: true });
  if (checker.unenforceable !== undefined)
    printError(
      `warning: nothing could be run here, and no enforcement is counted on: ${checker.unenforceable}`,
    );
  const request: DecisionRequest = { command, approved, taints, cwd };
  const answer: DecisionAnswer = (judged, decision) => ({
    ...decisionAsJson(decision),
    messageForModel: adviceFor(judged, decision, checker),
  });
  try {
    if (batch === true) {
      const { checkBatch } = await import('./batch.ts');
      const parts = { decide: checker.decide, defaults: request, answer };
      return await checkBatch(parts, process.stdin, process.stdout);
    }
    const decision = decisionOf(await checker.decide(request));
    const shown = decision.reasons.filter(({ verdict }) => verbose === true || objects(verdict));
    printOut(
      json === true
        ? jsonLine(answer(command, decision))
        : describe({ ...decision, reasons: shown }, paintFor(1)),
    );
    return EXIT[decision.verdict];
  } finally {
    await checker.close();
  }
}

/** What a model would be told of a command that does not run. */
function adviceFor(command: Command, decision: Decision, { plan }: Checker): string | undefined {
  const refusal = refusalOf(decision, false);
  if (refusal === undefined) return undefined;
  return refusalForModel({ command, ...refusal, decision }, plan && boundariesOf(plan));
}

const objects = (verdict: Reason['verdict']) => verdict === 'ask' || verdict === 'deny';

function describe({ verdict, risk, reach, reasons }: Decision, paint: Paint): string {
  const row = (reason: Reason) =>
    `  ${paint(moodOf(reason.verdict), (reason.verdict ?? '-').padEnd(6))} ${reason.check.padEnd(12)} ${reason.code.padEnd(18)} ${visibleText(reason.message)}\n`;
  return `${paint(moodOf(verdict), verdict)}  (risk ${risk}, reach ${reach})\n${reasons.map(row).join('')}`;
}
