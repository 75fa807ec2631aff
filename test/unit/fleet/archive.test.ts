import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { deferred } from '../../../src/base/deferred.ts';
import { sendWorkspace } from '../../../src/fleet/archive/send.ts';
import { forEach } from '../../../src/fleet/archive/tree.ts';
import { eventually } from '../../support/eventually.ts';

it('of many that are worked on, one fails: no other one is begun, and those that were have ended', async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const [failing, others] = [deferred<void>(), deferred<void>()];
  const working = forEach([...Array(20).keys()], 4, async (item) => {
    begun.push(item);
    await (item === 1 ? failing : others).promise;
    ended.push(item);
    if (item === 1) throw new Error('no room');
  });
  const failed = expect(working).rejects.toThrow('no room');
  await eventually(() => expect(begun).toHaveLength(4));
  failing.resolve();
  await eventually(() => expect(ended).toEqual([1]));
  await nextTurn();
  others.resolve();
  await failed;
  expect(begun).toEqual([0, 1, 2, 3]);
  expect(ended.toSorted()).toEqual(begun);
});

it('what is committed cannot be sent: git does not wait for ever to be read', async () => {
  const project = mkdtempSync(join(tmpdir(), 'sandbox-run-archive-'));
  onTestFinished(() => rmSync(project, { recursive: true }));
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', project, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args]);
  git('init', '-q');
  for (const name of ['a', 'b']) writeFileSync(join(project, name), name.repeat(1_000_000));
  git('add', '-A');
  git('commit', '-q', '-m', 'two');
  const blobs = { putAs: () => Promise.reject(new Error('refused')) };
  await expect(sendWorkspace(blobs as never, `git:${project}`)).rejects.toThrow('refused');
  const reading = () =>
    readdirSync('/proc/self/task')
      .flatMap((task) => readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' '))
      .filter((pid) => pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(project));
  await eventually(() => expect(reading()).toEqual([]), 60_000);
});
