import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  accessSync,
  chownSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Command, RunOptions, SandboxOptions } from '../../../src/index.ts';
import { makeDirectory } from '../../support/state-home.ts';
import type { RunAnswer, RunRequest, Tier } from './run-once.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const NOBODY = 65534;

/** Who runs the commands: whoever runs the tests (root, in CI), or an ordinary user besides. */
export type Who = 'self' | 'ordinary';

/** `real`: the user's own with the tool chains in it; `fresh`: an empty one; `missing`: HOME is not set. */
export type Home = 'real' | 'fresh' | 'missing';

/** A host and a user to try things with. */
export interface Setting {
  readonly who: Who;
  readonly tier: Tier;
  readonly home: Home;
}

/** Files by relative path. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A fresh workspace. */
export interface Project {
  readonly directory: string;
  write(files: Files): void;
  read(path: string): string;
  readBytes(path: string): Buffer;
  /** Runs outside of any sandbox, as the user of the lab. */
  outside(program: string, args: readonly string[], options?: OutsideOptions): string;
  run(command: Command, options?: ProjectRunOptions): Promise<RunAnswer>;
}

export interface OutsideOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface ProjectRunOptions extends Pick<RunOptions, 'cwd' | 'env' | 'timeout' | 'input'> {
  readonly sandbox?: SandboxOptions;
}

/** A user in a setting, with a home directory of its own and as many workspaces as needed. */
export interface Lab {
  readonly setting: Setting;
  /** The home directory that the library sees. */
  readonly home: string;
  readonly isRoot: boolean;
  /** For processes of the user outside of any sandbox. */
  readonly outsideOptions: {
    readonly env: Readonly<Record<string, string>>;
    readonly uid?: number;
    readonly gid?: number;
  };
  /** A fresh workspace, in a fresh directory or at a path of the caller's choice. */
  project(files?: Files, at?: string): Project;
  /** Puts files into the user's home: a fresh one only. */
  writeHome(files: Files): void;
  /** Whether the user has a program in PATH. */
  has(program: string): boolean;
}

interface OpenLab extends Lab {
  open(): Promise<void>;
  close(): void;
}

const isRoot = process.getuid?.() === 0;
/** Both, unless the machine declares that it has no namespaces, cf. test/enforcement/declared-features.test.ts. */
const TIERS_HERE: readonly Tier[] =
  process.env.SANDBOX_RUN_EXPECT_NAMESPACES === '0' ? ['landlock'] : ['view', 'landlock'];

/** Which settings to declare tests for. */
export interface SettingFilter {
  readonly home?: Home;
  readonly tier?: Tier;
  readonly who?: Who;
  /** For what takes seconds, and for tables of many rows: the tests' own user with namespaces and the ordinary user without. */
  readonly few?: boolean;
}

/** Declares tests once per setting that can be had here. `define` is called while tests are collected. */
export function everywhere(define: (lab: Lab) => void, only: SettingFilter = {}): void {
  for (const who of ['self', ...(isRoot ? (['ordinary'] as const) : [])] as const) {
    if (only.who !== undefined && only.who !== who) continue;
    for (const tier of TIERS_HERE) {
      if (only.tier !== undefined && only.tier !== tier) continue;
      if (only.few === true && isRoot && (who === 'self') !== (tier === 'view')) continue;
      // The real home of the ordinary user is an empty one.
      const home = who === 'ordinary' && only.home !== 'missing' ? 'fresh' : (only.home ?? 'real');
      const lab = makeLab({ who, tier, home });
      const user = who === 'self' ? userInfo().username : 'an ordinary user';
      describe(`${user}, ${tier === 'view' ? 'with namespaces' : 'without namespaces'}`, () => {
        beforeAll(() => lab.open());
        afterAll(() => lab.close());
        define(lab);
      });
    }
  }
}

/** A command that has to work, and what it has to print. */
export interface Work {
  readonly script: Command;
  /** All of standard output, or a pattern in it. */
  readonly prints: string | RegExp;
  /** Programs without which there is nothing to try. */
  readonly needs?: readonly string[];
  readonly files?: Files;
  readonly options?: ProjectRunOptions;
}

/** Declares a test that runs a command in a fresh workspace, at the same time as others of its kind. */
export function works(lab: Lab, name: string, work: Work): void {
  const missing = (work.needs ?? []).filter((program) => !lab.has(program));
  const why = missing.length === 0 ? '' : ` (skipped: ${missing.join(', ')} not installed for this user)`;
  it.skipIf(missing.length > 0)(`${name}${why}`, { concurrent: true }, async () => {
    const answer = await lab.project(work.files).run(work.script, work.options);
    expectPrinted(answer, work.prints);
  });
}

/** The command succeeded and printed this. */
export function expectPrinted(answer: RunAnswer, prints: string | RegExp): void {
  const said = `${answer.stdout}\n${answer.stderr}`;
  expect(answer.outcome, said).toBe('exited 0');
  if (typeof prints === 'string') expect(answer.stdout, said).toBe(prints);
  else expect(answer.stdout, said).toMatch(prints);
}

