import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll } from 'vitest';
import type { Argv } from './sandboxee.ts';
import { patience } from './slow-host.ts';

/** A process of the same user, outside every sandbox. */
export interface Bystander {
  readonly pid: number;
  /** What it has printed so far, by line. */
  readonly lines: () => readonly string[];
  readonly alive: () => boolean;
}

const started: ChildProcess[] = [];

const endAll = () => {
  for (const child of started) child.kill('SIGKILL');
};
afterAll(endAll);
// In a virtual machine one process runs several files, and this module belongs to the first of them.
process.on('exit', endAll);

/** Starts a program that prints `ready` when it is; it is ended with the test file. */
export async function startBystander(argv: Argv, env?: NodeJS.ProcessEnv): Promise<Bystander> {
  const [program, ...rest] = argv;
  const child: ChildProcess = spawn(program, rest, {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
    ...(env === undefined ? {} : { env }),
  });
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  started.push(child);
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} does not start`);
  await until(() => text.includes('ready\n'));
  return {
    pid,
    lines: () => text.split('\n').filter((line) => line !== '' && line !== 'ready'),
    alive: () => isAlive(pid),
  };
}

/** True if there is such a process and it is no zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** However busy the machine is: what takes longer than this does not happen any more. */
const LEAST_MS = 60_000;

/** Waits until the condition holds; false after a minute, or after `ms` if those are more. */
export async function until(condition: () => boolean, ms = 0): Promise<boolean> {
  const end = Date.now() + patience(Math.max(LEAST_MS, ms));
  while (!condition()) {
    if (Date.now() > end) return false;
    // Where a look takes long, looking all the time would keep it from happening.
    await sleep(patience(10));
  }
  return true;
}
