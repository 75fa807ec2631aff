import { InvalidArgumentError, Option } from 'commander';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { Command, SandboxOptions, Taint } from '../../model/index.ts';
import { LinePattern, type ServiceWish } from '../../run/index.ts';
import { commandOf } from '../run/options.ts';
import {
  addSandboxOptions,
  parseSeconds,
  type SandboxArguments,
  sandboxOptionsOf,
  TAINTS_SEEN,
  wholeNumber,
} from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';

/** Words of the command line that a supervisor answers. */
export const SERVICE_COMMANDS = ['up', 'ps', 'logs', 'stop', 'restart'] as const;
export type ServiceCommand = (typeof SERVICE_COMMANDS)[number];

export const isServiceCommand = (word: string): word is ServiceCommand =>
  SERVICE_COMMANDS.some((known) => known === word);

const NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;

/** @throws {SandboxError} `usage.invalid` for a name that no service has. */
export function checkServiceName(name: string): string {
  if (NAME.test(name)) return name;
  throw new SandboxError(
    'usage.invalid',
    `"${visibleLine(name, 40)}" cannot be the name of a service; it takes a to z, digits, "-" and "_", at most 32, and begins with a letter or a digit`,
  );
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LONGEST_MS = 24 * 86_400_000;

/** `8h`, `30m`, `90s`, `2d`, in milliseconds. */
function parseDuration(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const duration = Number(number) * (UNITS[unit] ?? 0);
  if (duration > 0 && duration <= LONGEST_MS) return duration;
  throw new InvalidArgumentError('it must be a time such as 90s, 30m, 8h or 2d, 24 days at most.');
}

const port = wholeNumber(1, 65_535, 'it must be a port from 1 to 65535.');
const DEFAULT_READY_MS = 60_000;

/** Options of `sandbox-run up`. */
interface UpArguments extends SandboxArguments {
  readonly shell?: string;
  readonly approved?: boolean;
  /** The fingerprint of the request that a person approved on the terminal of the call. */
  readonly approvedAs?: string;
  /** As {@link UpWish.ofFile}. */
  readonly ofFile?: string;
  readonly taint?: readonly Taint[];
  readonly ready?: number;
  readonly readyLine?: string;
  readonly readyTimeout?: number;
  readonly restart?: 'on-failure';
  readonly for?: number;
  readonly quiet?: boolean;
}

/** What the command line of `sandbox-run up` asks for. */
export interface UpWish extends Omit<ServiceWish, 'run'> {
  readonly name: string;
  readonly sandbox: SandboxOptions;
  readonly run: Pick<ServiceWish['run'], 'timeout' | 'taints' | 'approved'>;
  readonly command: Command;
  readonly readyTimeoutMs: number;
  readonly quiet: boolean;
  /** A digest of what a policy file said of it; `undefined`: it came from a command line. */
  readonly ofFile: string | undefined;
}

/** The same without a command: of services that files of policy name. */
export interface FileWish {
  /** `undefined`: all of them. */
  readonly name: string | undefined;
  readonly sandbox: SandboxOptions;
  /** The options, for each of them again. */
  readonly words: readonly string[];
}

const HELP_OF_UP = `
A service goes on when the command line and its terminal have ended, until sandbox-run stop, --for, or the end of
its supervisor: a process of yours that up starts, and that ends with its last service. It has the sandbox that
sandbox-run with the same options gives a command, without a time limit. Services and commands of one workspace
and policy reach each other at localhost.

Without a command, up starts the services of your policy file and of a trusted .sandbox-run.toml:
  [services.web]
  command = "npm run dev"
  ready = 5173

Examples:
  sandbox-run up web --ready 5173 -- npm run dev
  sandbox-run -- curl localhost:5173
  sandbox-run up db --ready-line 'ready to accept' --restart on-failure -c 'postgres -D .pgdata'
  sandbox-run up
  sandbox-run logs -f web

Exit status: 0 it runs, and is ready if you said when; 124 it is not ready yet, and goes on; 126 refused; the
command’s if it ended before it was ready, or 1 if that is 0; 125 anything else failed.`;

/**
 * The command line of `up`; `undefined` if help was printed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseUp(args: readonly string[]): UpWish | FileWish | undefined {
  const [first] = args;
  const name = first === undefined || first.startsWith('-') ? undefined : first;
  const rest = name === undefined ? args : args.slice(1);
  const program = createProgram('sandbox-run up', 'Starts a service: a command that goes on.', HELP_OF_UP)
    .usage(
      "NAME [options] -- COMMAND [ARG...]\n       sandbox-run up NAME [options] -c 'SHELL STRING'\n       sandbox-run up [NAME]",
    )
    .argument('[command...]', 'the program and its arguments, unchanged')
    .passThroughOptions();
  addSandboxOptions(program)
    .option('-c, --shell <string>', 'run a shell string under bash')
    .option('--ready <port>', 'it is ready when it listens at this TCP port', port)
    .option('--ready-line <regex>', 'it is ready when a line of its output matches')
    .option(
      '--ready-timeout <seconds>',
      'how long to wait for that (default: 60); it goes on all the same',
      parseSeconds,
    )
    .addOption(
      new Option(
        '--restart <when>',
        'start it again when it fails, after 1 to 30 s, at most 10 times in a row',
      ).choices(['on-failure']),
    )
    .option('--for <time>', 'stop it after this time, such as 30m or 8h', parseDuration)
    .option('--approved', 'you looked at this command and approve it: run it even if the policy asks')
    .addOption(new Option('--approved-as <fingerprint>', 'what its user approved just now').hideHelp())
    .addOption(new Option('--of-file <digest>', 'what a policy file says of it').hideHelp())
    .option(...TAINTS_SEEN)
    .option('-q, --quiet', 'no remarks');
  const parsed = parseArguments(program, rest);
  if (parsed === undefined) return undefined;
  const options = parsed.opts<UpArguments>();
  const { timeout, ...sandbox } = sandboxOptionsOf(options);
  if (options.shell === undefined && parsed.args.length === 0)
    return { name: name === undefined ? undefined : checkServiceName(name), sandbox, words: rest };
  if (name === undefined)
    throw new SandboxError(
      'usage.invalid',
      'the name of the service comes first: sandbox-run up NAME [options] -- COMMAND',
    );
  return {
    name: checkServiceName(name),
    sandbox,
    command: commandOf(options.shell, parsed.args),
    run: {
      ...(timeout === undefined ? {} : { timeout }),
      taints: options.taint ?? [],
      approved:
        options.approvedAs === undefined ? options.approved === true : { fingerprint: options.approvedAs },
    },
    ready: readyOf(options),
    readyTimeoutMs: options.readyTimeout ?? DEFAULT_READY_MS,
    restart: options.restart ?? 'never',
    lifetimeMs: options.for,
    quiet: options.quiet === true,
    ofFile: options.ofFile,
  };
}

function readyOf({ ready, readyLine }: UpArguments): ServiceWish['ready'] {
  if (ready !== undefined && readyLine !== undefined)
    throw new SandboxError(
      'usage.invalid',
      '--ready and --ready-line say the same in two ways; leave one out',
    );
  if (ready !== undefined) return { port: ready };
  if (readyLine === undefined) return undefined;
  return { line: new LinePattern(readyLine).source };
}

/** What `ps`, `logs`, `stop` and `restart` are asked for. */
export interface ServiceChoice {
  /** `undefined`: all of the workspace, or of the user. */
  readonly name: string | undefined;
  readonly workspace: string | undefined;
  readonly follow: boolean;
  readonly json: boolean;
  /** Internal: of the supervisor that is asked alone. */
  readonly here: boolean;
}

interface ChoiceArguments {
  readonly workspace?: string;
  readonly all?: boolean;
  readonly follow?: boolean;
  readonly json?: boolean;
  readonly here?: boolean;
}

const HELP: Readonly<
  Record<Exclude<ServiceCommand, 'up'>, { readonly what: string; readonly after: string }>
> = {
  ps: {
    what: 'Shows the services of this user, and what agents run in the background.',
    after: `
Also those that were lost because their supervisor was killed, once.

Exit status: 0; 125 if anything failed.`,
  },
  logs: {
    what: 'Prints what a service wrote: the last mebibyte of both streams.',
    after: `
To a terminal it goes without escape sequences and control characters, to a pipe or a file as it is. The log of a
service that ended by itself can be read for ten minutes.

Examples:
  sandbox-run logs web
  sandbox-run logs -f web | grep ERROR

Exit status: 0; 125 if there is no such service or anything else failed.`,
  },
  stop: {
    what: 'Ends a service, or what an agent runs in the background, with everything that it started: SIGTERM, then SIGKILL.',
    after: `
Examples:
  sandbox-run stop web
  sandbox-run stop --all
  sandbox-run stop 1234       what an agent runs, by the name that ps shows

Exit status: 0 it has ended; 125 if there is no such service or anything else failed.`,
  },
  restart: {
    what: 'Ends what a service runs, and starts it again as it was.',
    after: `
It waits until the service is ready again, as up did. It has the command and the options that it had: if a policy
file says something else by now, a line says so, and stop and up take that.

Exit status: that of up; 125 if there is no such service.`,
  },
};

/** The program of that name has many others. */
const OPTIONS_OF_PS = ['--json', '--here', '-h', '--help'];

/**
 * The command line of another one; `undefined` if help was printed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseChoice(
  which: Exclude<ServiceCommand, 'up'>,
  args: readonly string[],
): ServiceChoice | undefined {
  const word = which === 'ps' ? args.find((one) => !OPTIONS_OF_PS.includes(one)) : undefined;
  if (word !== undefined)
    throw new SandboxError(
      'usage.invalid',
      `sandbox-run ps shows services and takes no "${visibleLine(word, 40)}"; sandbox-run -- ps runs the program`,
    );
  const { what, after } = HELP[which];
  const program = createProgram(`sandbox-run ${which}`, what, after);
  if (which === 'stop')
    program.argument('[name]', 'the service').option('--all', 'all services of the workspace');
  else if (which !== 'ps') program.argument('<name>', 'the service');
  if (which === 'ps') program.option('--json', 'print one JSON object per line');
  else
    program.option(
      '--workspace <dir>',
      'the workspace of the service (default: the one around the current directory)',
    );
  if (which === 'logs') program.option('-f, --follow', 'go on until the service ends');
  program.addOption(new Option('--here').hideHelp());
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return undefined;
  const {
    workspace,
    all = false,
    follow = false,
    json = false,
    here = false,
  } = parsed.opts<ChoiceArguments>();
  const [named, tooMany] = parsed.args;
  if (tooMany !== undefined)
    throw new SandboxError('usage.invalid', `one name at a time; "${visibleLine(tooMany, 40)}" is left over`);
  if (which === 'stop' && (named === undefined) !== all)
    throw new SandboxError(
      'usage.invalid',
      'stop takes the name of a service, or --all (see sandbox-run ps)',
    );
  const name = named === undefined ? undefined : checkServiceName(named);
  return { name, workspace, follow, json, here };
}
