import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NativeExit, NativeOutcome } from '../../../../src/confine/native/contract.ts';
import type { Running } from '../../../../src/confine/running.ts';
import { type PreparedSandbox, prepareSandbox } from '../../../../src/run/index.ts';
import { OF_THIS_PROCESS } from '../../../../src/workspace/index.ts';
import { isAlive, until } from '../../../support/bystander.ts';
import { makeHold } from '../../../support/hold.ts';

/** What comes of a command, as it comes. */
interface Watched {
  readonly running: Running;
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
    prepared = await prepareSandbox({ workspace }, OF_THIS_PROCESS, (host) => ({ ...host, ...without }));
  });
  afterAll(() => {
    prepared.confinement.close();
    rmSync(workspace, { recursive: true, force: true });
  });

  function launch(script: string, background: boolean): Watched {
    let exit: NativeExit | undefined;
    const running = prepared.confinement.start({
      program: '/bin/sh',
      argv: ['sh', '-c', script],
      env: { PATH: '/usr/bin:/bin' },
      killGraceMs: 100,
      ...(background ? { extras: { background: true } } : {}),
    });
    running.events((event) => {
      if (event.kind === 'exited') exit = event;
    });
    return { running, exit: () => exit, end: running.exited };
  }

  it('is kept in the background, listed, and ended on request', async () => {
    const { running, exit, end } = launch('setsid sleep 60 & exit 3', true);
    await until(() => exit() !== undefined);
    expect(exit()).toMatchObject({ exitCode: 3, signal: 0, durationMs: expect.any(Number) });
    const members = await running.members();
    expect([members.length, members.map(isAlive)]).toEqual([1, [true]]);
    running.end();
    expect(await end).toMatchObject({ exitCode: 3, canceled: true, treeEnded: true });
    await until(() => !members.some(isAlive));
    expect(members.map(isAlive)).toEqual([false]);
    expect(await running.members()).toEqual([]);
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
    const { running, exit, end } = launch('sleep 60', false);
    const answers = await Promise.all([running.members(), running.members(), running.members()]);
    for (const members of answers) expect(members.length).toBeGreaterThan(0);
    const late = Array.from({ length: 5 }, () => running.members());
    running.end(true);
    expect(await Promise.all([...late, running.members()])).toHaveLength(6);
    expect((await end).outputHeld).toBeUndefined();
    expect(exit()).toBeUndefined();
  });
});
