import { spawn } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import type { ControlId, ControlState, SandboxOptions } from '../../../src/index.ts';
import { until } from '../../support/bystander.ts';
import { processesWith } from '../../support/leftovers.ts';
import { patience } from '../../support/slow-host.ts';

export const ROOT = process.getuid?.() === 0;
export const DIST = fileURLToPath(new URL('../../../dist/', import.meta.url));
const ATTACK = fileURLToPath(new URL('./attack.mjs', import.meta.url));

/** True if the program is installed; for tests that say in their name that they need it. */
export function has(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => existsSync(join(directory, program)));
}

/** What came of an attack on one host. */
export interface Answer {
  /** What no sandbox was made for. */
  readonly refused?: { readonly code: string; readonly message: string; readonly ours: boolean };
  readonly backend?: string;
  readonly tier?: string;
  readonly states?: Readonly<Record<ControlId, ControlState>>;
  readonly reasons?: Readonly<Record<ControlId, string>>;
  readonly error?: { readonly code: string; readonly message: string };
  readonly exitCode?: number;
  readonly signal?: string;
  readonly stdout?: string;
  readonly warnings?: readonly string[];
  /** Of every run it is said that nothing of it is left. */
  readonly treeEnded?: boolean;
  /** Of each run: exit code, signal or the code of the error. */
  readonly all?: readonly (number | string)[];
  /** Something that the command started was there afterwards. */
  readonly left: boolean;
  /** What the launcher itself said, and how it ended if it gave no answer. */
  readonly stderr: string;
  readonly crashed?: string;
}

export interface AttackOptions {
  /** Words before `node`: what makes the host what it is. */
  readonly host?: readonly string[];
  readonly options?: SandboxOptions;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Shell text at the end of the attack. */
  readonly more?: string;
  /** A command instead of the attack. */
  readonly argv?: readonly string[];
  /** What the launcher does to itself first; `PID` stands for its number. */
  readonly before?: readonly string[];
  readonly times?: number;
  readonly unconfined?: boolean;
  readonly workspace?: string;
  readonly cwd?: string;
}

/** Places for one test file, which anybody may use, and a server that no command may reach. */
export interface World {
  readonly root: string;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string>>;
  attack(options?: AttackOptions): Promise<Answer>;
}

/** More than the time limit of the command in attack.mjs: what takes longer hangs. */
const LATE_MS = 100_000;

let counter = 0;

/** Makes a world for the current test file, which cleans it up. */
export function makeWorld(parent: string = tmpdir()): World {
  if (!existsSync(join(DIST, 'index.js'))) throw new Error('dist/ is missing: run `npm run build:ts` first');
  const root = mkdtempSync(join(realpathSync(parent), 'sandbox-run-hosts-'));
  const outside = join(root, 'outside');
  const secret = join(outside, 'secret');
  for (const name of ['', 'workspace', 'workspace/.git', 'workspace/.git/hooks', 'outside', 'home', 'tmp']) {
    mkdirSync(join(root, name), { recursive: true });
    chmodSync(join(root, name), 0o777);
  }
  writeFileSync(secret, 'secret', { mode: 0o666 });
  const server = createServer((socket) => socket.destroy());
  let port = 0;
  beforeAll(async () => {
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const address = server.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
  });
  afterAll(() => {
    server.close();
    rmSync(root, { recursive: true, force: true });
  });
  const workspace = join(root, 'workspace');
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: join(root, 'home'),
    TMPDIR: join(root, 'tmp'),
    LANG: 'C.UTF-8',
    NOT_FOR_COMMANDS: 'secret',
  };
  return {
    root,
    workspace,
    env,
    async attack({ host = [], env: more = {}, ...given } = {}) {
      counter += 1;
      // A number that no other process sleeps for.
      const mark = `86${process.pid}.${counter}`;
      const input = {
        workspace,
        outside,
        secret,
        port,
        mark,
        dist: pathToFileURL(join(DIST, 'index.js')).href,
        ...given,
      };
      const descriptor = openSync(secret, 'r');
      const words = [...host, process.execPath, ATTACK, JSON.stringify(input)];
      try {
        const ended = await runToEnd(words, { ...env, ...more }, descriptor);
        const isOver = () => processesWith(mark).length === 0;
        const left = mayLeave(ended, given.unconfined) ? !isOver() : !(await until(isOver));
        for (const pid of processesWith(mark)) process.kill(pid, 'SIGKILL');
        return { ...ended, left };
      } finally {
        closeSync(descriptor);
      }
    },
  };
}

