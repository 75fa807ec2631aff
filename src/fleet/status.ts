import type { FleetStatus } from '../model/fleet.ts';
import { readWorker } from './lease.ts';
import { jobsBySubject, labelsOf, type Queue, satisfies } from './queue.ts';

/** How a queue and its workers do. @throws what the server says. */
export async function statusOf(queue: Queue): Promise<FleetStatus> {
  const now = await timeOf(queue);
  const [found, workers, info] = await Promise.all([
    jobsBySubject(queue),
    workersOf(queue, now),
    queue.manager.streams.info(queue.names.jobs),
  ]);
  const jobs = { high: 0, normal: 0, low: 0 };
  for (const { priority, jobs: count } of found) jobs[priority] += count;
  const live = workers.filter(({ state }) => state === 'live');
  const unmet = new Map<string, number>();
  for (const { needs, jobs: count } of found)
    if (!live.some(({ labels }) => satisfies(labels, needs)))
      unmet.set(needs, (unmet.get(needs) ?? 0) + count);
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
  const { state } = info;
  return {
    queue: queue.name,
    jobs,
    unmet: [...unmet].map(([needs, count]) => ({ labels: [...labelsOf(needs)], jobs: count })),
    oldestMs: state.messages === 0 ? undefined : Math.max(0, now - Date.parse(String(state.first_ts))),
    workers,
    slots: sum(live.map(({ slots }) => slots)),
    running: sum(live.map(({ running }) => running)),
    done: sum(workers.map(({ done }) => done)),
    failed: sum(workers.map(({ failed }) => failed)),
    lost: workers.filter(({ state: is }) => is === 'lost').length,
  };
}

/** By the clock of the server, which says when everything in it was written: of what it makes it tells when. */
async function timeOf({ manager, names }: Queue): Promise<number> {
  const { created } = await manager.consumers.add(`KV_${names.workers}`, {
    inactive_threshold: 1e9,
    mem_storage: true,
  });
  return Date.parse(created);
}

async function workersOf(queue: Queue, now: number): Promise<FleetStatus['workers']> {
  const { manager, names } = queue;
  const prefix = `$KV.${names.workers}.`;
  // What lists the keys of a bucket tells one twice that is written meanwhile, and may wait for ever where that goes on.
  const { state } = await manager.streams.info(`KV_${names.workers}`, { subjects_filter: `${prefix}>` });
  const found = await Promise.all(
    Object.keys(state.subjects ?? {})
      .sort()
      .map(async (subject) => {
        const worker = subject.slice(prefix.length);
        const entry = await queue.workers.get(worker);
        const record = entry === null ? undefined : readWorker(entry.value);
        if (entry === null || record === undefined) return [];
        const seenMs = Math.max(0, now - entry.created.getTime());
        // If the worker had no job, no other worker has marked it as lost.
        const is = record.state === 'live' && seenMs > record.leaseMs ? 'lost' : record.state;
        return [{ ...record, state: is, worker, seenMs } as const];
      }),
  );
  return found.flat();
}
