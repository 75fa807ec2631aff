import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { assertNever } from '../../base/assert-never.ts';
import { orElse } from '../../base/or-else.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { directoryVariables, environmentBlock } from '../../confine/running.ts';
import { type JudgeRequest, type ProgramFinder, type ResolvedCommand, SHELL } from '../../gate/index.ts';
import type { Application } from '../../judge/index.ts';
import type { Command, ResolvedStage, Stage, Steps } from '../../model/index.ts';
import type { BuiltEnvironment } from '../../policy/index.ts';
import {
  CONFIG_BYTES,
  createLookAtObeyed,
  createPathLookup,
  parseGitConfig,
  readRegular,
} from '../../workspace/index.ts';
import type { StartSteps } from '../other-backends/application.ts';

/** The argument vector of a command. A string runs under bash, without start-up files. */
export function argumentVector(command: Command): readonly [string, ...string[]] {
  return typeof command === 'string' ? [SHELL, '--noprofile', '--norc', '-c', '--', command] : command;
}

/** Without SHLVL, bash with a socket as standard input reads ~/.bashrc as if started by rshd. */
const FOR_SHELLS = { SHLVL: '0' };

type Variables = Readonly<Record<string, string | undefined>>;

/** The kernel ends a string at NUL, and half a character has no bytes: what was judged would not be what runs. */
const UNPASSABLE = /\0|\p{Surrogate}/u;

function whatCannotBePassed(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string | undefined>> | undefined,
): string | undefined {
  const argument = argv.findIndex((text) => UNPASSABLE.test(text));
  if (argument >= 0) return argument === 0 ? 'the program' : `argument ${argument}`;
  if (UNPASSABLE.test(cwd)) return 'the working directory';
  if (env === undefined) return undefined;
  const name = Object.keys(env).find((key) => UNPASSABLE.test(`${key}${env[key] ?? ''}`));
  return name === undefined ? undefined : `the variable ${name.replaceAll('\0', '')}`;
}

/** Variables that every command of a plan gets: a request made by a hook, and again by the run, has the same. */
export function usualVariables(
  plan: LaunchPlan | undefined,
  { variables }: Pick<BuiltEnvironment, 'variables'>,
): Readonly<Record<string, string>> {
  return { ...gitVariablesOf(plan), ...(plan && directoryVariables(plan)), ...variables };
}

/**
 * Commands find a link in place of a configuration of git that they get a copy of. `git init` changes the mode of the file to find
 * out whether modes last, takes the mode of the link for that of the file, and says that they do not: what it says must not count
 * for the same command. Only if a repository says that they do, and none that they do not.
 */
function gitVariablesOf(plan: LaunchPlan | undefined): Readonly<Record<string, string>> {
  const said = (plan?.copies ?? []).flatMap(({ source }) => {
    const content = orElse(() => readRegular(source, CONFIG_BYTES), undefined);
    const settings = content === undefined ? undefined : parseGitConfig(content)?.settings;
    return settings?.findLast(({ key }) => key === 'core.filemode') ?? [];
  });
  return said.length > 0 && said.every(({ value }) => value === 'true')
    ? { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'core.filemode', GIT_CONFIG_VALUE_0: 'true' }
    : {};
}

/** What a shell and `pwd` call a directory that the user reached through a link; nothing if there was none. */
function pwdOf(cwd: string, { workspace, workspaceAsNamed }: LaunchPlan): Readonly<Record<string, string>> {
  return workspaceAsNamed === workspace || !isBeneath(cwd, workspace)
    ? {}
    : { PWD: `${workspaceAsNamed}${cwd.slice(workspace.length)}` };
}

/** Resolves commands for one sandbox; `resolveSteps`: without a shell. */
export function createCommandResolver(
  plan: LaunchPlan,
  environment: BuiltEnvironment,
  find: ProgramFinder,
  resolveSteps?: StepsResolver,
) {
  const base = usualVariables(plan, environment);
  const baseBlock = environmentBlock(base);
  const baseBlockForShells = environmentBlock({ ...base, ...FOR_SHELLS });

  return function resolveCommand(
    command: Command,
    options: Pick<JudgeRequest, 'cwd' | 'env'>,
  ): ResolvedCommand {
    const argv = argumentVector(command);
    const cwd = options.cwd === undefined ? plan.workspace : resolve(plan.workspace, options.cwd);
    const given = { ...pwdOf(cwd, plan), ...options.env };
    const isUsual = Object.keys(given).length === 0;
    const variables = isUsual ? base : { ...base, ...given };
    const cut = whatCannotBePassed(argv, cwd, options.env);
    if (cut !== undefined) {
      const message = `${cut} contains a NUL character or half a character (a lone surrogate), which cannot be passed to a program`;
      return { ok: false, argv, cwd, code: 'usage.invalid', message, path: argv[0] };
    }
    const line = resolveSteps?.(command, variables.PATH ?? '', cwd);
    if (line?.ok === false)
      return { ok: false, argv, cwd, code: 'command.denied', message: line.message, path: argv[0] };
    if (line !== undefined && typeof command === 'string') {
      const env = line.environment(variables) ?? (isUsual ? baseBlock : environmentBlock(variables));
      const { steps } = line;
      return { ok: true, program: line.program, argv: line.argv, steps, cwd, env, variables };
    }
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
    const isShell = typeof command === 'string';
    let env = isShell ? baseBlockForShells : baseBlock;
    if (!isUsual) env = environmentBlock(isShell ? { ...variables, ...FOR_SHELLS } : variables);
    env = line?.environment(variables) ?? env;
    return line === undefined
      ? { ok: true, program: program.path, argv, cwd, env, variables }
      : { ok: true, program: line.program, argv: line.argv, asked: argv, cwd, env, variables };
  };
}

