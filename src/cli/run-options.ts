import { InvalidArgumentError } from 'commander';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { Autonomy, Taint } from '../model/decision.ts';
import type { Command as CommandToRun } from '../model/execution-request.ts';
import type { ApproverName } from '../model/policy.ts';
import { PROFILES } from '../policy/profiles/built-in.ts';
import type { OutputLimits } from '../run/output/gap.ts';
import type { RunOptions, SandboxOptions } from '../run/sandbox-options.ts';
import { packageVersion } from '../version.ts';
import { createProgram, parseArguments } from './parse.ts';
import { askOption, autonomyOption, parseTaints } from './policy-options.ts';

/** What the command line of `sandbox-run [options] COMMAND` asks for. */
export interface RunArguments {
  readonly command: CommandToRun;
  readonly sandbox: SandboxOptions;
  readonly approved: boolean;
  readonly taints: readonly Taint[];
  /** On a terminal of its own. */
  readonly tty: boolean;
  /** How output is captured; only with `json`. */
  readonly output: Pick<RunOptions, 'combined' | 'escapes' | 'spill'>;
  readonly json: boolean;
  readonly dryRun: boolean;
  readonly verbose: boolean;
  readonly quiet: boolean;
}

const HELP_AFTER = `
Profiles:
${PROFILES.map((profile) => `  ${profile.name.padEnd(17)} ${profile.summary}`).join('\n')}

Commands:
  approvals         answers what the policy asks, and shows or revokes what is remembered
  audit             reads and verifies the audit trail
  budget            shows or resets the actions of this hour
  check             says what the policy thinks of a command, and runs nothing
  doctor            what this host can enforce, and how to get what is missing
  gate              decides about the commands of agents in containers
  policy            shows, checks and makes policy files
  session           shows what sessions of agents were exposed to

Examples:
  sandbox-run -- git status
  sandbox-run -c 'npm test 2>&1 | tail -20'
  sandbox-run --ro ~/.npm --env NODE_ENV=test -- npm ci --offline
  sandbox-run --profile networked --timeout 300 -- cargo fetch
  sandbox-run --json -c 'make' | jq .status
  sandbox-run -t --timeout 0 -- bash
  sandbox-run --dry-run -- npm test
  sandbox-run --approved -- git push

Exit status: the command's; 128+n if signal n ended it; 124 time-out; 125 sandbox-run
itself failed; 126 refused or not executable; 127 not found.`;

