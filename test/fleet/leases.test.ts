import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { DEFAULT_LEASE, marginOf, readWorker } from '../../src/fleet/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { processesWith } from '../support/leftovers.ts';
import { makeFleetWorld, SHORT_LEASE, startWorkerProcess } from './support.ts';

const world = makeFleetWorld();
const LONG = 60_000;

/** Appends a line, then goes on for ever, with a mark in the arguments of a process of its tree. */
const endless = (file: string, mark: string) =>
  `echo begun >> ${file}; sleep 1000 & exec -a ${mark} sleep 1000`;
const linesOf = (file: string) => {
  const path = join(world.place.workspace, file);
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
};

describe('a worker that dies', () => {
  it('by SIGKILL: its job ends as worker-lost, is not run again, and its tree is gone', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const first = await startWorkerProcess(world, queue);
    const mark = 'mark-of-sigkill';
    const job = await fleet.submit(endless('killed', mark));
    await eventually(() => expect(linesOf('killed')).toHaveLength(1), LONG);
    await eventually(() => expect(processesWith(mark).length).toBeGreaterThan(0));
    first.kill('SIGKILL');
    await eventually(() => expect(processesWith(mark)).toEqual([]), LONG);
    await world.shortenLease(queue, first.id);
    const other = await startWorkerProcess(world, queue);
    expect(await job.result).toMatchObject({
      ...{ status: 'worker-lost', ok: false, error: { code: 'fleet.worker_lost' } },
      fleet: { attempts: 1, worker: first.id },
    });
    expect(linesOf('killed')).toHaveLength(1);
    // The queue goes on.
    expect(await fleet.run(['true'])).toMatchObject({ ok: true, fleet: { worker: other.id } });
    // Workers tell how they do with each renewal.
    await eventually(async () => {
      const status = await fleet.status();
      expect(status.workers.find(({ worker }) => worker === first.id)?.state).toBe('lost');
      expect(status).toMatchObject({ ...{ lost: 1, slots: 1, running: 0, done: 1 }, jobs: { normal: 0 } });
    }, LONG);
  });

  it('with no job, so that no other worker looks at its lease, counts as lost all the same', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const idle = await startWorkerProcess(world, queue);
    idle.kill('SIGKILL');
    await idle.ended;
    await world.shortenLease(queue, idle.id);
    const waits = await fleet.submit(['true']);
    await eventually(async () => {
      const status = await fleet.status();
      expect(status.workers).toMatchObject([{ worker: idle.id, state: 'lost' }]);
      expect(status).toMatchObject({ lost: 1, slots: 0, unmet: [{ labels: [], jobs: 1 }] });
    }, LONG);
    waits.cancel();
    await waits.result;
  });

  it('is told of once, however often workers renew their leases while it is asked', async () => {
    const name = world.queue();
    const fleet = await world.fleet(name);
    const worker = await world.worker(name);
    const { workers } = await world.open(name);
    const text = (await workers.get(worker.id ?? ''))?.string() ?? '';
    const keys = Array.from({ length: 20 }, (_, index) => `${index}`.padStart(16, '0'));
    const renewed = (async () => {
      for (let round = 0; round < 100; round += 1)
        await Promise.all(keys.map((key) => workers.put(key, text)));
    })();
    let over = false;
    void renewed.finally(() => {
      over = true;
    });
    do {
      const told = (await fleet.status()).workers.map((one) => one.worker);
      expect(told).toEqual([...new Set(told)]);
    } while (!over);
    await renewed;
  });

  it('has its job run again where that was asked for', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const first = await startWorkerProcess(world, queue);
    const job = await fleet.submit(
      'echo begun >> again; if [ $(wc -l < again) -gt 1 ]; then echo done; else sleep 1000; fi',
      { retry: 1 },
    );
    await eventually(() => expect(linesOf('again')).toHaveLength(1), LONG);
    first.kill('SIGKILL');
    await first.ended;
    await world.shortenLease(queue, first.id);
    await world.offerAgain(queue);
    const other = await startWorkerProcess(world, queue);
    expect(await job.result).toMatchObject({
      ...{ status: 'exited', ok: true, stdout: 'done\n' },
      fleet: { attempts: 2, worker: other.id },
    });
    expect(linesOf('again')).toHaveLength(2);
  });

  it.each([
    ['by SIGKILL', 'SIGKILL'],
    ['as it was told to', 'SIGTERM'],
  ] as const)(
    '%s, and no other one is there: who cancels its job does not wait for ever',
    async (_how, signal) => {
      const queue = world.queue();
      const fleet = await world.fleet(queue);
      const only = await startWorkerProcess(world, queue, { args: ['--grace', '0'] });
      const job = await fleet.submit(endless(`only-${signal}`, 'mark-of-only'), { retry: 3 });
      await eventually(() => expect(linesOf(`only-${signal}`)).toHaveLength(1), LONG);
      only.kill(signal);
      await only.ended;
      if (signal === 'SIGKILL') await world.shortenLease(queue, only.id);
      job.cancel();
      expect(await job.result).toMatchObject({
        ...{ status: 'worker-lost', error: { message: expect.stringMatching(/lost, and .*canceled/) } },
        fleet: { attempts: 1, worker: only.id },
      });
      // Nobody runs it any more, although it is offered before the next one.
      await world.offerAgain(queue);
      await startWorkerProcess(world, queue);
      expect(await fleet.run(['true'])).toMatchObject({ ok: true });
      expect(linesOf(`only-${signal}`)).toHaveLength(1);
    },
  );

  it('that only stopped for less than its lease keeps its job', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const first = await startWorkerProcess(world, queue);
    const other = await startWorkerProcess(world, queue);
    const { words, letGo } = makeHold(world.place.workspace);
    const job = await fleet.submit(`echo begun >> paused; ${words}; echo end`);
    await eventually(() => expect(linesOf('paused')).toHaveLength(1), LONG);
    const { workers } = await world.open(queue);
    const beats = async () => {
      const entries = await Promise.all([first, other].map(({ id }) => workers.get(id)));
      return entries.map((entry) => (entry === null ? undefined : readWorker(entry.value)?.beat) ?? -1);
    };
    // Both, as either has it: for longer than from one renewal to the next.
    for (const { kill } of [first, other]) kill('SIGSTOP');
    const before = await beats();
    await sleep(DEFAULT_LEASE / 4);
    for (const { kill } of [first, other]) kill('SIGCONT');
    await eventually(async () => {
      const [one = -1, two = -1] = await beats();
      expect(one).toBeGreaterThan(before[0] ?? 0);
      expect(two).toBeGreaterThan(before[1] ?? 0);
    }, LONG);
    // Both have renewed their leases since, so neither has lost the one by which it has the job.
    letGo();
    expect(await job.result).toMatchObject({ ok: true, stdout: 'end\n', fleet: { attempts: 1 } });
    expect(linesOf('paused')).toHaveLength(1);
  });
});

