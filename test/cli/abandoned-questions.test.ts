import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { until } from '../support/approvals.ts';
import { makeSupervisedConfiguration } from '../support/unjudged-policy.ts';
import { CLI, cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
const env = {
  XDG_CONFIG_HOME: makeSupervisedConfiguration(place.root),
  XDG_STATE_HOME: join(place.root, 'state'),
};
const children: { kill(signal: 'SIGKILL'): unknown }[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(() => place.dispose());

const approvals = (...args: readonly string[]) => cli(place, ['approvals', ...args], { env });

interface Listed {
  readonly id: string;
  readonly state: string;
  readonly command: string;
}
async function listed(...args: readonly string[]): Promise<readonly Listed[]> {
  const { stdout } = await approvals('list', '--json', ...args);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** A command that somebody has to approve, once it waits. `before`: what starts the launcher. */
async function ask(command: string, before: readonly string[] = []) {
  const [program = '', ...args] = [...before, process.execPath, CLI, '--ask', 'queue', '-c', command];
  const asker = execa(program, args, {
    cwd: place.workspace,
    env: { ...place.env, ...env },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  children.push(asker);
  const { id } = await until(async () => (await listed()).find((one) => one.command === command));
  return { asker, id };
}

async function expectAbandoned(id: string, command: string): Promise<void> {
  expect((await listed()).map((one) => one.id)).not.toContain(id);
  expect((await listed('--all')).find((one) => one.id === id)).toMatchObject({ state: 'abandoned' });
  for (const answer of [
    ['approve', id, '--scope', 'always'],
    ['approve', id],
    ['deny', id],
  ]) {
    const answered = await approvals(...answer);
    expect(answered).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(answered.stderr);
    expect(answered.stderr).toContain('the process that asked has ended');
  }
  expect((await approvals('grants', '--json')).stdout).not.toContain(command);
}

describe('a question whose asker', () => {
  it('lives is listed and answered, also while it is stopped (control)', async () => {
    const { asker, id } = await ask('rm -rf alive; echo ran');
    asker.kill('SIGSTOP');
    expect((await listed()).map((one) => one.id)).toContain(id);
    expect((await approvals('approve', id)).exitCode).toBe(0);
    asker.kill('SIGCONT');
    expect(await asker).toMatchObject({ exitCode: 0, stdout: 'ran' });
  });

  it('was killed waits no more, and cannot be answered', async () => {
    const command = 'rm -rf killed';
    const { asker, id } = await ask(command);
    asker.kill('SIGKILL');
    await asker;
    await expectAbandoned(id, command);
  });

  it('was killed, and nobody has noticed its end, neither', async () => {
    const command = 'rm -rf zombie';
    const parent = [
      'python3',
      '-c',
      'import os, sys, time, signal\npid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])\nsignal.signal(signal.SIGUSR1, lambda *_: os.kill(pid, signal.SIGKILL))\nwhile True: time.sleep(0.1)',
    ];
    const { asker, id } = await ask(command, parent);
    asker.kill('SIGUSR1');
    await until(async () => ((await listed()).some((one) => one.id === id) ? undefined : true));
    await expectAbandoned(id, command);
  });

  it('was killed after the answer has nothing left to use', async () => {
    const { asker, id } = await ask('rm -rf late');
    asker.kill('SIGSTOP');
    expect((await approvals('approve', id)).exitCode).toBe(0);
    asker.kill('SIGKILL');
    await asker;
    expect((await listed('--all')).find((one) => one.id === id)).toMatchObject({ state: 'abandoned' });
  });

  it('was killed is told to those that watch', async () => {
    const { asker, id } = await ask('rm -rf watched');
    const watch = execa(process.execPath, [CLI, 'approvals', 'watch', '--json'], {
      env: { ...place.env, ...env },
      extendEnv: false,
      stdin: 'ignore',
      reject: false,
    });
    children.push(watch);
    const told: { readonly id?: string; readonly state?: string; readonly request?: { id: string } }[] = [];
    const reading = (async () => {
      for await (const line of watch) told.push(JSON.parse(line));
    })();
    await until(() => told.find(({ request }) => request?.id === id));
    asker.kill('SIGKILL');
    expect(await until(() => told.find((one) => one.id === id))).toMatchObject({ state: 'abandoned' });
    watch.kill('SIGTERM');
    await reading;
  });
});
