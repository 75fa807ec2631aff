import { readFileSync } from 'node:fs';
import { Argument } from 'commander';
import { ERROR_CODES } from '../../errors/codes.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { EXIT_STATUS } from '../../run/launch/exit-status.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printOut } from '../shared/print.ts';
import { wrap } from '../shared/style.ts';

const WIDTH = 100;

/** A name with what it is for. */
type Row = readonly [name: string, meaning: string];

/** THE table of variables of the environment that `sandbox-run` itself reads. */
const ENVIRONMENT: readonly Row[] = [
  ['HOME', 'Where files of the user are; without it, what the user database says.'],
  ['XDG_CONFIG_HOME', 'Where sandbox-run/policy.toml of the user is (default: ~/.config).'],
  ['XDG_STATE_HOME', 'Where the state directory sandbox-run is made (default: ~/.local/state).'],
  ['PATH', 'Where programs are looked for.'],
  ['TMPDIR', 'Where temporary files of sandbox-run itself are made (default: /tmp).'],
  ['SANDBOX_RUN_GATE', 'The socket that gate check asks, if no option names one.'],
  [
    'SANDBOX_RUN_NATS_CREDS',
    'The file with the credentials for the NATS server of a fleet, if the policy names none.',
  ],
  ['NO_COLOR', 'Unless it is empty, nothing is coloured. Without it, only what is written to a terminal is.'],
  ['TERM', 'If it is dumb, nothing is coloured, and no line is written over.'],
];

/** THE table of files. */
export const FILES: readonly Row[] = [
  ['/etc/sandbox-run/policy.toml', 'The policy of the machine.'],
  ['~/.config/sandbox-run/policy.toml', 'The policy of the user.'],
  ['.sandbox-run.toml', 'In the workspace: can only take away from what the others grant.'],
  [
    '~/.local/state/sandbox-run',
    'State: requests and grants, sessions, the actions of this hour, and the audit trail in audit.',
  ],
];

/** An exit status, as documentation shows it. */
interface ExitStatusRow {
  /** A number, or `128+n`. */
  readonly status: string;
  readonly meaning: string;
  /** Error codes that end with it. */
  readonly codes: readonly string[];
}

/** What each status means; {@link ERROR_CODES} says which error ends with which. */
const MEANINGS: readonly (readonly [status: number, meaning: string])[] = [
  [0, 'The command exited 0; of other subcommands: done, or yes.'],
  [
    1,
    'confined: this process is not confined by sandbox-run. doctor: the default profile cannot be enforced, or an attack escaped. audit: verify found something wrong, show, search or acknowledge nothing.',
  ],
  [EXIT_STATUS.asks, 'check: the policy asks. policy import: something is narrower here.'],
  [11, 'policy import: something would be wider here.'],
  [123, 'The command used more than a limit of the policy allows, and was ended.'],
  [EXIT_STATUS.timedOut, 'The command took longer than its time-out, and was ended.'],
  [125, 'sandbox-run itself failed, or was called wrongly; the command was not run, or its output is lost.'],
  [126, 'The command was refused, or the program cannot be executed. check, gate check: refused.'],
  [127, 'The program was not found.'],
];

/**
 * THE table of exit statuses: the command's own; else one of these. `sandbox-run help exit-status` is made
 * from it, docs/command-line.md and the man page are tested against it.
 */
export function exitStatuses(): readonly ExitStatusRow[] {
  const codesOf = (status: number) =>
    Object.entries(ERROR_CODES)
      .filter(([, { exitStatus }]) => exitStatus === status)
      .map(([code]) => code);
  return [
    ...MEANINGS.map(([status, meaning]) => ({ status: String(status), meaning, codes: codesOf(status) })),
    {
      status: `${EXIT_STATUS.signal}+n`,
      meaning: 'Signal n ended the command; or sandbox-run, before the command was started.',
      codes: [],
    },
  ];
}

const HELP_AFTER = `
What a subcommand does says --help behind its name.

Examples:
  sandbox-run help exit-status
  sandbox-run help environment
  sandbox-run help files

Exit status: 0; 125 if there is no such topic.`;

/** What can be asked about, each with the text of its page. */
const TOPICS: Readonly<Record<string, () => string>> = {
  'exit-status': exitStatusPage,
  environment: () => rows(ENVIRONMENT),
  files: () => rows(FILES),
};

/** `sandbox-run help [TOPIC]`: what holds for every subcommand. */
export async function help(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run help',
    'Shows what holds for every subcommand.',
    HELP_AFTER,
  ).addArgument(new Argument('[topic]', 'what about').choices(Object.keys(TOPICS)));
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [topic] = parsed.args;
  const page = topic === undefined ? undefined : TOPICS[topic];
  if (page === undefined) {
    const { parseRunArguments } = await import('../run/options.ts');
    parseRunArguments(['--help']);
  } else {
    printOut(page());
  }
  return 0;
}

function exitStatusPage(): string {
  const table = exitStatuses().map(({ status, meaning, codes }): readonly [string, string] => [
    status,
    codes.length === 0 ? meaning : `${meaning} Error codes: ${codes.join(', ')}.`,
  ]);
  return `The exit status is that of the command that was run. Otherwise it is:\n\n${rows(table)}`;
}

function rows(table: readonly (readonly [string, string])[]): string {
  const indent = Math.max(...table.map(([name]) => name.length)) + 4;
  return table
    .flatMap(([name, meaning]) =>
      wrap(meaning, WIDTH - indent).map(
        (line, index) => `  ${(index === 0 ? name : '').padEnd(indent - 2)}${line}\n`,
      ),
    )
    .join('');
}

/** THE list of shells that have a completion. */
export const SHELLS = ['bash', 'fish', 'zsh'] as const;

const COMPLETION_HELP = `
The script starts no program: subcommands, options and the words that options take stand in it; files,
directories, variables and programs are completed by the shell itself. The arguments of a program are
completed as files, because its own completion might run something.

Examples:
  source <(sandbox-run completion bash)
  sandbox-run completion bash > ~/.local/share/bash-completion/completions/sandbox-run
  sandbox-run completion zsh > ~/.zfunc/_sandbox-run
  sandbox-run completion fish > ~/.config/fish/completions/sandbox-run.fish

Exit status: 0; 125 wrong usage, or the script is not there.`;

/** `sandbox-run completion SHELL`: prints the script, which was made when sandbox-run was built. */
export async function completion(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run completion',
    'Prints the completion for a shell.',
    COMPLETION_HELP,
  ).addArgument(new Argument('<shell>', 'which one').choices(SHELLS));
  const shell = parseArguments(program, args)?.args[0];
  if (shell === undefined) return 0;
  printOut(scriptFor(shell));
  return 0;
}

function scriptFor(shell: string): string {
  try {
    return readFileSync(new URL(`./completions/sandbox-run.${shell}`, import.meta.url), 'utf8');
  } catch (error) {
    throw new SandboxError(
      'usage.invalid',
      `the completion for ${shell} is missing in this installation; install sandbox-run again, or run npm run build:ts in a checkout`,
      { cause: error },
    );
  }
}