function makeLab(setting: Setting): OpenLab {
  const other = setting.who !== 'self';
  const ids = other ? { uid: NOBODY, gid: NOBODY } : {};
  const scratch = realpathSync(makeDirectory(join(tmpdir(), 'real-work-')));
  const freshHome = join(scratch, 'home');
  const realHome = setting.home === 'real';
  const environment: Record<string, string> = {
    ...stringsOf(process.env),
    ...(realHome ? { PATH: ownPath() } : { PATH: systemPath() }),
    ...(setting.home === 'fresh' ? { HOME: freshHome } : {}),
    ...(other ? { USER: 'nobody', LOGNAME: 'nobody', SHELL: '/bin/sh' } : {}),
  };
  // Settings of the user who runs the tests must not decide what the tests see.
  const foreign = /^(npm_|GIT_|PYTHON|PIP_|XDG_|VITEST|NODE_)/i;
  for (const name of Object.keys(environment)) if (foreign.test(name)) delete environment[name];
  if (setting.home === 'missing') delete environment.HOME;
  // What commands cache for their workspaces would stay in the real home.
  environment.XDG_STATE_HOME = join(scratch, 'state');
  const own = (path: string) => {
    if (other) chownSync(path, NOBODY, NOBODY);
  };
  own(scratch);
  mkdirSync(freshHome);
  own(freshHome);
  let worker: Worker | undefined;

  function project(files: Files = {}, at?: string): Project {
    const directory = at ?? mkdtempSync(join(scratch, 'workspace-'));
    if (at !== undefined) makeDirectories(at, own);
    own(directory);
    const write = (more: Files) => writeFiles(directory, more, own);
    write(files);
    return {
      directory,
      write,
      read: (path) => readFileSync(join(directory, path), 'utf8'),
      readBytes: (path) => readFileSync(join(directory, path)),
      outside: (program, args, options = {}) =>
        execFileSync(program, args, {
          cwd: options.cwd ?? directory,
          env: { ...environment, ...options.env },
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'pipe'],
          ...ids,
        }),
      run: (command, { sandbox, ...options } = {}) => {
        const request: RunRequest = {
          command,
          options,
          sandbox: { workspace: directory, ...sandbox },
        };
        if (worker === undefined) throw new Error('the lab is not open');
        return worker.run(request);
      },
    };
  }

  return {
    setting,
    home: environment.HOME ?? '/nonexistent',
    isRoot: isRoot && !other,
    outsideOptions: { env: environment, ...ids },
    project,
    writeHome: (files) => writeFiles(freshHome, files, own),
    has: (program) =>
      (environment.PATH ?? '').split(':').some((directory) => isExecutable(join(directory, program))),
    open: async () => {
      worker = await startWorker(setting.tier, environment, ids);
    },
    close: () => {
      worker?.close();
      worker = undefined;
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

interface Worker {
  run(request: RunRequest): Promise<RunAnswer>;
  close(): void;
}

/** A process of the other user that has the library loaded. Started anew, as set-uid leaves traces in a process. */
async function startWorker(
  tier: Tier,
  env: Readonly<Record<string, string>>,
  ids: { readonly uid?: number; readonly gid?: number },
): Promise<Worker> {
  const script = join(ROOT, `node_modules/.cache/lab-process-${process.pid}-${Date.now()}.mjs`);
  await build({
    absWorkingDir: ROOT,
    entryPoints: [fileURLToPath(new URL('lab-process.ts', import.meta.url))],
    outfile: script,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  });
  const child: ChildProcess = spawn(process.execPath, [script, tier], {
    cwd: '/',
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
    ...ids,
  });
  const waiting = new Map<number, { done: (answer: RunAnswer) => void; failed: (error: Error) => void }>();
  let next = 0;
  child.once('exit', (code, signal) => {
    for (const { failed } of waiting.values()) failed(new Error(`the lab ended: ${signal ?? code}`));
  });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error('the lab has no standard streams');
  createInterface({ input: stdout }).on('line', (line) => {
    const { id, answer } = JSON.parse(line);
    const settled = waiting.get(id);
    waiting.delete(id);
    if ('error' in answer) settled?.failed(new Error(answer.error));
    else settled?.done(answer);
  });
  return {
    run: (request) =>
      new Promise((done, failed) => {
        next += 1;
        waiting.set(next, { done, failed });
        stdin.write(`${JSON.stringify({ id: next, request })}\n`);
      }),
    close: () => {
      stdin.end();
      rmSync(script, { force: true });
    },
  };
}

function writeFiles(directory: string, files: Files, own: (path: string) => void): void {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    makeDirectories(dirname(path), own);
    writeFileSync(path, content);
    own(path);
  }
}

function makeDirectories(path: string, own: (path: string) => void): void {
  const first = mkdirSync(path, { recursive: true });
  if (first === undefined) return;
  for (let at = path; at.length >= first.length; at = dirname(at)) own(at);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Without what npm put in front of it to run the tests. */
function ownPath(): string {
  return (process.env.PATH ?? '')
    .split(':')
    .filter((path) => !path.includes('/node_modules/'))
    .join(':');
}

/** Without the directories of the user who runs the tests: another user cannot look into them. */
function systemPath(): string {
  const paths = ownPath()
    .split(':')
    .filter((path) => /^\/(usr|bin|sbin|opt)\//.test(path));
  return [...paths, '/usr/local/bin', '/usr/bin', '/bin'].join(':');
}

function stringsOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) result[name] = value;
  return result;
}