/** What is started for a command in place of a shell, or why nothing is. */
type ResolvedLine =
  | ({
      readonly ok: true;
      readonly steps: Steps;
      /** In place of its variables; `undefined`: those. */
      readonly environment: (variables: Variables) => Uint8Array | undefined;
    } & ReturnType<StartSteps>)
  | { readonly ok: false; readonly message: string };

/** Resolves commands for a backend that runs no shell. */
type StepsResolver = (command: Command, searchPath: string, cwd: string) => ResolvedLine;

/** `start`: of a backend that runs no shell. */
export async function createStepsResolver(
  start: StartSteps,
  plan: LaunchPlan,
  find: ProgramFinder,
): Promise<StepsResolver> {
  const { parseArgv, stepsOf, useForApplication } = await import('../../gate/decide/judgement.ts');
  const { workspace } = plan;
  const obeyed = createLookAtObeyed(workspace);
  return (command, searchPath, cwd) => {
    const place = { paths: createPathLookup(), cwd, root: workspace };
    const read = typeof command === 'string' ? stepsOf(command, place) : oneStep(command, cwd);
    if (!read.ok) return { ok: false, message: read.problem.message };
    const problems: string[] = [];
    const environments: NonNullable<Application['environment']>[] = [];
    // Where a relative program name leads depends on the directory, which a `cd` may change: such names are refused.
    const resolveStage = (stage: Stage): ResolvedStage => ({
      ...stage,
      words: startedWords(stage),
      program: programOf(stage, typeof command === 'string'),
    });
    /** Its words, so that a program obeys only what was looked at. */
    const startedWords = ({ words, directory }: Stage): readonly string[] => {
      const [name, ...others] = words;
      const parsed = name === undefined ? undefined : parseArgv([name, ...others]);
      const line = parsed?.understood === true ? parsed.line.commands[0] : undefined;
      const use = line && useForApplication(line);
      const { application } = use?.program ?? {};
      if (use === undefined || application?.started === undefined) return words;
      if (application.environment !== undefined) environments.push(application.environment);
      const files = application.obeys?.(use);
      const state =
        files === undefined
          ? {}
          : directory === undefined
            ? 'is behind a cd that may fail: write && behind the cd'
            : obeyed(
                files,
                orElse(() => realpathSync(directory), directory),
              );
      if (typeof state !== 'string') return application.started(words, state);
      problems.push(`${words[0]} ${state}`);
      return words;
    };
    const programOf = ({ words }: Stage, inShell: boolean): ResolvedStage['program'] => {
      const [name, target] = words;
      if (name === undefined) return undefined;
      if (inShell && name === 'cd' && target !== undefined) return { kind: 'cd', directory: target };
      const found = find(name, searchPath, cwd);
      switch (found.kind) {
        case 'found':
          return { kind: 'found', path: found.path };
        case 'not-found':
          return { kind: 'missing', status: 127 };
        case 'not-executable':
          return { kind: 'missing', status: 126 };
        default:
          return assertNever(found);
      }
    };
    const pipelines = read.steps.pipelines.map((pipeline) => ({
      ...pipeline,
      stages: pipeline.stages.map(resolveStage),
    }));
    const [problem] = problems;
    if (problem !== undefined) return { ok: false, message: problem };
    const environment = (variables: Variables) =>
      environments.length === 0 ? undefined : environmentBlock(replaced(variables, environments));
    return { ok: true, steps: read.steps, environment, ...start(plan, { pipelines }) };
  };
}

/** Variables without those that programs would obey, and with what they get instead. */
function replaced(variables: Variables, by: readonly NonNullable<Application['environment']>[]): Variables {
  const kept = Object.entries(variables).filter(([name]) => !by.some(({ without }) => without.test(name)));
  return Object.assign(Object.fromEntries(kept), ...by.map((one) => one.variables));
}

function oneStep(words: readonly string[], directory: string): { readonly ok: true; readonly steps: Steps } {
  return {
    ok: true,
    steps: { pipelines: [{ joinedBy: 'then', stages: [{ words, redirects: [], directory }] }] },
  };
}