/**
 * Parses the command line; `undefined` if help or the version was printed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseRunArguments(args: readonly string[]): RunArguments | undefined {
  const collect = (value: string, before: string[] = []) => [...before, value];
  const program = createProgram('sandbox-run')
    .usage("[options] [--] COMMAND [ARG...]\n       sandbox-run [options] -c 'SHELL STRING'")
    .description('Runs a command confined to a workspace: by Landlock, seccomp and namespaces.')
    .argument('[command...]', 'the program and its arguments, as they are')
    .passThroughOptions()
    .option('-c, --shell <string>', 'run a shell string under bash')
    .option('--workspace <dir>', 'the directory to work in (default: the current directory)')
    .option('--profile <name>', 'built-in profile (default: workspace-write)')
    .option('--policy <file>', 'policy file (TOML), on top of those of the machine and the user')
    .addOption(autonomyOption())
    .option('--approved', 'you looked at this command: run it though the policy asks')
    .option('--session <id>', 'the session of the agent: what it is exposed to is remembered')
    .addOption(askOption())
    .option('--taint <list>', 'what the session was exposed to: corruption, secret', parseTaints)
    .option('--ro <path>', 'a further path to read and execute from; repeatable', collect)
    .option('--rw <path>', 'a further path to write; repeatable', collect)
    .option('--env <name[=value]>', 'pass a variable, or set it; repeatable', collect)
    .option('--timeout <seconds>', 'end the command after this time; 0: never (default: 60)', parseSeconds)
    .option(
      '--max-output <bytes>',
      'kept of each stream with --json, half from its beginning and half from its end; or HEAD+TAIL (default: 1048576)',
      parseOutputLimit,
    )
    .option('--combined', 'with --json: both streams in stdout, in the order in which they were written')
    .option('--neutralize', 'with --json: no escape sequences and control characters in the output')
    .option('--spill', 'with --json: the whole output in files in the state directory too')
    .option('-t, --tty', 'run on a terminal of its own: for shells, editors and prompts')
    .option('--json', 'print one result object, with captured output, instead of passing it through')
    .option('--dry-run', 'show what would be enforced; nothing runs (with --json: as JSON)')
    .option('-v, --verbose', 'say on standard error what is enforced')
    .option('-q, --quiet', 'no remarks on standard error')
    .version(packageVersion, '--version', 'show the version')
    .addHelpText('after', HELP_AFTER);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return undefined;
  const options = parsed.opts<{
    shell?: string;
    workspace?: string;
    profile?: string;
    policy?: string;
    autonomy?: Autonomy;
    approved?: boolean;
    taint?: readonly Taint[];
    session?: string;
    ask?: ApproverName;
    ro?: string[];
    rw?: string[];
    env?: string[];
    timeout?: number;
    tty?: boolean;
    maxOutput?: number | OutputLimits;
    combined?: boolean;
    neutralize?: boolean;
    spill?: boolean;
    json?: boolean;
    dryRun?: boolean;
    verbose?: boolean;
    quiet?: boolean;
  }>();
  const assignments = (options.env ?? []).filter((entry) => entry.includes('='));
  return {
    command: commandOf(options.shell, parsed.args),
    sandbox: {
      ...(options.workspace === undefined ? {} : { workspace: options.workspace }),
      ...(options.autonomy === undefined ? {} : { autonomy: options.autonomy }),
      ...(options.profile === undefined ? {} : { profile: options.profile }),
      ...(options.session === undefined ? {} : { session: options.session }),
      ...(options.ask === undefined ? {} : { ask: options.ask }),
      ...(options.policy === undefined ? {} : { policy: options.policy }),
      readable: options.ro ?? [],
      writable: options.rw ?? [],
      passEnv: (options.env ?? []).filter((entry) => !entry.includes('=')),
      env: Object.fromEntries(assignments.map(splitAssignment)),
      ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
      ...(options.maxOutput === undefined ? {} : { maxOutput: options.maxOutput }),
    },
    approved: options.approved ?? false,
    taints: options.taint ?? [],
    tty: options.tty ?? false,
    output: outputOptions(options),
    json: options.json ?? false,
    dryRun: options.dryRun ?? false,
    verbose: options.verbose ?? false,
    quiet: options.quiet ?? false,
  };
}

/** The command of `-c STRING` or of the operands. */
export function commandOf(shell: string | undefined, operands: readonly string[]): CommandToRun {
  const [program, ...args] = operands;
  if (shell !== undefined) {
    if (program === undefined) return shell;
    throw new SandboxError(
      'usage.invalid',
      `-c takes one string; "${program}" is left over (quote the whole shell string)`,
    );
  }
  if (program === undefined) {
    throw new SandboxError('usage.invalid', 'no command given (see sandbox-run --help)');
  }
  return [program, ...args];
}

function splitAssignment(entry: string): readonly [string, string] {
  const at = entry.indexOf('=');
  if (at === 0 || entry === '')
    throw new SandboxError('usage.invalid', `--env ${entry}: a name must stand before the =`);
  return [entry.slice(0, at), entry.slice(at + 1)];
}

const MAX_SECONDS = 365 * 24 * 3600;

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() === '' || !(seconds >= 0 && seconds <= MAX_SECONDS)) {
    throw new InvalidArgumentError('it must be a number of seconds from 0 (never) to a year.');
  }
  return Math.round(seconds * 1000);
}

function parseOutputLimit(text: string): number | OutputLimits {
  const [, first, second] = /^(\d{1,15})(?:\+(\d{1,15}))?$/.exec(text) ?? [];
  if (first === undefined)
    throw new InvalidArgumentError('it must be a whole number of bytes, or two with a + between them.');
  return second === undefined ? Number(first) : { head: Number(first), tail: Number(second) };
}

function outputOptions(given: {
  readonly json?: boolean;
  readonly combined?: boolean;
  readonly neutralize?: boolean;
  readonly spill?: boolean;
}): RunArguments['output'] {
  const { json, combined, neutralize, spill } = given;
  const named = Object.entries({ combined, neutralize, spill }).find(([, value]) => value === true)?.[0];
  if (named !== undefined && json !== true) {
    throw new SandboxError(
      'usage.invalid',
      `--${named} is for captured output: it needs --json (without it, the command writes to the terminal itself)`,
    );
  }
  return {
    ...(combined === true ? { combined } : {}),
    ...(neutralize === true ? { escapes: 'neutralize' } : {}),
    ...(spill === true ? { spill } : {}),
  };
}