describe('a worker that ends', () => {
  it('lets its job end within the grace', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const first = await startWorkerProcess(world, queue, { args: ['--grace', '60'] });
    const { words, letGo } = makeHold(world.place.workspace);
    const job = await fleet.submit(`echo begun >> graceful; ${words}; echo end`);
    await eventually(() => expect(linesOf('graceful')).toHaveLength(1), LONG);
    first.kill('SIGTERM');
    await eventually(() => expect(first.said()).toContain('1 that runs has 60 s to end'), LONG);
    letGo();
    expect(await job.result).toMatchObject({ ok: true, stdout: 'end\n' });
    expect(await first.ended).toBe(0);
  });

  it('hands over at once what may be run again', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const first = await startWorkerProcess(world, queue, { args: ['--grace', '0', '--lease', '600'] });
    const job = await fleet.submit(
      'echo begun >> handed; if [ $(wc -l < handed) -gt 1 ]; then echo done; else sleep 1000; fi',
      { retry: 1 },
    );
    await eventually(() => expect(linesOf('handed')).toHaveLength(1), LONG);
    await startWorkerProcess(world, queue);
    first.kill('SIGTERM');
    expect(await job.result).toMatchObject({ ok: true, stdout: 'done\n', fleet: { attempts: 2 } });
  });
});

describe('a worker that is cut off', () => {
  it('ends its tree before its lease is over, and another one may then have the job', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const leaseMs = 4 * DEFAULT_LEASE;
    const { now } = performance;
    const since = performance.now();
    const worker = await world.worker(queue, { leaseMs });
    const mark = 'mark-of-the-cut';
    const job = await fleet.submit(endless('cut', mark));
    await eventually(() => expect(linesOf('cut')).toHaveLength(1), LONG);
    const before = worker.id;
    await eventually(() => expect(processesWith(mark).length).toBeGreaterThan(0));
    const [server] = world.servers.nodes;
    let forward = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + forward);
    try {
      await server?.pause();
      // All that time passes at once.
      forward = leaseMs - marginOf(leaseMs);
      await eventually(() => expect(processesWith(mark)).toEqual([]), LONG);
      // Others may take its lease away no sooner than so long after it was taken.
      expect(performance.now() - since).toBeLessThan(leaseMs);
    } finally {
      clock.mockRestore();
      server?.resume();
    }
    await world.shortenLease(queue, before ?? '');
    expect(await job.result).toMatchObject({ status: 'worker-lost', fleet: { worker: before } });
    expect(linesOf('cut')).toHaveLength(1);
    // It goes on under another name.
    await eventually(() => expect(worker.id).not.toBeUndefined(), LONG);
    expect(worker.id).not.toBe(before);
    expect(await fleet.run(['true'])).toMatchObject({ ok: true, fleet: { worker: worker.id } });
  });

  it('ends when it is told to, also with a result that nobody takes', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const policy = join(world.place.root, 'at-once.toml');
    writeFileSync(policy, '[limits]\nkill_grace_seconds = 0\n', { mode: 0o600 });
    const args = ['--grace', '0', '--lease', '5', '--policy', policy];
    const worker = await startWorkerProcess(world, queue, { args });
    const mark = 'mark-of-the-deserted';
    const { words, letGo } = makeHold(world.place.workspace);
    await fleet.submit(`echo begun >> deserted; exec -a ${mark} bash -c "${words}"`);
    await eventually(() => expect(linesOf('deserted')).toHaveLength(1), LONG);
    await eventually(() => expect(processesWith(mark).length).toBeGreaterThan(0), LONG);
    const [server] = world.servers.nodes;
    await server?.kill();
    try {
      letGo();
      await eventually(() => expect(processesWith(mark)).toEqual([]), LONG);
      worker.kill('SIGTERM');
      expect(await worker.ended).toBe(0);
    } finally {
      await server?.start();
    }
  });

  it('cannot end a job that another one has by then', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const worker = await world.worker(queue, { leaseMs: SHORT_LEASE });
    appendFileSync(join(world.place.workspace, 'late'), '');
    // As if another worker had taken its lease away.
    const job = await fleet.submit('echo begun >> late; sleep 1000; echo end', { onOutput: () => {} });
    await eventually(() => expect(linesOf('late')).toHaveLength(1), LONG);
    await world.takeLease(queue, worker.id ?? '');
    await world.offerAgain(queue);
    await world.worker(queue);
    // What it wrote at last was sent or not: nobody knows.
    expect(await job.result).toMatchObject({ status: 'worker-lost', outputCut: true });
  });
});
