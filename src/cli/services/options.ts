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

/** Subcommands that a supervisor answers. */
export const SERVICE_COMMANDS = ['up', 'ps', 'logs', 'stop', 'restart'] as const;
export type ServiceCommand = (typeof SERVICE_COMMANDS)[number];

export const isServiceCommand = (word: string): word is ServiceCommand =>
  SERVICE_COMMANDS.some((known) => known === word);

const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
/** The name of a command that an agent runs in the background is its process ID, which no service can have for a name. */
const NUMBER = /^\d{1,10}$/;

/** Returns the name. @throws {SandboxError} `usage.invalid` if no service can have it. */
function checkServiceName(name: string): string {
  if (NAME.test(name)) return name;
  throw new SandboxError(
    'usage.invalid',
    `"${visibleLine(name, 40)}" cannot be the name of a service: a name has at most 32 characters of a to z, 0 to 9, "-" and "_", and begins with a letter`,
  );
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LONGEST_MS = 24 * 86_400_000;

/** Parses a duration such as `8h`, `30m`, `90s` or `2d` into milliseconds. */
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
  /** The fingerprint of the request that the user has approved on the terminal of `up`. */
  readonly approvedAs?: string;
  /** See {@link UpWish.ofFile}. */
  readonly ofFile?: string;
  readonly taint?: readonly Taint[];
  readonly ready?: number;
  readonly readyLine?: string;
  readonly readyTimeout?: number;
  readonly restart?: 'on-failure';
  readonly for?: number;
  readonly quiet?: boolean;
}

/** A command line of `sandbox-run up` that has a command. */
export interface UpWish extends Omit<ServiceWish, 'run'> {
  readonly name: string;
  readonly sandbox: SandboxOptions;
  readonly run: Pick<ServiceWish['run'], 'timeout' | 'taints' | 'approved'>;
  readonly command: Command;
  readonly readyTimeoutMs: number;
  readonly quiet: boolean;
  /** A digest of the service's definition in a policy file; `undefined`: the user gave the command on the command line. */
  readonly ofFile: string | undefined;
}

/** A command line of `sandbox-run up` without a command: for services that policy files name. */
export interface FileWish {
  /** `undefined`: all of them. */
  readonly name: string | undefined;
  readonly sandbox: SandboxOptions;
  /** The options of the command line, which apply to each of the services. */
  readonly words: readonly string[];
}

const HELP_OF_UP = `
A service keeps running after up and its terminal have ended, until sandbox-run stop, --for, or the end of its
supervisor: a process of yours that up starts, and that ends with its last service. A service has the sandbox
that sandbox-run gives a command with the same options, without a time limit. Services and commands of one
workspace and policy reach each other at localhost.

Without a command, up starts the services that your policy file or a trusted .sandbox-run.toml names:
  [services.web]
  command = "npm run dev"
  ready = 5173

Examples:
  sandbox-run up web --ready 5173 -- npm run dev
  sandbox-run -- curl localhost:5173
  sandbox-run up db --ready-line 'ready to accept' --restart on-failure -c 'postgres -D .pgdata'
  sandbox-run up
  sandbox-run logs -f web

Exit status: 0 it runs, and is ready if --ready or --ready-line was given; 124 it is not ready in time, and keeps
running; 126 refused; if it ended before it was ready, its own, or 1 if that is 0; 125 anything else failed.`;

/**
 * Parses the command line of `up`; `undefined` if help was printed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseUp(args: readonly string[]): UpWish | FileWish | undefined {
  const [first] = args;
  const name = first === undefined || first.startsWith('-') ? undefined : first;
  const rest = name === undefined ? args : args.slice(1);
  const program = createProgram(
    'sandbox-run up',
    'Starts a service: a command that keeps running.',
    HELP_OF_UP,
  )
    .usage(
      "NAME [options] -- COMMAND [ARG...]\n       sandbox-run up NAME [options] -c 'SHELL STRING'\n       sandbox-run up [NAME]",
    )
    .argument('[command...]', 'the program and its arguments, unchanged')
    .passThroughOptions();
  addSandboxOptions(program);
  const limit = program.options.find(({ long }) => long === '--timeout');
  // The time limit of commands is none of a service.
  if (limit !== undefined) limit.description = 'end the service after this time (default: never)';
  program
    .option('-c, --shell <string>', 'run a shell string under bash')
    .option('--ready <port>', 'wait until it listens at this TCP port', port)
    .option('--ready-line <regex>', 'wait until a line of its output matches')
    .option(
      '--ready-timeout <seconds>',
      'how long to wait until it is ready (default: 60); after that it keeps running',
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
    .addOption(new Option('--approved-as <fingerprint>', 'the request that its user has approved').hideHelp())
    .addOption(new Option('--of-file <digest>', 'its definition in a policy file').hideHelp())
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
      '--ready and --ready-line cannot be used together; leave one out',
    );
  if (ready !== undefined) return { port: ready };
  if (readyLine === undefined) return undefined;
  return { line: new LinePattern(readyLine).source };
}

/** The command line of `ps`, `logs`, `stop` or `restart`. */
export interface ServiceChoice {
  /** The name of the service; `undefined`: all services of the workspace (`stop --all`) or of the user (`ps`). */
  readonly name: string | undefined;
  readonly workspace: string | undefined;
  readonly follow: boolean;
  readonly json: boolean;
  /** Internal: ask only the supervisor that gets the call, no others. */
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
    what: 'Lists your services, and the commands that agents run in the background.',
    after: `
Services that were lost because their supervisor was killed are listed once.

Exit status: 0; 125 if anything failed.`,
  },
  logs: {
    what: 'Prints the output of a service: the last mebibyte of both streams together.',
    after: `
On a terminal, escape sequences and control characters are left out; a pipe or a file gets the bytes unchanged.
The log of a service that ended by itself can be read for ten minutes.

Examples:
  sandbox-run logs web
  sandbox-run logs -f web | grep ERROR

Exit status: 0; 125 if there is no such service or anything else failed.`,
  },
  stop: {
    what: 'Ends a service, or a background command of an agent, with everything that it started: SIGTERM, then SIGKILL.',
    after: `
The name of a command of an agent is the number of its process, as ps shows it.

Examples:
  sandbox-run stop web
  sandbox-run stop --all
  sandbox-run stop 1234

Exit status: 0 if it has ended; 125 if there is no such service or anything else failed.`,
  },
  restart: {
    what: 'Ends a service and starts it again with the same command and options.',
    after: `
Like up, it waits until the service is ready. If a policy file names the service and defines it differently by
now, one line says so: stop and up use the new definition.

Exit status: as of up; 125 if there is no such service.`,
  },
};

/** All options of `sandbox-run ps`. Other words are probably meant for the program ps, which a message then names. */
const OPTIONS_OF_PS = ['--json', '--here', '-h', '--help'];

/**
 * Parses the command line of a service command other than `up`; `undefined` if help was printed.
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
      `sandbox-run ps lists services and does not take "${visibleLine(word, 40)}"; to run the program ps: sandbox-run -- ps`,
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
    throw new SandboxError(
      'usage.invalid',
      `${which} takes one name at a time; "${visibleLine(tooMany, 40)}" is one too many`,
    );
  if (which === 'stop' && (named === undefined) !== all)
    throw new SandboxError(
      'usage.invalid',
      'stop takes the name of a service, or --all (see sandbox-run ps)',
    );
  const name = named === undefined || NUMBER.test(named) ? named : checkServiceName(named);
  return { name, workspace, follow, json, here };
}
