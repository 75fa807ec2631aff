import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, expect, vi } from 'vitest';
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

  return {
    place,
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
    /** A server on a socket, which listens. */
    listening: async (args: readonly string[] = [], more: Readonly<Record<string, string>> = {}) => {
      const child = start(['--socket', socket, ...args], more);
      let out = '';
      child.stdout.on('data', (text) => {
        out += text;
      });
      await eventually(() => expect(out).toBe(`serve is ready: ${socket}\n`));
      return {
        child,
        connect: async (initialize: Readonly<Record<string, unknown>> = {}) => {
          const client = await connectTo(socket);
          await client.initialize(initialize);
          return client;
        },
      };
    },
  };
}
