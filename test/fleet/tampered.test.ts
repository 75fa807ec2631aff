import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { headers } from '@nats-io/transport-node';
import { describe, expect, it, vi } from 'vitest';
import { Lease, LeaseWatch, openQueue, type Queue, readWorker } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { makeFleetWorld, SHORT_LEASE } from './support.ts';

const world = makeFleetWorld();
const began = (file: string) =>
  eventually(() => expect(existsSync(join(world.place.workspace, file))).toBe(true), 60_000);

/** Somebody with the tools of the server. */
async function asAdministrator<T>(queue: string, work: (open: Queue) => Promise<T>): Promise<T> {
  const connection = await connectNats({ url: world.servers.url }, 'administrator');
  try {
    return await work(await openQueue(connection, queue));
  } finally {
    await connection.close();
  }
}

/** Hands over a job under an id, as a submitter would. */
const hand = ({ js, names }: Queue, job: string, command: string) => {
  const message = { version: 1, job, command, live: false, retry: 0, options: {} };
  return js.publish(names.jobSubject('normal', 'any'), JSON.stringify(message));
};

describe('what somebody does to the buckets of a queue', () => {
  it('the record of a job that runs is deleted: its result is told all the same', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const { words, letGo } = makeHold(world.place.workspace);
    const job = await fleet.submit(`echo > deleted; ${words}; echo end`);
    await began('deleted');
    await asAdministrator(queue, ({ records }) => records.delete(job.id));
    letGo();
    expect(await job.result).toMatchObject({ ok: true, stdout: 'end\n', fleet: { attempts: 1 } });
    expect(await fleet.result(job.id)).toMatchObject({ stdout: 'end\n' });
  });

  it('the record of a job that has ended is deleted: who asks for it, or cancels it, does not wait for ever', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const { id, result } = await fleet.submit(['true']);
    await result;
    await asAdministrator(queue, ({ records }) => records.delete(id));
    await expect(fleet.result(id, { wait: true })).rejects.toMatchObject({ code: 'fleet.unknown' });
    await expect(fleet.cancel(id)).rejects.toMatchObject({ code: 'fleet.unknown' });
  });

  it('records and leases cannot be purged, nor rolled up by a message: then a job would run twice', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    await world.worker(queue);
    const { fleet: ran } = await fleet.run(['true']);
    await asAdministrator(queue, async ({ js, manager, names, records, workers }) => {
      for (const bucket of [names.records, names.workers]) {
        await expect(manager.streams.purge(`KV_${bucket}`)).rejects.toThrow();
        const rolled = headers();
        rolled.set('Nats-Rollup', 'all');
        const publish = js.publish(`$KV.${bucket}.any`, '', { headers: rolled });
        await expect(publish).rejects.toThrow(/rollup/);
      }
      expect(await records.get(ran.job)).not.toBeNull();
      expect(await workers.get(ran.worker ?? '')).not.toBeNull();
    });
  });

  it('the record of a job that waits is there and deleted: whether it ran is not known, so it is not run', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const id = `${'d'.repeat(16)}.1`;
    await asAdministrator(queue, async (open) => {
      await open.records.put(id, 'x');
      await open.records.delete(id);
      await hand(open, id, 'echo > never');
    });
    await world.worker(queue);
    expect(await fleet.result(id, { wait: true })).toMatchObject({
      ...{ status: 'worker-lost', error: { message: expect.stringContaining('deleted') } },
    });
    expect(existsSync(join(world.place.workspace, 'never'))).toBe(false);
    expect(await fleet.run(['true'])).toMatchObject({ ok: true });
  });

  it('a record that is not understood: the job is not run, and takes nobody’s slot', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const id = `${'e'.repeat(16)}.1`;
    await asAdministrator(queue, async (open) => {
      await open.records.put(id, '{"state":"claimed","of":"another version"}');
      await hand(open, id, 'echo > neither');
    });
    const said: string[] = [];
    await world.worker(queue, { onProblem: (line) => void said.push(line) });
    expect(await fleet.run(['true'])).toMatchObject({ ok: true });
    expect(existsSync(join(world.place.workspace, 'neither'))).toBe(false);
    expect(said.filter((line) => line.includes(id))).toHaveLength(1);
    await expect(fleet.result(id)).rejects.toMatchObject({ code: 'output.lost' });
    await expect(fleet.cancel(id)).rejects.toMatchObject({ code: 'output.lost' });
  });

  it.each(['deleted', 'of another version'])(
    'a lease is %s: its worker goes on, and its job too',
    async (how) => {
      const queue = world.queue();
      const worker = await world.worker(queue, { leaseMs: SHORT_LEASE });
      const fleet = await world.fleet(queue);
      const file = `lease-${how.length}`;
      const { words, letGo } = makeHold(world.place.workspace);
      const job = await fleet.submit(`echo > ${file}; ${words}; echo end`, { retry: 1 });
      await began(file);
      const name = worker.id ?? '';
      await asAdministrator(queue, async (open) => {
        const { workers } = open;
        await (how === 'deleted' ? workers.delete(name) : workers.put(name, '{"state":"live","more":1}'));
        // Nobody else takes it for lost at once.
        expect(await new LeaseWatch(open).isGone(name, new AbortController().signal)).toBe(false);
        const beat = async () => {
          const entry = await workers.get(name);
          return (entry === null ? undefined : readWorker(entry.value)?.beat) ?? 0;
        };
        // It is written anew, and renewed from there.
        await eventually(async () => expect(await beat()).toBeGreaterThan(0), 60_000);
        const anew = await beat();
        await eventually(async () => expect(await beat()).toBeGreaterThan(anew), 60_000);
      });
      letGo();
      expect(await job.result).toMatchObject({ stdout: 'end\n', fleet: { attempts: 1, worker: name } });
      expect(worker.id).toBe(name);
    },
  );
});

describe('a clock that is wrong', () => {
  it('of a worker, by days, does not make jobs too old', async () => {
    const queue = world.queue();
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 6 * 24 * 3_600_000);
    try {
      await world.worker(queue);
      const fleet = await world.fleet(queue);
      const result = await fleet.run(['true']);
      expect(result).toMatchObject({ ok: true });
      expect(result.fleet.queueMs).toBeLessThan(24 * 3_600_000);
    } finally {
      clock.mockRestore();
    }
  });

  it('of who asks how a queue does, by days, makes nothing look old', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    await world.worker(queue);
    await fleet.submit(['true'], { labels: ['nobody-has'] });
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 6 * 24 * 3_600_000);
    try {
      const { oldestMs, workers } = await fleet.status();
      expect(oldestMs).toBeLessThan(24 * 3_600_000);
      expect(workers.map(({ seenMs }) => seenMs < 24 * 3_600_000)).toEqual([true]);
    } finally {
      clock.mockRestore();
    }
  });

  it('a job that is too old by now and was begun before ends as any whose worker is lost', async () => {
    const queue = world.queue();
    const worker = await world.worker(queue, { leaseMs: SHORT_LEASE });
    const fleet = await world.fleet(queue);
    const job = await fleet.submit('echo > old; sleep 1000');
    await began('old');
    const { prototype } = Lease;
    const { now } = prototype;
    const clock = vi.spyOn(prototype, 'now').mockImplementation(function (this: Lease) {
      return now.call(this) + 6 * 24 * 3_600_000;
    });
    try {
      await world.takeLease(queue, worker.id ?? '');
      await world.offerAgain(queue);
      await world.worker(queue);
      expect(await job.result).toMatchObject({ status: 'worker-lost' });
    } finally {
      clock.mockRestore();
    }
  });
});
