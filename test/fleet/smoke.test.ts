import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startCli } from '../cli/support.ts';
import { lacks } from '../support/programs.ts';
import { makeFleetWorld, startWorkerProcess } from './support.ts';

// The door of a fleet once, as users have it: the built command line against a real server.
describe.skipIf(lacks('nats-server'))('a fleet', () => {
  const world = makeFleetWorld();

  it('runs a job on a worker, in its sandbox, and tells what became of it', async () => {
    const queue = world.queue();
    const worker = await startWorkerProcess(world, queue, { args: ['--grace', '0'] });
    const { workspace, root } = world.place;
    const submitter = {
      workspace,
      env: { PATH: process.env.PATH ?? '', HOME: root, TMPDIR: world.place.tmp },
    };
    const on = ['--queue', queue, '--url', world.servers.url];
    const command = `echo out; echo err >&2; echo in > made; echo x > ${root}/outside; cat made; exit 7`;
    const ended = await startCli(submitter, ['submit', ...on, '--wait', '-c', command]);
    expect(ended).toMatchObject({ exitCode: 7, stdout: 'out\nin\n' });
    expect(ended.stderr).toContain('err\n');
    expect([existsSync(join(workspace, 'made')), existsSync(join(root, 'outside'))]).toEqual([true, false]);
    const status = await startCli(submitter, ['fleet', 'status', ...on, '--json']);
    expect(JSON.parse(status.stdout)).toMatchObject({
      queue,
      slots: 1,
      lost: 0,
      workers: [{ worker: worker.id }],
    });
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  });
});
