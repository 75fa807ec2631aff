import { Option } from 'commander';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { Command as CommandToRun, RunOptions, SandboxOptions, Taint } from '../../model/index.ts';
import { PROFILES } from '../../policy/index.ts';
import { BACKENDS } from '../../run/index.ts';
import { packageVersion } from '../../version.ts';
import {
  addSandboxOptions,
  type SandboxArguments,
  sandboxOptionsOf,
  TAINTS_SEEN,
} from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';

/** Options of `sandbox-run [options] COMMAND`. */
interface Options extends SandboxArguments {
  readonly shell?: string;
  readonly approved?: boolean;
  /** Changes wait instead of being made. */
  readonly preview?: boolean;
  /** A change set that waits, which the command sees. */
  readonly on?: string;
  /** What a hook left for it, approved beforehand. */
  readonly approval?: string;
  /** A ticket which proves that plug-ins were asked about the command. */
  readonly asked?: string;
  readonly taint?: readonly Taint[];
  /** On a terminal of its own. */
  readonly tty?: boolean;
  readonly combined?: boolean;
  readonly neutralize?: boolean;
  readonly spill?: boolean;
  /** Another policy, of which it is told what it would deny. */
  readonly shadow?: string;
  readonly json?: boolean;
  readonly 'json=full'?: boolean;
  readonly dryRun?: boolean;
  readonly verbose?: boolean;
  readonly quiet?: boolean;
  /** By a server that is there already, or for the next time. */
  readonly warm?: boolean;
  /** A model reads what is printed: no escape sequences, not too much, and nothing of how an operator lets something through. */
  readonly forModel?: boolean;
  /** It reads the output while it comes, so nothing of it is left out. */
  readonly live?: boolean;
}

/** What the command line of `sandbox-run [options] COMMAND` asks for. */
export interface RunArguments
  extends Pick<
    Options,
    'approved' | 'approval' | 'asked' | 'dryRun' | 'verbose' | 'forModel' | 'live' | 'warm'
  > {
  readonly command: CommandToRun;
  readonly sandbox: SandboxOptions;
  readonly taints: readonly Taint[];
  readonly tty: boolean;
  /** How output is captured; only with `json`. */
  readonly output: Pick<RunOptions, 'combined' | 'escapes' | 'spill'>;
  /** Where its changes of the workspace go. */
  readonly effect: Pick<RunOptions, 'effect' | 'on'>;
  readonly json: boolean;
  /** With `json`: all of the result. */
  readonly full: boolean;
  readonly quiet: boolean;
}

/** A word of its own: an option that may have a value would take the command for it. */
export const FULL = '--json=full';

const HELP_AFTER = `
Profiles:
${PROFILES.map((profile) => `  ${profile.name.padEnd(17)} ${profile.summary}`).join('\n')}

Backends:
${BACKENDS.map(({ id, summary }) => `  ${id.padEnd(17)} ${summary}`).join('\n')}

Commands:
  approvals         answers what the policy asks, and shows or revokes what is remembered
  audit             reads and verifies the audit trail
  budget            shows or resets the number of actions of this hour
  cache             shows or clears what tools in sandboxes cached, by workspace
  changes           shows, applies, takes back or discards what previews changed
  check             says what the policy thinks of a command, and runs nothing
  completion        prints the completion for bash, fish or zsh
  confined          tells whether the command of an agent that runs it is confined
  doctor            shows what this host can enforce and what is missing; --attack tests it
  examples          shows command lines to copy, by topic
  fleet             shows the workers and jobs of a queue, and what became of a job
  gate              decides about the commands of agents in containers
  help              shows exit statuses, the environment or files
  history           lists what commands changed and can be taken back
  hook              answers the hooks of an agent
  install           puts sandbox-run into an agent's settings, or takes it out
  kept              shows what commands left behind and sandbox-run set aside, or puts it back
  learn             runs a command and proposes the least policy under which it runs
  logs              prints what a service wrote
  mcp               serves agents over the Model Context Protocol
  policy            shows, checks and makes policy files
  ps                shows the services that run
  redo              applies again what was taken back
  restart           starts a service again
  schema            prints the JSON Schemas of the output with --json
  serve             runs commands for programs in any language: JSON-RPC on a socket or pipes
  session           shells that live on, and what sessions of agents were exposed to
  stop              ends services
  submit            hands a command over to the workers of a queue
  trust             trusts what a project’s .sandbox-run.toml asks for
  undo              takes back what the last command changed in the workspace
  untrust           ends that trust
  up                starts a service: a command that goes on, such as a dev server
  worker            runs commands of a queue on this machine

Examples:
  sandbox-run -- git status
  sandbox-run -c 'npm test 2>&1 | tail -20'
  sandbox-run --ro ~/.npm --env NODE_ENV=test -- npm ci --offline
  sandbox-run --profile networked --timeout 300 -- cargo fetch
  sandbox-run --json -c 'make' | jq .status
  sandbox-run -t --timeout 0 -- bash
  sandbox-run --dry-run -- npm test
  sandbox-run --approved -- git push
  sandbox-run --preview -- npm install

Exit status: the command's; 128+n if signal n ended it; 123 a limit was exceeded;
124 time-out; 125 sandbox-run itself failed; 126 refused or not executable; 127 not found.
More: sandbox-run help exit-status, sandbox-run examples`;

