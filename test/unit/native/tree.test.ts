import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type NativeExit,
  type NativeOutcome,
  STDIO_CAPTURE,
  STDIO_NULL,
} from '../../../src/native/contract.ts';
import { launchCommand } from '../../../src/native/launch.ts';
import { type PreparedSandbox, prepareSandbox } from '../../../src/run/resolve/prepare-sandbox.ts';
import { isAlive, until } from '../../support/bystander.ts';
import { makeHold } from '../../support/hold.ts';

/** What comes of a command, as it comes. */
interface Watched {
  readonly id: number;
  readonly exit: () => NativeExit | undefined;
  readonly end: Promise<NativeOutcome>;
}

describe.each([
  { name: 'a signal scope', without: {} },
  { name: 'a warden for each command', without: { signalScope: false } },
])('the tree of a command, held together by $name', ({ without }) => {
  const workspace = mkdtempSync(join(realpathSync(tmpdir()), 'native-tree-'));
  let prepared: PreparedSandbox;
  beforeAll(async () => {
    prepared = await prepareSandbox({ workspace }, (host) => ({ ...host, ...without }));
  });
  afterAll(() => {
    prepared.addon.closeConfinement(prepared.confinement);
    rmSync(workspace, { recursive: true, force: true });
  });

  function launch(script: string, background: boolean): Watched {
    let exit: NativeExit | undefined;
    let done: (outcome: NativeOutcome) => void = () => {};
    const end = new Promise<NativeOutcome>((resolve) => {
      done = resolve;
    });
    const id = launchCommand(
      prepared.addon,
      prepared.confinement,
      {
        program: '/bin/sh',
        argv: ['sh', '-c', script],
        env: Buffer.from('PATH=/usr/bin:/bin\0'),
        cwd: workspace,
        stdio: [STDIO_NULL, STDIO_CAPTURE, STDIO_CAPTURE],
        input: undefined,
        streamOutput: false,
        outputLimit: 1000,
        timeoutMs: 0,
        killGraceMs: 100,
        extras: background ? { background: true } : undefined,
      },
      (event) => {
        if (event.kind === 'exited') exit = event;
        if (event.kind === 'ended') done(event);
      },
    );
    return { id, exit: () => exit, end };
  }
  const treeOf = (id: number) =>
    new Promise<readonly number[]>((done) => {
      if (!prepared.addon.treeOf(id, done)) done([]);
    });

  it('is kept in the background, listed, and ended on request', async () => {
    const { id, exit, end } = launch('setsid sleep 60 & exit 3', true);
    await until(() => exit() !== undefined);
    expect(exit()).toMatchObject({ exitCode: 3, signal: 0, durationMs: expect.any(Number) });
    const members = await treeOf(id);
    expect([members.length, members.map(isAlive)]).toEqual([1, [true]]);
    prepared.addon.cancel(id, false);
    expect(await end).toMatchObject({ exitCode: 3, canceled: true, treeEnded: true });
    await until(() => !members.some(isAlive));
    expect(members.map(isAlive)).toEqual([false]);
    expect(await treeOf(id)).toEqual([]);
  });

  it('in the background ends by itself', async () => {
    const { words, letGo } = makeHold(workspace);
    const { exit, end } = launch(`setsid sh -c "${words}; echo late" & exit 4`, true);
    await until(() => exit() !== undefined);
    expect(exit()).toMatchObject({ exitCode: 4 });
    letGo();
    const outcome = await end;
    expect(outcome).toMatchObject({ exitCode: 4, canceled: false, treeEnded: true });
    expect(String(outcome.stdout)).toBe('late\n');
  });

  it('answers every question about it, also when it ends meanwhile', async () => {
    const { id, exit, end } = launch('sleep 60', false);
    const answers = await Promise.all([treeOf(id), treeOf(id), treeOf(id)]);
    for (const members of answers) expect(members.length).toBeGreaterThan(0);
    const late = Array.from({ length: 5 }, () => treeOf(id));
    prepared.addon.cancel(id, true);
    expect(await Promise.all([...late, treeOf(id)])).toHaveLength(6);
    expect((await end).outputHeld).toBeUndefined();
    expect(exit()).toBeUndefined();
  });
});
