import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { CLI, makePlace, type Place } from './support.ts';

/** What hands calls over: beside the addon. */
export const CLIENT = join(dirname(CLI), '../build/Release/sandbox-run-client');

/** The words that an agent's settings begin with. */
export const WARM = [CLIENT, process.execPath, CLI] as const;

/** A place with a state directory, which the server of its calls listens in. */
export function makeWarmPlace(): Place & { readonly state: string } {
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
    dispose: () => {
      for (const pid of serversOf(state)) process.kill(pid, 'SIGKILL');
      place.dispose();
    },
  };
}

/** Processes that are servers of calls in a state directory. */
export function serversOf(state: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return words[2] === 'warm' && words[3]?.startsWith(state) === true;
      } catch {
        return false;
      }
    });
}

interface CallOptions {
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Makes a call by the client, to its end. */
export async function call(place: Place, words: readonly string[], options: CallOptions = {}) {
  const { exitCode, signal, stdout, stderr } = await startCall(place, words, options);
  return { exitCode, signal, stdout, stderr };
}

/** Starts a call by the client. */
export function startCall(
  place: Place,
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
export async function warmUp(place: Place & { readonly state: string }): Promise<number> {
  const first = await call(place, ['--warm', '--', 'true']);
  expect(first).toMatchObject({ exitCode: 0, stderr: '' });
  const isThere = () =>
    existsSync(place.state) && readdirSync(place.state).some((name) => name.startsWith('warm-'));
  await eventually(() => expect(isThere()).toBe(true), 20_000);
  const [server = 0] = serversOf(place.state);
  expect(server).toBeGreaterThan(0);
  return server;
}