/** What most people want, on one screen. */
const SHORT_HELP = `Usage: sandbox-run [options] [--] COMMAND [ARG...]
       sandbox-run [options] -c 'SHELL STRING'

Runs a command that writes this directory, reads the system and reaches no host, unless you say so.
All options, profiles, backends, commands and examples: sandbox-run help all

  --rw PATH, --ro PATH  let it write, or read, a further path
  --net HOST            let it reach a host, or the registry of @npm, @pypi, @crates, ...
  --hide PATTERN        do not show it these files, such as .env or "*.pem"
  --preview             hold back what it changes, to be looked at and applied or not
  --approved            run it even if the policy asks: you looked at it
  --timeout SECONDS     end it after this time (default: 60; 0: never)
  -t                    run it on a terminal of its own: for shells, editors, prompts
  --dry-run             print what would be enforced, and run nothing
  --json                print one result object instead of the output

  install AGENT         put sandbox-run into the settings of an agent, such as claude-code
  learn COMMAND         run it and propose the least policy under which it works
  trust                 let what this project's .sandbox-run.toml asks for hold
  check COMMAND         say what the policy thinks of it, and run nothing
  approvals             answer what waits for a person, see and revoke what was allowed
  up, ps, logs, stop    start a service such as a dev server, see it, read it, end it
  undo, changes         take back what a command changed; apply what a preview held back
  audit, doctor         read what was run and refused; show what this machine can enforce
`;

/**
 * Parses the command line; `undefined` if help or the version was printed. `help`: whether help is all that there is, or fits
 * on one screen.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseRunArguments(
  args: readonly string[],
  help: 'short' | 'all' = 'short',
): RunArguments | undefined {
  const program = createProgram(
    'sandbox-run',
    'Runs a command confined to a workspace: by Landlock, seccomp and namespaces.',
    help === 'all' ? HELP_AFTER : undefined,
  );
  if (help === 'short') program.configureHelp({ formatHelp: () => SHORT_HELP });
  program
    .usage("[options] [--] COMMAND [ARG...]\n       sandbox-run [options] -c 'SHELL STRING'")
    .argument('[command...]', 'the program and its arguments, unchanged')
    .passThroughOptions();
  addSandboxOptions(program)
    .option('-c, --shell <string>', 'run a shell string under bash')
    .option('--approved', 'you looked at this command and approve it: run it even if the policy asks')
    .addOption(new Option('--approval <ticket>', 'what an agent was allowed beforehand').hideHelp())
    .addOption(new Option('--asked <ticket>', 'what plug-ins were asked about beforehand').hideHelp())
    .addOption(new Option('--for-model', 'output and remarks for an agent, not for a person').hideHelp())
    .addOption(new Option('--live', 'with --for-model: the agent reads the output while it comes').hideHelp())
    .option('--preview', 'hold back what it changes in the workspace, to be looked at and applied or not')
    .option('--on <id>', 'preview it on a change set that waits: build and test before you apply')
    .option(...TAINTS_SEEN)
    .option('-t, --tty', 'run on its own terminal: for shells, editors and prompts')
    .option('--combined', 'with --json: both streams in stdout, in the order in which they were written')
    .option('--neutralize', 'with --json: remove escape sequences and control characters from the output')
    .option('--spill', 'with --json: write the whole output to files in the state directory, too')
    .option('--json', 'print one result object with the output in it, instead of the output')
    .option(FULL, 'the same with everything: what is enforced, every reason, what was used')
    .option('--dry-run', 'show what would be enforced; nothing runs (with --json: as JSON)')
    .option(
      '--warm',
      'start sooner: a server in the background runs it, started for the next call if there is none',
    )
    .option(
      '--shadow <file>',
      'run under the policy of today, and tell what the policy in this file would have denied (slower)',
    )
    .option('-v, --verbose', 'print on standard error what is enforced')
    .option('-q, --quiet', 'no remarks on standard error')
    .version(packageVersion, '--version', 'show the version');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return undefined;
  const options = parsed.opts<Options>();
  const { shell, tty = false, 'json=full': full = false, quiet = false } = options;
  const json = options.json === true || full;
  if (shell === undefined) refuseInit(args, parsed.args);
  const command = commandOf(shell, parsed.args);
  const { shadow } = options;
  const sandbox = { ...sandboxOptionsOf(options), ...(shadow === undefined ? {} : { shadow }) };
  const output = outputOptions({ ...options, json });
  const effect = effectOf(options);
  return {
    ...options,
    command,
    sandbox,
    taints: options.taint ?? [],
    tty,
    output,
    effect,
    json,
    full,
    quiet,
  };
}

/** Most hosts have a program called init; a user who wants it names its path. */
function refuseInit(args: readonly string[], operands: readonly string[]): void {
  if (operands[0] !== 'init' || args.at(-1 - operands.length) === '--') return;
  throw new SandboxError(
    'usage.invalid',
    'there is no subcommand init: sandbox-run policy init writes a policy file, sandbox-run install sets up an agent (sandbox-run -- init runs the program)',
  );
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

function effectOf({ preview, on }: Options): RunArguments['effect'] {
  if (on !== undefined) return { effect: 'preview', on };
  return preview === true ? { effect: 'preview' } : {};
}

function outputOptions(given: Options): RunArguments['output'] {
  const { json, combined, neutralize, spill, tty } = given;
  const named = Object.entries({ combined, neutralize, spill, 'max-output': given.maxOutput }).find(
    ([, value]) => value !== undefined,
  )?.[0];
  if (named !== undefined && json !== true) {
    throw new SandboxError(
      'usage.invalid',
      `--${named} is for captured output: it needs --json (without it, the command writes to the terminal itself)`,
    );
  }
  if (tty === true && combined === true) {
    throw new SandboxError(
      'usage.invalid',
      '--combined says nothing with -t: on a terminal both streams are one already; leave it out',
    );
  }
  return {
    ...(combined === true ? { combined } : {}),
    ...(neutralize === true ? { escapes: 'neutralize' } : {}),
    ...(spill === true ? { spill } : {}),
  };
}
