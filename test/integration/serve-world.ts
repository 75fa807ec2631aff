import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, expect, vi } from 'vitest';
import { dispatch, onBehalfOf } from '../../src/cli/index.ts';
import type { Caller } from '../../src/serve/index.ts';
import { CLI, makePlace } from '../cli/support.ts';
import { processesWith } from '../support/leftovers.ts';
import { makeSupervisedConfiguration } from '../support/unjudged-policy.ts';
import { connectTo, eventually, RawClient } from './serve-client.ts';

/** Servers of one test file, which are ended after each test, and checked to have left nothing. */
export function makeServeWorld() {
  vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });
  const place = makePlace();
  const private_ = join(place.root, 'sockets');
  mkdirSync(private_, { mode: 0o700 });
  const socket = join(private_, 'serve.sock');
  const judged = { XDG_CONFIG_HOME: join(place.root, 'no-config') };
  const supervised = { XDG_CONFIG_HOME: makeSupervisedConfiguration(place.root) };
  const stops: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
    rmSync(socket, { force: true });
    await eventually(() => expect(processesWith(place.root)).toEqual([]));
  });
  afterAll(() => place.dispose());

  function start(args: readonly string[], more: Readonly<Record<string, string>>) {
    const child = execa(process.execPath, [CLI, 'serve', ...args], {
      cwd: place.workspace,
      env: { ...place.env, XDG_STATE_HOME: join(place.root, 'state'), ...more },
      extendEnv: false,
      reject: false,
      stdin: 'pipe',
      buffer: { stdout: false },
    });
    stops.push(() => {
      child.kill('SIGTERM');
      return child;
    });
    return child;
  }

  /** The same in this process, on behalf of a caller: what a start of Node for each test would not show. */
  async function startHere(path: string, args: readonly string[], more: Readonly<Record<string, string>>) {
    const env = { ...place.env, XDG_STATE_HOME: join(place.root, 'state'), ...more };
    const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
    // What it reads of its process, as HOME.
    Object.assign(process.env, env);
    let end = (_signal: NodeJS.Signals): void => {};
    const said = { 1: '', 2: '' };
    const caller: Caller = {
      env,
      cwd: () => place.workspace,
      stdio: [0, 1, 2],
      write: (fd, bytes) => {
        said[fd] += Buffer.from(bytes).toString();
        return true;
      },
      onSignals: (_, handle) => {
        end = handle;
        return { [Symbol.dispose]: () => {} };
      },
      stop: () => {},
    };
    let isOver = false;
    const ended = onBehalfOf(caller, () => dispatch(['serve', '--socket', path, ...args])).finally(() => {
      isOver = true;
    });
    stops.push(async () => {
      end('SIGTERM');
      await ended;
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      expect(said[2]).toBe('');
    });
    await eventually(() => expect(said[1] !== '' || isOver, said[2]).toBe(true));
    expect(said[1]).toBe(`serve is ready: ${path}\n`);
  }

  const connect = async (path: string, initialize: Readonly<Record<string, unknown>> = {}) => {
    const client = await connectTo(path);
    const about = await client.initialize(initialize);
    return { client, about };
  };

  return {
    place,
    /** A server of this process on a socket, which listens. */
    here: async (args: readonly string[] = [], more: Readonly<Record<string, string>> = {}) => {
      await startHere(socket, args, more);
      return {
        connect: async (initialize: Readonly<Record<string, unknown>> = {}) =>
          (await connect(socket, initialize)).client,
      };
    },
    /** The same with one client, and what it is told first. */
    hereWithClient: async (
      args: readonly string[] = [],
      more: Readonly<Record<string, string>> = {},
      initialize: Readonly<Record<string, unknown>> = {},
    ) => {
      // Each at its own place: a test may have several.
      const path = join(private_, `${stops.length}.sock`);
      await startHere(path, args, more);
      return connect(path, initialize);
    },
    /** In a directory that only this user can write. */
    socket,
    sockets: private_,
    /** The environment of a server whose policy is the built-in one. */
    judged,
    /** The same of one that asks by risk, whatever the sandbox holds. */
    supervised,
    start,
    /** A server with one client on its pipes. */
    stdio: (args: readonly string[] = [], more: Readonly<Record<string, string>> = {}) => {
      const child = start(['--stdio', ...args], more);
      return { child, client: new RawClient(child.stdin, child.stdout) };
    },
    /** A server that is a process of its own, on a socket, which listens. */
    listening: async (args: readonly string[] = [], more: Readonly<Record<string, string>> = {}) => {
      const child = start(['--socket', socket, ...args], more);
      let out = '';
      child.stdout.on('data', (text) => {
        out += text;
      });
      await eventually(() => expect(out).toBe(`serve is ready: ${socket}\n`));
      return {
        child,
        connect: async (initialize: Readonly<Record<string, unknown>> = {}) =>
          (await connect(socket, initialize)).client,
      };
    },
  };
}
