import { resolve } from 'node:path';
import type { ErrorCode } from '../errors/codes.ts';
import type { Command } from '../model/execution-request.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { BuiltEnvironment } from '../policy/environment.ts';
import type { ProgramFinder } from './program-finder.ts';

/** The shell that runs shell strings: its grammar is the one that is judged. */
const SHELL = '/bin/bash';

/** The argument vector of a command. A string runs under bash, without start-up files. */
export function argumentVector(command: Command): readonly [string, ...string[]] {
  return typeof command === 'string' ? [SHELL, '--noprofile', '--norc', '-c', '--', command] : command;
}

/** A command with its program, directory and environment settled, or why it cannot be started. */
export type SettledCommand =
  | {
      readonly ok: true;
      readonly program: string;
      readonly argv: readonly [string, ...string[]];
      readonly cwd: string;
      readonly env: readonly string[];
    }
  | {
      readonly ok: false;
      readonly argv: readonly [string, ...string[]];
      readonly cwd: string;
      readonly code: ErrorCode;
      readonly message: string;
      readonly path: string;
    };

/** Settles commands for one sandbox. */
export function createCommandSettler(plan: LaunchPlan, environment: BuiltEnvironment, find: ProgramFinder) {
  const directories: Record<string, string> = {
    // In a directory of the command's own whose name is known only at the launch: the addon sets those.
    ...(plan.home.startsWith('slot:') ? {} : { HOME: plan.home }),
    ...(plan.tmp.startsWith('slot:') ? {} : { TMPDIR: plan.tmp }),
  };
  const base: Readonly<Record<string, string>> = { ...directories, ...environment.variables };
  const baseList = Object.entries(base).map(([name, value]) => `${name}=${value}`);

  return function settle(
    command: Command,
    options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string | undefined>> },
  ): SettledCommand {
    const argv = argumentVector(command);
    const cwd = options.cwd === undefined ? plan.workspace : resolve(plan.workspace, options.cwd);
    const variables = options.env === undefined ? base : { ...base, ...options.env };
    const program = find(argv[0], variables.PATH ?? '', cwd);
    if (program.kind === 'not-found') {
      return {
        ok: false,
        argv,
        cwd,
        code: 'program.not_found',
        message: `${argv[0]}: no such program in PATH`,
        path: argv[0],
      };
    }
    if (program.kind === 'not-executable') {
      const message = `${program.path}: ${program.reason}`;
      return { ok: false, argv, cwd, code: 'program.not_executable', message, path: program.path };
    }
    const list =
      options.env === undefined
        ? baseList
        : Object.entries(variables).flatMap(([name, value]) =>
            value === undefined ? [] : [`${name}=${value}`],
          );
    // Without SHLVL, bash with a socket as standard input reads ~/.bashrc as if started by rshd.
    const env = typeof command === 'string' ? [...list, 'SHLVL=0'] : list;
    return { ok: true, program: program.path, argv, cwd, env };
  };
}

/** What `createCommandSettler` returns. */
export type CommandSettler = ReturnType<typeof createCommandSettler>;
