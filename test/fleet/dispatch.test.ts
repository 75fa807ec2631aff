import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import { MOST_NEEDS, openQueue } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { makeFleetWorld } from './support.ts';

const world = makeFleetWorld();

describe('a job', () => {
  it('is told of by a worker that waits for it to end, which runs it to its end', async () => {
    const queue = world.queue();
    const said: string[] = [];
    const worker = await world.worker(queue, { slots: 2, onProblem: (line) => void said.push(line) });
    const fleet = await world.fleet(queue);
    const begun = deferred<void>();
    const { words, letGo } = makeHold(world.place.workspace);
    const command = `echo begun; ${words}; echo ended`;
    const job = await fleet.submit(command, { onOutput: () => begun.resolve() });
    await begun.promise;
    const stopped = worker.stop(60_000);
    await eventually(() => expect(said).toHaveLength(1));
    letGo();
    await stopped;
    expect(await job.result).toMatchObject({ ok: true, stdout: 'begun\nended\n' });
    expect(said).toEqual(['takes no more jobs; 1 that runs has 60 s to end']);
  });

  it('has the result that a local run has', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const result = await fleet.run('echo out; echo err >&2; exit 3');
    expect(result).toMatchObject({
      ...{ status: 'exited', exitCode: 3, ok: false, stdout: 'out\n', stderr: 'err\n', outputCut: false },
      fleet: { attempts: 1 },
    });
    expect(result).toHaveProperty('report.backend');
  });

  it('takes input, variables and a directory, and gives bytes', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const result = await fleet.run('cat; printf %s "$A"; pwd', {
      ...{ input: Buffer.from([255, 10]), env: { A: 'b' }, encoding: 'bytes' },
    });
    expect(result.ok).toBe(true);
    expect(Buffer.from(('bytes' in result ? result.bytes : undefined)?.stdout ?? [])).toEqual(
      Buffer.concat([Buffer.from([255, 10]), Buffer.from(`b${world.place.workspace}\n`)]),
    );
  });

  it('shows its output while it runs, in order and complete', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const seen: Buffer[] = [];
    const { words, letGo } = makeHold(world.place.workspace);
    const result = await fleet.run(`echo first; ${words}; seq 1 200000; echo end >&2`, {
      maxOutput: 1000,
      onOutput: ({ stream, bytes }): void => {
        letGo();
        if (stream === 'stdout') seen.push(Buffer.from(bytes));
      },
    });
    expect(result).toMatchObject({ ok: true, outputCut: false });
    const lines = Array.from({ length: 200_000 }, (_, at) => `${at + 1}\n`).join('');
    expect(Buffer.concat(seen).toString()).toBe(`first\n${lines}`);
    expect(result.stdout.length).toBeLessThan(2000);
  });

  it('with more output than a message takes has all of it', async () => {
    const queue = world.queue();
    await world.worker(queue, { sandbox: { workspace: world.place.workspace, maxOutput: 4_000_000 } });
    const fleet = await world.fleet(queue);
    const result = await fleet.run('head -c 3000000 /dev/zero | tr "\\0" x');
    expect(result.stdout.length).toBe(3_000_000);
  });

  it('is canceled while it runs, and before a worker has it', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const started = await fleet.submit('echo here > running; exec sleep 100');
    const waiting = await fleet.submit('echo never > never');
    await eventually(() => void readFileSync(join(world.place.workspace, 'running')), 20_000);
    waiting.cancel();
    expect(await waiting.result).toMatchObject({ status: 'canceled', fleet: { attempts: 0 } });
    started.cancel();
    expect(await started.result).toMatchObject({ status: 'canceled', fleet: { attempts: 1 } });
    expect(await fleet.run('test -e never')).toMatchObject({ exitCode: 1 });
  });

  it('ends after its time, and never later than the policy of the worker says', async () => {
    const queue = world.queue();
    await world.worker(queue, { slots: 2, sandbox: { workspace: world.place.workspace, timeout: 600 } });
    const fleet = await world.fleet(queue);
    const results = await Promise.all([
      fleet.run('sleep 100', { timeout: 300 }),
      fleet.run('sleep 100', { timeout: 0 }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['timed-out', 'timed-out']);
  });

  it('of a high priority goes first', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const order: string[] = [];
    const run = async (priority: 'high' | 'normal' | 'low') => {
      const job = await fleet.submit(['true'], { priority });
      void job.result.then(() => order.push(priority));
      return job.result;
    };
    const jobs = [await run, await run, await run].map((one, at) =>
      one((['low', 'normal', 'high'] as const)[at] ?? 'low'),
    );
    await eventually(async () =>
      expect((await fleet.status()).jobs).toMatchObject({ high: 1, normal: 1, low: 1 }),
    );
    await world.worker(queue);
    await Promise.all(jobs);
    expect(order).toEqual(['high', 'normal', 'low']);
  });

  it('goes to a worker that has what it needs', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const job = await fleet.submit(['true'], { labels: ['gpu', 'arch=arm64'] });
    const plain = await fleet.run(['true']);
    expect(await fleet.result(job.id)).toBeUndefined();
    const able = await world.worker(queue, { labels: ['arch=arm64', 'gpu', 'other'] });
    const result = await job.result;
    expect(result.fleet.worker).toBe(able.id);
    expect(plain.fleet.worker).not.toBe(able.id);
  });

  it('of more sets of labels than a worker looks for is left to others, and it says so once', async () => {
    const queue = world.queue();
    const said: string[] = [];
    const labels = Array.from({ length: 12 }, (_, at) => `l${String(at).padStart(2, '0')}`);
    const worker = await world.worker(queue, { labels, onProblem: (line) => void said.push(line) });
    const connection = await connectNats({ url: world.servers.url }, 'labels');
    onTestFinished(() => connection.close());
    const { manager, names } = await openQueue(connection, queue);
    for (const one of labels)
      for (const two of labels)
        for (const three of labels)
          if (one < two && two < three) connection.publish(names.needs, `${one}_${two}_${three}`);
    for (const one of labels)
      for (const two of labels) if (one < two) connection.publish(names.needs, `${one}_${two}`);
    const consumers = async () => (await manager.streams.info(names.jobs)).state.consumer_count;
    await eventually(async () => expect(await consumers()).toBe(3 * MOST_NEEDS), 60_000);
    await eventually(() => expect(said).toEqual([expect.stringContaining(`${MOST_NEEDS} sets of labels`)]));
    const fleet = await world.fleet(queue);
    expect(await fleet.run(['true'], { labels: ['l00', 'l01', 'l02'] })).toMatchObject({ ok: true });
    const left = await fleet.submit(['true'], { labels: ['l10', 'l11'] });
    expect(await fleet.run(['true'])).toMatchObject({ fleet: { worker: worker.id } });
    expect(await fleet.result(left.id)).toBeUndefined();
    expect(await consumers()).toBe(3 * MOST_NEEDS);
  });

  it('that is refused says so as a local run does', async () => {
    const queue = world.queue();
    await world.worker(queue, {
      sandbox: {
        workspace: world.place.workspace,
        policy: { unsafe: { unjudged_commands: false }, commands: { allow: ['ls'] } },
      },
    });
    const fleet = await world.fleet(queue);
    writeFileSync(join(world.place.workspace, 'kept'), '');
    expect(await fleet.run(['rm', 'kept'])).toMatchObject({ status: 'denied', ok: false });
    expect(await fleet.run(['ls', 'kept'])).toMatchObject({ stdout: 'kept\n' });
  });
});
