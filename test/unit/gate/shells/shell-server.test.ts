import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectToShell } from '../../../../src/gate/shells/shell-client.ts';
import {
  listenForShell,
  type ServedShell,
  type ShellServer,
} from '../../../../src/gate/shells/shell-server.ts';
import { loadAddon } from '../../../../src/native/load.ts';
import { deferred } from '../../../../src/util/deferred.ts';

const root = mkdtempSync(join(tmpdir(), 'sandbox-run-shells-'));
const path = join(root, 'one.sock');
let server: ShellServer;
let runs: ReturnType<typeof deferred<void>>;

beforeEach(async () => {
  runs = deferred<void>();
  server = await listenForShell({
    path,
    peerCredentials: loadAddon().peerCredentials,
    about: { id: 'one', workspace: root },
    confinement: '',
    unusedTimeout: 0,
    mostSilence: 100,
  });
  const shell: ServedShell = {
    cwd: root,
    run: async () => {
      await runs.promise;
      throw new Error('enough');
    },
  };
  server.serve(shell);
});
afterEach(async () => {
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

describe('a connection that says nothing', () => {
  it('is closed, unless it waits for its command', async () => {
    const said: string[] = [];
    const ended = deferred<void>();
    const busy = await connectToShell(path, ({ type }) => said.push(type), ended.resolve);
    busy?.send({ type: 'run', command: ':', stream: false, terminal: false });
    await new Promise((done) =>
      connect(path)
        .on('error', () => {})
        .resume()
        .once('close', done),
    );
    // Much longer than the other one was heard.
    await new Promise((done) => setTimeout(done, 300));
    expect(said).toEqual([]);
    runs.resolve();
    await ended.promise;
    expect(said).toEqual(['error']);
  });
});
