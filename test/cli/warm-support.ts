import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { CLI, makePlace, type Place, serversOf } from './support.ts';

/** What hands calls over: beside the addon. */
export const CLIENT = join(dirname(CLI), '../build/Release/sandbox-run-client');

/** The words that an agent's settings begin with. */
export const WARM = [CLIENT, process.execPath, CLI] as const;

export interface WarmPlace extends Omit<Place, 'dispose'> {
  readonly state: string;
  dispose(): Promise<void>;
}

/** A place with a state directory, which the server of its calls listens in. */
export function makeWarmPlace(): WarmPlace {
  const place = makePlace();
  const state = join(place.root, 'state');
  return {
    ...place,
    state: join(state, 'sandbox-run'),
    env: {
      ...place.env,
      XDG_STATE_HOME: state,
      XDG_CACHE_HOME: join(place.root, 'cache'),
      XDG_CONFIG_HOME: join(place.root, 'config'),
    },
    dispose: async () => {
      await endServersOf(state);
      place.dispose();
    },
  };
}

/** Ends them, and those that were about to be, so that they take their private directories with them. */
export async function endServersOf(state: string): Promise<void> {
  const asked = new Set<number>();
  await eventually(() => {
    const found = serversOf(state);
    for (const pid of found) if (!asked.has(pid)) process.kill(pid, 'SIGTERM');
    for (const pid of found) asked.add(pid);
    expect(found).toEqual([]);
  }, 60_000).finally(() => {
    for (const pid of serversOf(state)) process.kill(pid, 'SIGKILL');
  });
}

/** Which program a call that runs now has become: {@link CLIENT}, if a server has taken it. */
export const programOf = (pid: number | undefined) => readlinkSync(`/proc/${pid}/exe`);

/** Where a server listens. */
export const pathOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[3] ?? '';

/**
 * Settles when a process has nothing to do but wait: each of its threads sleeps at the same time. One that waits for a
 * processor, or for a disk, does not sleep.
 */
export async function idle(pid: number): Promise<void> {
  // How often a thread has run, before its state: one that is the same twice has slept all the time in between.
  const looks = () =>
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const read = (file: string) => readFileSync(`/proc/${pid}/task/${thread}/${file}`, 'utf8');
      const runs = read('schedstat').split(' ')[2];
      return { thread, runs, state: read('stat').replace(/^.*\) /s, '')[0] };
    });
  await eventually(() => {
    const before = looks();
    expect(before.filter(({ state }) => state !== 'S')).toEqual([]);
    expect(looks()).toEqual(before);
  });
}

interface CallOptions {
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Makes a call by the client, to its end. */
export async function call(
  place: Pick<Place, 'workspace' | 'env'>,
  words: readonly string[],
  options: CallOptions = {},
) {
  const { exitCode, signal, stdout, stderr } = await startCall(place, words, options);
  return { exitCode, signal, stdout, stderr };
}

/** Starts a call by the client. */
export function startCall(
  place: Pick<Place, 'workspace' | 'env'>,
  words: readonly string[],
  { input = '', cwd, env }: CallOptions = {},
) {
  const [program, ...before] = WARM;
  return execa(program, [...before, ...words], {
    cwd: cwd ?? place.workspace,
    env: { ...place.env, ...env },
    extendEnv: false,
    reject: false,
    stripFinalNewline: false,
    input,
  });
}

/** Has a server started by a first call, and waits until it answers. Returns its process. */
export async function warmUp(place: WarmPlace): Promise<number> {
  const first = await call(place, ['--warm', '--', 'true']);
  expect(first).toMatchObject({ exitCode: 0, stderr: '' });
  const isThere = () =>
    existsSync(place.state) && readdirSync(place.state).some((name) => name.startsWith('warm-'));
  await eventually(() => expect(isThere()).toBe(true), 60_000);
  const [server = 0] = serversOf(place.state);
  expect(server).toBeGreaterThan(0);
  return server;
}
