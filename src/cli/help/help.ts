import { readFileSync } from 'node:fs';
import { Argument } from 'commander';
import { ERROR_CODES } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { EXIT_STATUS } from '../../run/index.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { paintFor, printOut, wrap } from '../shared/print.ts';

const WIDTH = 100;

/** A name with what it is for; what is done, with the line that does it. */
type Row = readonly [string, string];

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
  [
    '.sandbox-run.toml',
    'In the workspace: takes away from what the others grant; what it asks for holds once trusted (trust).',
  ],
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
  [
    EXIT_STATUS.timedOut,
    'The command took longer than its time-out, and was ended. up: the service is not ready in time, and goes on.',
  ],
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
What a subcommand does says --help behind its name, or help in front of it.

Examples:
  sandbox-run help all
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

/** Everything of `sandbox-run` itself. */
const ALL = 'all';

/** `sandbox-run help [TOPIC]`: what holds for every subcommand. */
export async function help(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run help',
    'Shows what holds for every subcommand.',
    HELP_AFTER,
  ).addArgument(new Argument('[topic]', 'what about').choices([ALL, ...Object.keys(TOPICS)]));
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [topic] = parsed.args;
  const page = topic === undefined ? undefined : TOPICS[topic];
  if (page === undefined) {
    const { parseRunArguments } = await import('../run/options.ts');
    parseRunArguments(['--help'], topic === ALL ? 'all' : 'short');
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

/**
 * THE list of `sandbox-run examples`, by topic. Each line is parsed by a test with the parser that
 * a user's line meets.
 */
export const EXAMPLE_LINES: Readonly<Record<string, readonly Row[]>> = {
  run: [
    ['A program with its arguments, confined to the current directory', 'sandbox-run -- git status'],
    ['A shell string', "sandbox-run -c 'npm test 2>&1 | tail -20'"],
    [
      'A further directory to read, and a variable',
      'sandbox-run --ro ~/.npm --env NODE_ENV=test -- npm ci --offline',
    ],
    [
      'Less memory, less time, fewer processes',
      'sandbox-run --memory 512M --timeout 300 --max-processes 64 -- make -j4',
    ],
    ['Without what the workspace has of secrets', "sandbox-run --hide .env --hide '*.pem' -- npm test"],
    ['With the network', 'sandbox-run --profile networked -- cargo fetch'],
    ['On a terminal of its own', 'sandbox-run -t --timeout 0 -- bash'],
    ['The result as one JSON object', "sandbox-run --json -c 'make' | jq .status"],
    ['Show what would be enforced, run nothing', 'sandbox-run --dry-run -- npm test'],
  ],
  check: [
    ['What the policy thinks of a command', "sandbox-run check -c 'git push origin main'"],
    ['The same for an agent that works alone', 'sandbox-run check --autonomy autonomous -- rm -r build'],
    [
      'The same after something untrusted was read',
      "sandbox-run check --taint corruption,secret -c 'curl https://example.org'",
    ],
    ['Many commands, one JSON object per line', 'sandbox-run check --batch < commands.jsonl'],
  ],
  policy: [
    ['Write a commented policy file', 'sandbox-run policy init'],
    ['Every value in force, and where it comes from', 'sandbox-run policy show --explain'],
    ['Look for mistakes in a file', 'sandbox-run policy validate .sandbox-run.toml'],
    ['A JSON Schema for editors', 'sandbox-run policy schema > policy.schema.json'],
  ],
  approvals: [
    ['What waits for an answer', 'sandbox-run approvals list'],
    ['All that is known of a request', 'sandbox-run approvals show 5c1f0e9b7a3d48c2f6e0b1a9'],
    [
      'Allow it for the rest of its session',
      'sandbox-run approvals approve 5c1f0e9b7a3d48c2f6e0b1a9 --scope session',
    ],
    ['Answer requests as they come', 'sandbox-run approvals watch'],
    ['Queue what the policy asks, and wait', 'sandbox-run --ask queue -- git push'],
  ],
  audit: [
    ['The last records, and those that come', 'sandbox-run audit tail -f'],
    ['What was refused in the last two hours', 'sandbox-run audit search --verdict deny --since 2h'],
    ['Everything about one request', 'sandbox-run audit show 1042'],
    ['Whether anything was changed', 'sandbox-run audit verify'],
  ],
  session: [
    ['Start a shell that lives on', 'sandbox-run session start --name build'],
    ['Run a command in it', "sandbox-run session run build -- 'cd src && make'"],
    ['End it', 'sandbox-run session stop build'],
    [
      'Remember what an agent was exposed to, from command to command',
      'sandbox-run --session fix-the-build -- cat README.md',
    ],
    [
      'Note an exposure that no command shows',
      "sandbox-run session taint fix-the-build secret --reason 'the key was pasted'",
    ],
  ],
  services: [
    [
      'Start a dev server that goes on, and wait until it is ready',
      'sandbox-run up web --ready 5173 -- npm run dev',
    ],
    ['What runs, and where', 'sandbox-run ps'],
    ['Reach it, in the same workspace', 'sandbox-run -- curl localhost:5173'],
    ['Read what it writes', 'sandbox-run logs -f web'],
    ['End it', 'sandbox-run stop web'],
  ],
  gate: [
    [
      'Decide for agents in containers',
      'sandbox-run gate serve --socket /run/user/1000/gate.sock --workspace ~/project',
    ],
    ['Ask from inside', "sandbox-run gate check --socket /gate.sock -c 'git push'"],
  ],
  fleet: [
    [
      'Run commands of a queue on this machine',
      'sandbox-run worker --queue builds --slots 4 --workspace ~/builds',
    ],
    ['Hand one over and wait', 'sandbox-run submit --queue builds --wait -- make test'],
    [
      'On what is committed here, again if its worker dies',
      "sandbox-run submit --queue builds --workspace-from git:. --retry 1 --wait -c 'npm ci && npm test'",
    ],
    ['Workers, slots and jobs', 'sandbox-run fleet status --queue builds'],
    ['Answer what workers ask about', 'sandbox-run fleet approvals watch'],
  ],
  doctor: [
    ['What this host can enforce', 'sandbox-run doctor'],
    ['Try to get out, and say what held', 'sandbox-run doctor --attack'],
    ['The same for a weaker backend', 'sandbox-run doctor --attack --backend application'],
  ],
};

const HELP_OF_EXAMPLES = `
Examples:
  sandbox-run examples
  sandbox-run examples session

Exit status: 0; 125 if there is no such topic.`;

/** `sandbox-run examples [TOPIC]`: command lines to copy. */
export async function examples(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run examples',
    'Shows command lines to copy, by topic. Nothing is run.',
    HELP_OF_EXAMPLES,
  ).addArgument(new Argument('[topic]', 'only those of one topic').choices(Object.keys(EXAMPLE_LINES)));
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [wanted] = parsed.args;
  const paint = paintFor(1);
  const topics = Object.entries(EXAMPLE_LINES)
    .filter(([topic]) => wanted === undefined || topic === wanted)
    .map(([topic, lines]) => {
      const shown = lines.map(([does, line]) => `  ${paint('faint', `# ${does}`)}\n  ${line}\n`);
      return `${paint('strong', topic)}\n${shown.join('')}`;
    });
  printOut(topics.join('\n'));
  return 0;
}