/** Something may be left, by what the report says: then it is looked once. Of everything else the end is waited for. */
const mayLeave = ({ treeEnded, states }: Omit<Answer, 'left'>, unconfined = false): boolean =>
  unconfined || (treeEnded === false && states?.['process-tree'] === 'unsupported');

async function runToEnd(
  [program = '', ...words]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  descriptor: number,
): Promise<Omit<Answer, 'left'>> {
  const child = spawn(program, words, { env, stdio: ['ignore', 'pipe', 'pipe', descriptor] });
  const late = setTimeout(() => child.kill('SIGKILL'), patience(LATE_MS));
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((done, fail) => {
    child.on('error', fail);
    child.on('close', (status, name) => done([status, name]));
  });
  clearTimeout(late);
  const line = stdout.split('\n').find((text) => text.startsWith('{'));
  if (line === undefined) return { stderr, crashed: `status ${code}, signal ${signal}` };
  return { stderr, ...(JSON.parse(line) as Omit<Answer, 'left' | 'stderr'>) };
}

/** By which line of the attack a control shows not to hold. */
const BROKEN: Readonly<Partial<Record<ControlId, readonly string[]>>> = {
  filesystem: ['READ', 'WROTE'],
  'filesystem-view': ['SEEN', 'HOSTNET', 'HOSTIPC'],
  metadata: ['CHANGED'],
  'protected-paths': ['HOOK'],
  environment: ['ENVIRONMENT'],
  network: ['NETWORK'],
  signals: ['SIGNAL'],
  syscalls: ['SYSCALLS'],
  privileges: ['PRIVS', 'CAPS'],
  descriptors: ['DESCRIPTOR'],
};
/** Every line of an attack that nothing holds back. */
export const ALL_BROKEN = [
  ...['READ', 'WROTE', 'SEEN', 'CHANGED', 'HOOK', 'ENVIRONMENT', 'HOSTNET', 'HOSTIPC'],
  ...['SIGNAL', 'NETWORK', 'PRIVS', 'SYSCALLS', 'DESCRIPTOR'],
];

const REFUSALS = [
  'enforcement.unavailable',
  'backend.unavailable',
  'confinement.failed',
  'launch.failed',
  'cwd.unusable',
];

/** Refused with one line of ours before anything was run. */
export function expectRefused(answer: Answer, codes: readonly string[] = REFUSALS): void {
  expect(answer.crashed, answer.stderr).toBeUndefined();
  const why = answer.refused ?? answer.error;
  expect(codes, JSON.stringify(answer)).toContain(why?.code);
  expect(why?.message).not.toMatch(/\n|undefined/);
  if (answer.refused !== undefined) expect(answer.refused.ours).toBe(true);
  expect(answer.stdout ?? '').not.toContain('started');
  expect(answer.left).toBe(false);
}

/** The command did its work, and everything that the report says held. */
export function expectHonest(answer: Answer): void {
  expect(answer.crashed, answer.stderr).toBeUndefined();
  expect(answer.refused ?? answer.error).toBeUndefined();
  const lines = (answer.stdout ?? '').split('\n');
  expect(lines, answer.stderr).toEqual(expect.arrayContaining(['started', 'hi', 'WORKED', 'end']));
  expect(brokenControls(answer)).toEqual([]);
  if (answer.states?.['process-tree'] !== 'unsupported') expect(answer.left).toBe(false);
}

/** Controls that are said to be enforced, and the lines of the attack that show otherwise. */
export function brokenControls({ states, stdout = '' }: Answer): readonly string[] {
  const lines = stdout.split('\n');
  return Object.entries(BROKEN).flatMap(([control, marks]) =>
    states?.[control as ControlId] === 'enforced'
      ? marks.filter((mark) => lines.includes(mark)).map((mark) => `${control}: ${mark}`)
      : [],
  );
}

/** One of both, whatever the host: never a hang, a crash, or a command that ran with less than was said. */
export function expectHonestOrRefused(answer: Answer): void {
  if (answer.refused === undefined && answer.error === undefined) expectHonest(answer);
  else expectRefused(answer);
}
